"""A run's history as a person reads it: one row a decision, effect, attempt or wait.

Attempts nest under their effect, identical rows fold, and silence is a row. The History tab has every line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console import when
from console.screens import event_words
from console.screens.event_words import Said
from runs.models import Effect, Event, Run

SILENCE: Final = timedelta(minutes=10)
"""From here on nothing heard is worth a row."""

MACHINERY: Final = frozenset({"run.leased", "run.advanced", "effect.claimed"})
"""Lines that move the machine and tell nothing about the work; History shows them."""


@dataclass(frozen=True, slots=True)
class Row:
    """``depth`` 1 nests under the effect. ``effect``: named when the row before was about another one.

    ``same``: when the same was seen again. ``late``: it came after the run's end. ``silence``: no line at all.
    """

    at: datetime
    seq: int = 0
    said: Said = field(default_factory=lambda: Said(""))
    who: str = ""
    reason: str = ""
    depth: int = 0
    effect: Effect | None = None
    same: tuple[datetime, ...] = ()
    late: bool = False
    silence: str = ""

    @property
    def folded(self) -> str:
        """ "same answer 4 more times"."""
        n = len(self.same)
        return ngettext("the same once more", "the same {n} more times", n).format(n=n) if n else ""


def rows(
    events: Iterable[Event], run: Run, effects: Mapping[str, Effect], *, until: datetime | None = None
) -> list[Row]:
    """The rows of ``events`` (in sequence). ``effects`` by id. ``until``: now, where nothing came since."""
    found: list[Row] = []
    about: Effect | None = None
    heard: datetime | None = None
    for event in events:
        if event.kind in MACHINERY or (row := _row(event, run, effects)) is None:
            continue
        if heard is not None and event.at - heard >= SILENCE:
            found.append(_silence(heard, event.at))
        heard = event.at
        if row.effect is not None and row.depth:
            row, about = (replace(row, effect=None), about) if row.effect == about else (row, row.effect)
        if found and _alike(found[-1], row):
            found[-1] = replace(found[-1], same=(*found[-1].same, row.at))
        else:
            found.append(row)
    if until is not None and heard is not None and not run.ended and until - heard >= SILENCE:
        found.append(_silence(heard, until))
    return found


def _row(event: Event, run: Run, effects: Mapping[str, Effect]) -> Row | None:
    effect = effects.get(_effect_of(event.body))
    said = event_words.say(event, effect)
    if said is None:
        return None
    return Row(
        at=event.at,
        seq=event.seq,
        said=said,
        who=event.actor.name if event.actor is not None else "",
        reason=str(event.body.get("reason") or ""),
        depth=1 if effect is not None else 0,
        effect=effect,
        late=run.ended_at is not None and event.at > run.ended_at,
    )


def _effect_of(body: Mapping[str, Any]) -> str:
    """The id of the effect that a line is about: named, or moved by it."""
    named = body["data"].get("effect")
    moved = (step["id"] for step in body["moves"] if step["t"] == "effect")
    return str(named or next(moved, ""))


def _alike(one: Row, other: Row) -> bool:
    return (
        not one.silence
        and one.said.text == other.said.text
        and one.who == other.who
        and other.effect is None
        and not other.reason
        and one.late == other.late
    )


def _silence(since: datetime, until: datetime) -> Row:
    span = when.span((until - since).total_seconds())
    return Row(at=since, silence=_("{span}: nothing heard").format(span=span))
