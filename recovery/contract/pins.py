"""What a run keeps of its configuration, and what happens when the code has moved on meanwhile.

Six parts are pinned: model, prompt, policy, interface, workflow, schema. A run keeps the versions that it was accepted
under. Where the code has another one, the author's rule says which of three things follows: the run goes on with the
older one, it is moved to the newer one on the evidence of an evaluation, or a person is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

PARTS: Final = ("model", "prompt", "policy", "interface", "workflow", "schema")
"""What can be pinned. ``workflow`` is the version of the run type, ``schema`` that of its data: Recourse fills both."""

OF_RECOURSE: Final = frozenset({"type", "contract"})
"""What Recourse keeps when it is named: the version of the run type, and the declarative part of that version."""


class OnChange(StrEnum):
    """What follows when the code's version of a part is not the run's."""

    PIN = "pin"  # the run goes on with the older one, as long as this code can still serve it
    MIGRATE = "migrate"  # it takes the newer one over, where an evaluation shows that this is right
    ASK = "ask"  # a person says whether it goes on with the newer one


@dataclass(frozen=True, slots=True)
class Pin:
    """One pinned part.

    ``part``: one of PARTS. ``now``: its version in this code; None for ``workflow`` and ``schema``. ``keeps``: older
    versions that this code can still serve (with ``pin``). ``shown_by``: {older version: what shows that a run of it
    may take the newer one over}, an evaluation or a test by its name (with ``migrate``), or None.
    """

    part: str
    now: str | None
    on_change: OnChange
    keeps: frozenset[str]
    shown_by: Mapping[str, str] | None

    def declared(self) -> dict[str, Any]:
        """The rule without the versions: those are compared by themselves, and a new one is no other contract."""
        return {"is": "Pin", "part": self.part, "on_change": str(self.on_change)}

    def problems(self) -> Iterator[str]:
        """What is wrong with this pin, one sentence each."""
        if self.part not in PARTS:
            yield f"{self.part!r} is none of {', '.join(PARTS)}"
        if (self.now is None) != (self.part in ("workflow", "schema")):
            yield f"{self.part}: now is None for workflow and schema, and a version for every other part"
        if self.on_change == OnChange.MIGRATE and not self.shown_by and self.part not in ("workflow", "schema"):
            yield f"{self.part}: migrate names in shown_by what shows that it is right"


@dataclass(frozen=True, slots=True)
class Migration:
    """How something older becomes what this version takes; ``sample`` goes through it at each start, or it is no path.

    For data: ``by(data)``, ``sample`` is older data. For a run: ``by(step, data)``, ``sample`` is (step, data).
    """

    by: Callable[..., Any]
    sample: Any

    def declared(self) -> dict[str, Any]:
        """That there is one."""
        return {"is": "Migration"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSchema:
    """``version`` of the run's data, and from which older versions it is migrated: {older: Migration of the data}.

    Each leads straight to ``version``. Data of a later version is not touched; older data without a path quarantines.
    """

    version: int
    migrates_from: Mapping[int, Migration]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """``pinned``: what a run keeps from its start: "type", "contract", and a Pin for each part of its configuration.

    ``migrates_from``: older versions whose runs this one takes over: {older: Migration of (step, data)}; the data has
    been brought to this version's schema before.
    """

    pinned: tuple[str | Pin, ...]
    migrates_from: Mapping[int, Migration]

    @property
    def parts(self) -> dict[str, Pin]:
        """The pins by their part."""
        return {one.part: one for one in self.pinned if isinstance(one, Pin)}

    @property
    def contract(self) -> bool:
        """Whether a run keeps the declarative part that it began under."""
        return "contract" in self.pinned

    def on_change(self, part: str) -> OnChange:
        """The rule of ``part``; what is not pinned by a Pin stays as it was while it can."""
        pin = self.parts.get(part)
        return OnChange.PIN if pin is None else pin.on_change


@dataclass(frozen=True, slots=True)
class Moved:
    """One part that is another one now. ``answer``: pin, migrate or ask; ``shown_by``: what a migration rests on."""

    part: str
    kept: str
    now: str
    answer: OnChange
    shown_by: str = ""

    def as_json(self) -> dict[str, str]:
        return {
            "part": self.part,
            "kept": self.kept,
            "now": self.now,
            "answer": str(self.answer),
            "shown_by": self.shown_by,
        }


def compare(pins: Pins, kept: Mapping[str, str], now: Mapping[str, str]) -> list[Moved]:
    """Which parts moved, and what follows. A rule that cannot be kept (an older version that this code does not serve,
    a migration that nothing shows to be right) asks a person. ``kept``: the run's; a part it does not name is no news.
    """
    moved = []
    for part in PARTS:
        was, this = kept.get(part), now.get(part)
        if was is None or this is None or was == this:
            continue
        pin = pins.parts.get(part)
        rule = pins.on_change(part)
        shown = "" if pin is None or pin.shown_by is None else pin.shown_by.get(was, "")
        if rule == OnChange.PIN and (pin is None or was not in pin.keeps) or rule == OnChange.MIGRATE and not shown:
            rule = OnChange.ASK
        moved.append(Moved(part, was, this, rule, shown if rule == OnChange.MIGRATE else ""))
    return moved
