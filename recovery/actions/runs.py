"""What people and clients do with runs: accept, signal, cancel, look again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from pydantic import ValidationError

from recovery import failpoints
from recovery.contract import canonical, registry
from recovery.contract.effects import fields_of
from recovery.contract.errors import ParamsInvalid
from recovery.engine import intents, memory, reconcile
from recovery.engine.memory import Memory
from runs import access, clock, record
from runs.errors import ReasonNeeded, RunEnded, RunsError
from runs.models import Person, Run, Workspace
from runs.models.base import new_id
from runs.record import Act, Commit, Committed, Entry
from runs.states import RUN_ENDED, EventKind, RunState

FIRST_STEP = "begin"


class UnknownSignal(RunsError):
    """The run type declares no signal of this name."""

    code = "unknown_signal"
    status = 422


@dataclass(frozen=True, slots=True)
class Done:
    """What an action led to. ``run``: whose it is; ``event``: its line in the history; ``replayed``: done before."""

    run: UUID
    event: int
    at: datetime
    replayed: bool
    facts: Mapping[str, Any]


def _done(run: UUID, done: Committed) -> Done:
    return Done(run, done.last, done.at, done.replayed, done.facts)


def accept(
    workspace: Workspace,
    type: str,
    input: Mapping[str, Any],
    *,
    actor: Person,
    act: Act,
    goal: str = "",
    deadline: datetime | None = None,
    priority: int = 0,
    principal: str = "",
) -> Done:
    """Accept a run of ``type`` with ``input``; returns after the commit (invariant 1).

    Raises UnknownRunType, ParamsInvalid naming each field, NotAllowed; the same act again gives the first run.
    """
    run_type = registry.run_type(type)
    loaded = run_type.load(input)
    data = run_type.dump(loaded)
    run = new_id()
    own = run_type.contract.ownership.deadline
    now = clock.now()
    until = deadline or (now + own if own is not None else None)
    row = {
        "id": run,
        "workspace_id": workspace.pk,
        "type": run_type.name,
        "type_version": run_type.version,
        "contract_digest": run_type.digest,
        "title": intents.english(run_type.describe(loaded))[:300],
        "goal": goal[:500],
        "principal": principal or actor.email,
        "started_by_id": actor.pk,
        "references": run_type.references(loaded),
        "priority": priority,
        "deadline": until,
        "state": RunState.ACCEPTED,
        "step": FIRST_STEP,
    }
    start = record.full_row("run", row)
    sealed = memory.seal(start, Memory(data, FIRST_STEP), "accepted")
    event = {"type": run_type.name, "version": run_type.version, "goal": goal, "input": canonical.digest(data)}
    commit = Commit(
        workspace.pk,
        run,
        [Entry(EventKind.RUN_ACCEPTED, event)],
        actor=actor.pk,
        behalf=row["principal"],
        act=act,
        facts={"run": str(run)},
        checkpoint=sealed,
    )
    failpoints.hit("accept.before_commit")
    with transaction.atomic():
        access.require(actor, workspace.pk, "start")
        done = record.accept(commit, row, {"accepted_at": 0, "wake_at": 0})
    failpoints.hit("accept.after_commit")
    return _done(UUID(str(done.facts["run"])), done)


def signal(run_id: UUID, name: str, payload: Mapping[str, Any], *, actor: Person, act: Act) -> Done:
    """Send a named event to a run. It is kept; the run that waits for it is woken.

    Raises RunEnded, UnknownSignal naming those the run type declares, ParamsInvalid naming each field.
    """
    run = Run.objects.get(pk=run_id)
    declared = registry.run_type(run.type, run.type_version).contract.ownership.signals
    if name not in declared:
        raise UnknownSignal(f"{run.type} knows no signal {name!r}", name=name, known=sorted(declared))
    try:
        loaded = declared[name].model_validate(dict(payload))
    except ValidationError as error:
        raise ParamsInvalid(name, fields_of(error)) from error
    payload = loaded.model_dump(mode="json")
    canonical.check(payload)
    row = {
        "id": new_id(),
        "workspace_id": run.workspace_id,
        "run_id": run.pk,
        "name": name,
        "payload": payload,
        "sender_id": actor.pk,
    }
    entry = Entry(
        EventKind.RUN_SIGNALLED,
        {"name": name, "payload": canonical.digest(dict(payload))},
        [record.new("signal", row, {"received_at": 0}), record.reckon(wake=True)],
    )
    with transaction.atomic():
        access.require(actor, run.workspace_id, "start")
        _refuse_ended(run)
        done = record.commit(
            Commit(run.workspace_id, run.pk, [entry], actor=actor.pk, act=act, facts={"run": str(run.pk)})
        )
    return _done(run.pk, done)


def cancel(run_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """Ask for a run to be cancelled: new work stops now, what was sent is settled first.

    Raises RunEnded, ReasonNeeded, NotAllowed. Asking again, also with another act, changes nothing.
    """
    if not reason.strip():
        raise ReasonNeeded
    run = Run.objects.get(pk=run_id)
    with transaction.atomic():
        access.require(actor, run.workspace_id, "cancel")
        run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
        asked = run.cancel_asked_at
        facts = {"run": str(run.pk), "asked_at": asked.isoformat() if asked else None}
        if run.state == RunState.CANCELLING:
            assert run.cancel_by is not None
            facts["by"] = run.cancel_by.name
            entry = Entry(EventKind.RUN_CANCEL_ASKED, {"again": True}, [])
        else:
            _refuse_ended(run)
            change = record.run_moves(
                {
                    "state": RunState.CANCELLING,
                    "cancel_by_id": actor.pk,
                    "cancel_reason": reason,
                },
                prior=[s for s in RunState.values if s not in RUN_ENDED and s != RunState.CANCELLING],
                times={"cancel_asked_at": 0, "wake_at": 0},
            )
            changes = [change, record.close_reviews(run.pk)]
            entry = Entry(EventKind.RUN_CANCEL_ASKED, {"scope": "run", "how": "graceful"}, changes)
        done = record.commit(
            Commit(run.workspace_id, run.pk, [entry], actor=actor.pk, act=act, reason=reason, facts=facts)
        )
    return _done(run.pk, done)


def look_again(run_id: UUID, *, actor: Person, act: Act) -> Done:
    """Have the run looked at now. Light: nothing outside changes. Raises RunEnded, NotAllowed."""
    run = Run.objects.get(pk=run_id)
    with transaction.atomic():
        access.require(actor, run.workspace_id, "check")
        _refuse_ended(run)
        done = reconcile.look_again(run, actor=actor.pk, act=act)
    return _done(run.pk, done)


def _refuse_ended(run: Run) -> None:
    if run.state in RUN_ENDED:
        raise RunEnded(at=run.ended_at.isoformat() if run.ended_at else None, state=run.state)
