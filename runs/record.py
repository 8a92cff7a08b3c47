"""The only writer. Every change of state of the record is one call of :func:`commit`, one SQL function (invariant 9).

A :class:`Commit` is a list of :class:`Entry`; an entry is one event and the changes it covers. Changes are guarded
by the prior state; the function locks the run, checks token or version, refuses moves that ``states.TRANSITIONS``
does not have, stamps the time, chains the events and stores the checkpoint (``runs/sql/commit.sql``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any
from uuid import UUID

import orjson
import psycopg
from django.db import DatabaseError, connection, transaction

from runs import clock, doorbells, errors
from runs.announce import ring_of
from runs.commits import (
    Act,
    Admission,
    Change,
    Commit,
    Committed,
    Entry,
    Lease,
    Sealed,
    close_reviews,
    full_row,
    move,
    new,
    reckon,
    run_moves,
)
from runs.models.base import new_id
from runs.states import EventKind

DEAD_AFTER = 15.0
"""Seconds without a heartbeat (renewed every 5 s) after which a worker's leases are free."""


def accept(commit: Commit, row: Mapping[str, Any], times: Mapping[str, float]) -> Committed:
    """Insert a run with its first events and checkpoint; ``commit.run`` is its id."""
    payload = _payload(commit)
    payload["create"] = full_row("run", row)
    payload["create_times"] = times
    return _committed(commit, _call(payload, commit.checkpoint))


def commit(commit: Commit) -> Committed:
    """Carry out ``commit`` or refuse it whole.

    Raises StaleOwner, StaleVersion, IllegalMove, LostRace, NoPermit (Frozen after a restore), ActionMismatch,
    ActionInFlight, NotFound.
    The same ``act`` again returns the first result with ``replayed``.
    """
    return _committed(commit, _call(_payload(commit), commit.checkpoint))


def lease(workspace: UUID, run: UUID, *, worker: UUID, epoch: int) -> Lease | str:
    """Count a try and take the lease of a due run; the token grows. Returns why not, if refused:
    ``leased``, ``not_due``, or the state that nothing leaves by itself; after a restore ``not_compared`` or ``frozen``,
    and ``old_epoch`` for a process that began before it."""
    payload = _payload(Commit(workspace, run, [Entry(EventKind.RUN_LEASED, {"worker": str(worker)})]))
    payload["lease"] = {"worker": worker, "epoch": epoch, "dead_after": DEAD_AFTER}
    answer = _call(payload, None)
    if "refused" in answer:
        return str(answer["refused"])
    return Lease(clock.parse(answer["at"]), answer["row"]["token"], answer["row"])


def note(
    workspace: UUID,
    kind: EventKind,
    *,
    actor: UUID | None,
    data: Mapping[str, Any],
    reason: str | None = None,
) -> Committed:
    """Write a line of the workspace's own chain: what happened has no run, or changed none."""
    return commit(Commit(workspace, None, [Entry(kind, data)], actor=actor, reason=reason))


def take_moment(dependency: UUID, *, ahead: float) -> float | None:
    """Take the next moment of the dependency's capacity for a call that makes no attempt (a readback).

    Returns seconds until it, None where nothing paces it. It changes no state and has no event: a moment that is not
    used is only a call not made. Raises NoPermit when the moment is more than ``ahead`` seconds away.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT runs_take_moment(%s, %s)", [dependency, ahead])
            (wait,) = cursor.fetchone()
    except DatabaseError as error:
        raise _refusal(error) from error
    return None if wait is None else float(wait)


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
    if c.before is not None:
        payload["before"] = c.before
    if c.act is not None:
        payload["action"] = {"id": c.act.id, "route": c.act.route, "digest": c.act.digest, "facts": c.facts}
    if c.admission is not None:
        payload["admission"] = {"ahead": c.admission.ahead, "budget": c.admission.budget}
    if c.checkpoint is not None:
        payload["checkpoint"] = {
            "seq": c.checkpoint.seq,
            "why": c.checkpoint.why,
            "schema": c.checkpoint.schema,
            "base": c.checkpoint.base,
            "key": c.checkpoint.key,
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
    "RC008": errors.Frozen,
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
    "effect_mended_once": "compensation",
    "plan_one_open": "plan",
    "drill_one_running": "drill",
    "callback_once": "callback",
    "call_once": "call",
    "call_one_live": "call",
    "call_one_output": "call",
}


_COMMIT = "SELECT runs_commit(%s::jsonb, %s)"


def _run_function(text: str, blob: bytes | None) -> Any:
    """Call the function as a prepared statement of this connection: its text is not parsed and planned each time.

    One statement is one transaction by itself; only inside another one does it need a savepoint.
    """
    connection.validate_no_broken_transaction()
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    outer = transaction.atomic() if connection.in_atomic_block else nullcontext()
    with outer, connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        row = cursor.execute(_COMMIT, [text, blob], prepare=True).fetchone()
    assert row is not None
    return row[0]


_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""A NUL as JSON writes it, not the text backslash-u0000."""


def _call(payload: Mapping[str, Any], sealed: Sealed | None) -> dict[str, Any]:
    text = orjson.dumps(payload, default=str).decode()
    if "\\u0000" in text:
        # PostgreSQL keeps no NUL in text; what a stranger's answer or a traceback holds must not stop its record.
        text = _NUL.sub(r"\1\\ufffd", text)
    try:
        answer = _run_function(text, sealed.blob if sealed else None)
    except DatabaseError as error:
        raise _refusal(error) from error
    parsed = orjson.loads(answer) if isinstance(answer, str) else answer
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
        wait=answer.get("wait"),
        trip=UUID(answer["trip"]) if answer.get("trip") else None,
    )
    if not done.replayed:
        # Robust: what is recorded is recorded, whoever could not be told.
        transaction.on_commit(partial(doorbells.ring, ring_of(c, done)), robust=True)
    return done


__all__ = [
    "DEAD_AFTER",
    "Act",
    "Admission",
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
