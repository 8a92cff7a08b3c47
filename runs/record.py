"""The only writer. Every change of state of the record is one call of :func:`commit`, one SQL function (invariant 9).

A :class:`Commit` is a list of :class:`Entry`; an entry is one event and the changes it covers. Changes are guarded
by the prior state; the function locks the run, checks token or version, refuses moves that ``states.TRANSITIONS``
does not have, stamps the time, chains the events and stores the checkpoint (``runs/sql/commit.sql``).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from typing import Any
from uuid import UUID

import orjson
from django.db import DatabaseError, connection, models, transaction

from runs import clock, doorbells, errors
from runs.models import (
    Approval,
    Attempt,
    Effect,
    EffectLink,
    Evidence,
    Review,
    Run,
    Signal,
    Signature,
    Verdict,
)
from runs.models.base import new_id
from runs.states import EffectState, EventKind

DEAD_AFTER = 15.0
"""Seconds without a heartbeat (renewed every 5 s) after which a worker's leases are free."""

_THINGS: dict[str, type[models.Model]] = {
    "effect": Effect,
    "attempt": Attempt,
    "evidence": Evidence,
    "approval": Approval,
    "signature": Signature,
    "verdict": Verdict,
    "review": Review,
    "link": EffectLink,
    "signal": Signal,
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
    """A sealed checkpoint to store with the commit; ``seq`` must follow the run's last."""

    seq: int
    why: str
    schema: int
    blob: bytes


@dataclass(slots=True)
class Commit:
    """One transaction's worth of change to one run (``run=None``: to the workspace's own chain)."""

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


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit led to. ``replayed``: the same action id had been carried out before, this is its result."""

    at: datetime
    first: int
    last: int
    run: Mapping[str, Any]
    facts: Mapping[str, Any]
    replayed: bool = False


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
    return Run if thing == "run" else _THINGS[thing]


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


def accept(commit: Commit, row: Mapping[str, Any], times: Mapping[str, float]) -> Committed:
    """Insert a run with its first events and checkpoint; ``commit.run`` is its id."""
    payload = _payload(commit)
    payload["create"] = full_row("run", row)
    payload["create_times"] = times
    return _committed(commit, _call(payload, commit.checkpoint))


def commit(commit: Commit) -> Committed:
    """Carry out ``commit`` or refuse it whole.

    Raises StaleOwner, StaleVersion, IllegalMove, LostRace, NoPermit, ActionMismatch, ActionInFlight, NotFound.
    The same ``act`` again returns the first result with ``replayed``.
    """
    return _committed(commit, _call(_payload(commit), commit.checkpoint))


def lease(workspace: UUID, run: UUID, *, worker: UUID, epoch: int) -> Lease | str:
    """Count a try and take the lease of a due run; the token grows. Returns why not, if refused:
    ``leased``, ``not_due``, or the state that nothing leaves by itself."""
    payload = _payload(Commit(workspace, run, [Entry(EventKind.RUN_LEASED, {"worker": str(worker)})]))
    payload["lease"] = {"worker": worker, "epoch": epoch, "dead_after": DEAD_AFTER}
    answer = _call(payload, None)
    if "refused" in answer:
        return str(answer["refused"])
    return Lease(clock.parse(answer["at"]), answer["row"]["token"], answer["row"])


def note(
    workspace: UUID, kind: EventKind, *, actor: UUID | None, data: Mapping[str, Any], reason: str | None = None
) -> Committed:
    """Write a line of the workspace's own chain: what happened has no run, or changed none."""
    return commit(Commit(workspace, None, [Entry(kind, data)], actor=actor, reason=reason))


def _payload(c: Commit) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "workspace": c.workspace,
        "run": c.run,
        "actor": c.actor,
        "behalf": c.behalf,
        "reason": c.reason,
        "action": None,
        "entries": [
            {"kind": e.kind, "data": e.data, "changes": [change.data for change in e.changes]} for e in c.entries
        ],
    }
    if c.token is not None:
        payload["token"] = c.token
    if c.version is not None:
        payload["version"] = c.version
    if c.act is not None:
        payload["action"] = {"id": c.act.id, "route": c.act.route, "digest": c.act.digest, "facts": c.facts}
    if c.checkpoint is not None:
        payload["checkpoint"] = {
            "seq": c.checkpoint.seq,
            "why": c.checkpoint.why,
            "schema": c.checkpoint.schema,
        }
    return payload


_REFUSALS: dict[str, type[errors.RunsError]] = {
    "RC001": errors.StaleOwner,
    "RC002": errors.StaleVersion,
    "RC003": errors.IllegalMove,
    "RC004": errors.LostRace,
    "RC005": errors.NoPermit,
    "RC006": errors.ActionMismatch,
    "RC007": errors.ActionInFlight,
    "RC404": errors.NotFound,
}
_RACES = {
    "effect_one_intent": "key",
    "attempt_one_live": "attempt",
    "attempt_once": "attempt",
    "signature_once": "signature",
    "verdict_one_proposed": "verdict",
    "approval_one_open": "approval",
    "approval_revision_once": "approval",
}


_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""A NUL as JSON writes it, not the text backslash-u0000."""


def _call(payload: Mapping[str, Any], sealed: Sealed | None) -> dict[str, Any]:
    text = orjson.dumps(payload, default=str).decode()
    if "\\u0000" in text:
        # PostgreSQL keeps no NUL in text; what a stranger's answer or a traceback holds must not stop its record.
        text = _NUL.sub(r"\1\\ufffd", text)
    try:
        # One statement is one transaction by itself; only inside another one does it need a savepoint.
        outer = transaction.atomic() if connection.in_atomic_block else nullcontext()
        with outer, connection.cursor() as cursor:
            cursor.execute("SELECT runs_commit(%s::jsonb, %s)", [text, sealed.blob if sealed else None])
            (answer,) = cursor.fetchone()
    except DatabaseError as error:
        raise _refusal(error) from error
    parsed = json.loads(answer) if isinstance(answer, str) else answer
    assert isinstance(parsed, dict)
    return parsed


def _refusal(error: DatabaseError) -> Exception:
    cause = error.__cause__
    state = getattr(cause, "sqlstate", None)
    diag = getattr(cause, "diag", None)
    if state in _REFUSALS:
        facts = json.loads(diag.message_detail) if diag and diag.message_detail else {}
        return _REFUSALS[state](str(diag.message_primary) if diag else "", **facts)
    if state == "23505" and diag and diag.constraint_name in _RACES:
        return errors.LostRace(f"another {_RACES[diag.constraint_name]} came first", thing=diag.constraint_name)
    return error


def _committed(c: Commit, answer: Mapping[str, Any]) -> Committed:
    done = Committed(
        at=clock.parse(answer["at"]),
        first=answer["first"],
        last=answer["last"],
        run=answer.get("row") or {},
        facts=answer.get("facts") or {},
        replayed=bool(answer.get("replayed")),
    )
    if not done.replayed:
        # Robust: what is recorded is recorded, whoever could not be told.
        transaction.on_commit(partial(doorbells.ring, _ring(c, done)), robust=True)
    return done


def _ring(c: Commit, done: Committed) -> doorbells.Ring:
    effects: dict[UUID, None] = {}
    approvals: dict[UUID, None] = {}
    ready: list[UUID] = []
    reviews = False
    for change in (change.data for entry in c.entries for change in entry.changes):
        row = change.get("row") or change.get("set") or {}
        id: Any = change.get("id") or row.get("id")
        if change["t"] == "effect":
            effects[id] = None
            if row.get("state") == EffectState.READY:
                ready.append(id)
        elif change["t"] in ("attempt", "evidence", "verdict") and row.get("effect_id"):
            effects[row["effect_id"]] = None
        elif change["t"] == "approval":
            approvals[id] = None
        elif change["t"] == "signature" and row.get("approval_id"):
            approvals[row["approval_id"]] = None
        elif change["t"] in ("review", "close_reviews"):
            reviews = True
    wake_at = done.run.get("wake_at")
    return doorbells.Ring(
        workspace=c.workspace,
        run=c.run,
        kinds=tuple(entry.kind for entry in c.entries),
        effects=tuple(effects),
        approvals=tuple(approvals),
        reviews=reviews,
        ready=tuple(ready),
        wake=bool(wake_at) and clock.parse(str(wake_at)) <= done.at and not done.run.get("lease_owner"),
    )


__all__ = [
    "DEAD_AFTER",
    "Act",
    "Change",
    "Commit",
    "Committed",
    "Entry",
    "Lease",
    "Sealed",
    "accept",
    "close_reviews",
    "commit",
    "full_row",
    "lease",
    "move",
    "new",
    "new_id",
    "note",
    "reckon",
    "run_moves",
]
