"""The parts of a checkpoint that are read off the run's row, its type and its open effects: what it may use, what it
waits for, what it may become. Written for whoever takes the run over; what the engine itself needs is in ``memory``.

What stands in the record is referred to by id, state and version, never copied. Nothing here asks the record, but for
signatures that an open effect waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recovery.contract import registry
from recovery.contract.errors import ContractError
from recovery.engine import workers
from runs.checkpoints import codec
from runs.models import Approval, Effect
from runs.record import Entry
from runs.states import EFFECT_OPEN, TRANSITIONS, ApprovalState, EffectState

if TYPE_CHECKING:
    from recovery.engine.memory import Memory

_LEGAL = {
    source: sorted(str(target) for start, target in TRANSITIONS["run"] if start == source)
    for source in {str(start) for start, _ in TRANSITIONS["run"]}
}
"""By state of a run: the states that it may go to next."""

_SIGNED = (ApprovalState.PENDING, ApprovalState.GRANTED)


def text(value: Any) -> str | None:
    """A column as text: rows come as JSON from a commit, as Python values from a read."""
    return value.isoformat() if isinstance(value, datetime) else None if value is None else str(value)


def who(run: Mapping[str, Any]) -> dict[str, Any]:
    """Which run, whose, on whose authority, towards what."""
    return {
        "run": str(run["id"]),
        "workspace": str(run["workspace_id"]),
        "principal": run["principal"],
        "owner": text(run["started_by_id"]),
        "goal": run["goal"],
        "type": run["type"],
        "worker": text(run["lease_owner"]),
    }


def versions(run: Mapping[str, Any]) -> dict[str, Any]:
    """What the run was written by, and what it is pinned to: model, prompt, policy, interface, workflow, schema."""
    return {
        "type": run["type_version"],
        "contract": run["contract_digest"],
        "code": workers.code_version(),
        "schema": codec.SCHEMA,
        "config": run["config"],
    }


def limits(run: Mapping[str, Any], spent: Mapping[str, Any]) -> dict[str, Any]:
    """Budgets used and left. ``spent``: what calls have used, by the unit that their author counts in."""
    used = int(run["tries"])
    try:
        allowed = registry.run_type(run["type"], run["type_version"]).contract.lease.tries
    except ContractError:
        # Written by a worker that does not know the type, which keeps what there was.
        return {"tries": {"used": used, "left": None}, "spent": dict(spent)}
    return {"tries": {"used": used, "left": max(allowed - used, 0)}, "spent": dict(spent)}


def cancelling(run: Mapping[str, Any]) -> dict[str, Any]:
    """Whether a cancellation was asked for, when and by whom."""
    return {"asked_at": text(run["cancel_asked_at"]), "by": text(run["cancel_by_id"])}


def open_effects(effects: Iterable[Effect], entries: Sequence[Entry] = ()) -> list[Mapping[str, Any]]:
    """What is pending, in flight or unknown, with its tries, its pause, and the signatures it waits for.

    ``entries``: of the commit to come, in which signatures may just be asked for.
    """
    still = [effect for effect in effects if effect.state in EFFECT_OPEN]
    asked = _asked(still, entries)
    return [
        {
            "id": str(effect.pk),
            "state": effect.state,
            "version": effect.version,
            "operation": f"{effect.operation}@{effect.contract_version}",
            "attempts": effect.attempts,
            "not_before": text(effect.not_before),
            "deadline": text(effect.deadline),
            "approval": asked.get(str(effect.pk)),
        }
        for effect in still
    ]


def _asked(effects: Iterable[Effect], entries: Sequence[Entry]) -> dict[str, dict[str, Any]]:
    """By effect: its open request, with scope and expiry."""
    found: dict[str, dict[str, Any]] = {}
    for change in (change.data for entry in entries for change in entry.changes):
        if change.get("t") == "approval" and change.get("op") == "new":
            found[str(change["row"]["effect_id"])] = _request(change["row"])
    missing = [e.pk for e in effects if e.state == EffectState.AWAITING_APPROVAL and str(e.pk) not in found]
    if missing:
        for row in Approval.objects.filter(effect_id__in=missing, state__in=_SIGNED).values():
            found[str(row["effect_id"])] = _request(row)
    return found


def _request(row: Mapping[str, Any]) -> dict[str, Any]:
    """``digest`` is the scope: it covers operation, target, params, account and the bytes to be sent (R2)."""
    return {
        "id": str(row["id"]),
        "state": str(row["state"]),
        "revision": row["revision"],
        "digest": row["digest"],
        "approve_by": text(row["approve_by"]),
        "execute_by": text(row["execute_by"]),
    }


def going_on(run: Mapping[str, Any], to: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    """The exact condition to go on, the step that is then called, and the states that are legal next.

    ``to``: what the commit makes of the run.
    """
    state = str(to.get("state") or run["state"])
    then: str | None = memory.step
    when: dict[str, Any] = {"now": True}
    if memory.ending is not None:
        when = {"ends": memory.ending.reason, "settled": _ids(memory)}
    elif memory.mending is not None:
        then, when = memory.mending.then, {"plan": text(memory.mending.plan)}
    elif memory.pending is not None:
        then, when = memory.pending.then, {"settled": _ids(memory)}
    elif memory.computing is not None:
        then, when = memory.computing.then, {"computed": memory.computing.place}
    elif memory.waiting is not None:
        wait = memory.waiting
        then, when = wait.then, {"event": wait.event, "until": text(wait.until)}
    elif memory.child is not None:
        then, when = memory.child.then, {"ended": str(memory.child.id)}
    return {
        "state": state,
        "when": when,
        "then": then,
        "wake_at": text(to.get("wake_at")),
        "legal": _LEGAL.get(state, []),
    }


def _ids(memory: Memory) -> list[str]:
    return [] if memory.pending is None else [str(id) for id in memory.pending.effects]
