"""What a commit is made of: entries, changes, and the small functions that make them. Pure values.

``runs/record.py`` carries them out; ``runs/sql/commit.sql`` reads them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from django.db import models

from runs.models import (
    Approval,
    Attempt,
    Call,
    Callback,
    Capacity,
    Dependency,
    Drain,
    Drill,
    Effect,
    EffectLink,
    Evidence,
    Plan,
    Recovered,
    Restore,
    Review,
    Run,
    Signal,
    Signature,
    Verdict,
)
from runs.states import EventKind

THINGS: dict[str, type[models.Model]] = {
    "effect": Effect,
    "attempt": Attempt,
    "evidence": Evidence,
    "approval": Approval,
    "signature": Signature,
    "verdict": Verdict,
    "review": Review,
    "link": EffectLink,
    "signal": Signal,
    "drill": Drill,
    "breaker": Capacity,
    "dependency": Dependency,
    "drain": Drain,
    "plan": Plan,
    "callback": Callback,
    "call": Call,
    "restore": Restore,
    "recovered": Recovered,
}


@dataclass(frozen=True, slots=True)
class Act:
    """The id of something a person or API client does; ``digest`` covers what was posted (invariant 15)."""

    id: UUID
    route: str
    digest: str = ""

    @classmethod
    def over(cls, id: UUID, route: str, body: Mapping[str, Any]) -> Act:
        """An act whose digest covers ``body`` in a form that does not depend on the order of its keys."""
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), default=str)
        return cls(id, route, hashlib.sha256(text.encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class Change:
    """One row's change, as the SQL function reads it. Made by :func:`new`, :func:`move`, :func:`run_moves`, …"""

    data: dict[str, Any]


@dataclass(slots=True)
class Entry:
    """One event and the changes it covers, in order."""

    kind: EventKind
    data: Mapping[str, Any] = field(default_factory=dict)
    changes: Sequence[Change] = ()


@dataclass(slots=True)
class Sealed:
    """A sealed checkpoint to store with the commit; ``seq`` must follow the run's last.

    ``base``: the full one it is a delta of. ``key``: the id of the key that sealed it.
    """

    seq: int
    why: str
    schema: int
    blob: bytes
    base: int | None = None
    key: str = ""


@dataclass(slots=True)
class Commit:
    """One transaction's worth of change to one run (``run=None``: to the workspace's own chain).

    ``before``: refused as a lost race from that moment on; what was decided too long ago is decided anew.
    """

    workspace: UUID
    run: UUID | None
    entries: list[Entry]
    token: int | None = None
    version: int | None = None
    actor: UUID | None = None
    behalf: str | None = None
    reason: str | None = None
    act: Act | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: Sealed | None = None
    before: datetime | None = None
    admission: Admission | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """How the attempts that a commit makes are let in to their capacity (``runs/sql/capacity.sql``).

    ``ahead``: seconds until the moment of the call that the sender is ready to wait. ``budget``: the share of the
    capacity's calls that may be repeats, None for no limit.
    """

    ahead: float = 0.0
    budget: float | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit led to. ``run``: the run's columns that changed, its state, ``wake_at`` and ``lease_owner``.

    ``replayed``: the same action id had been carried out before, this is its result. ``wait``: seconds until the
    moment that the attempt's capacity gave it, None where nothing paces it. ``trip``: a capacity whose breaker should
    be looked at.
    """

    at: datetime
    first: int
    last: int
    run: Mapping[str, Any]
    facts: Mapping[str, Any]
    replayed: bool = False
    wait: float | None = None
    trip: UUID | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to advance a run, with the token that fences everyone else."""

    at: datetime
    token: int
    row: Mapping[str, Any]


@cache
def _defaults(thing: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for f in _model(thing)._meta.concrete_fields:
        blank = "" if f.empty_strings_allowed and not f.null and f.blank else None
        given[str(f.column)] = blank if f.default is models.NOT_PROVIDED else f.default
    return given


def _model(thing: str) -> type[models.Model]:
    return Run if thing == "run" else THINGS[thing]


def full_row(thing: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every column of a new ``thing``: what is given, the model's defaults for the rest. Unknown names raise."""
    row = {name: value() if callable(value) else value for name, value in _defaults(thing).items()}
    unknown = set(given) - set(row)
    if unknown:
        raise TypeError(f"{thing} has no column {', '.join(sorted(unknown))}")
    row.update(given)
    return row


def new(thing: str, row: Mapping[str, Any], times: Mapping[str, float] | None = None) -> Change:
    """Insert a ``thing``. ``times`` are instants in seconds from the commit's own time."""
    data: dict[str, Any] = {"t": thing, "op": "new", "row": full_row(thing, row)}
    if times:
        data["times"] = times
    return Change(data)


def move(
    thing: str,
    id: UUID,
    prior: Iterable[str] | None,
    set: Mapping[str, Any],
    *,
    times: Mapping[str, float] | None = None,
    version: int | None = None,
    bump: bool = False,
) -> Change:
    """Change a ``thing`` that must be in one of ``prior`` (and, if given, at ``version``)."""
    data: dict[str, Any] = {"t": thing, "op": "move", "id": id, "set": set}
    if prior is not None:
        data["prior"] = [str(state) for state in prior]
    if times:
        data["times"] = times
    if version is not None:
        data["version"] = version
    if bump:
        data["bump"] = True
    return Change(data)


def run_moves(
    set: Mapping[str, Any],
    *,
    prior: Iterable[str] | None = None,
    times: Mapping[str, float] | None = None,
    bump: bool = False,
    soonest: bool = False,
) -> Change:
    """Change the run itself. ``soonest``: keep a ``wake_at`` that was set meanwhile if it is earlier."""
    data: dict[str, Any] = {"t": "run", "set": set}
    if soonest:
        data["soonest"] = True
    if prior is not None:
        data["prior"] = [str(state) for state in prior]
    if times:
        data["times"] = times
    if bump:
        data["bump"] = True
    return Change(data)


def close_reviews(subject: UUID, kinds: Iterable[str] | None = None) -> Change:
    """Close the open reviews about ``subject``; none open is fine."""
    data: dict[str, Any] = {"t": "close_reviews", "subject": subject}
    if kinds is not None:
        data["kinds"] = [str(kind) for kind in kinds]
    return Change(data)


def reckon(*, wake: bool = False) -> Change:
    """Recompute what the run waits for from its effects, under its lock; wake it if none is open (or ``wake``)."""
    return Change({"t": "reckon", "wake": wake})
