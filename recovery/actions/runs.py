"""What people and clients do with runs: accept, signal, cancel, look again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from pydantic import ValidationError

from recovery import failpoints
from recovery.actions.common import Done, Locked, Plan, Subject, carry_out, first_result, require_run
from recovery.contract import canonical, registry
from recovery.contract.effects import fields_of
from recovery.contract.errors import ContractError, ParamsInvalid
from recovery.contract.sealed import refuse_tokens
from recovery.engine import intents, memory
from recovery.engine.memory import Memory
from runs import access, clock, record
from runs.checkpoints import tokens
from runs.errors import NotFound, RunEnded, RunsError
from runs.models import Person, Run, Workspace
from runs.models.base import new_id
from runs.record import Act, Commit, Entry
from runs.states import EventKind, RunState

FIRST_STEP = "begin"


class UnknownSignal(RunsError):
    """The run type declares no signal of this name."""

    code = "unknown_signal"
    status = 422


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
    try:
        run_type = registry.run_type(type)
        refuse_tokens(type, input)
        loaded = run_type.load(input)
        with tokens.within(workspace.pk):
            data = run_type.dump(loaded)
    except ContractError:
        # A contract may have changed since: what was accepted under this act stays accepted (invariant 15).
        access.require(actor, workspace.pk, "start")
        first = first_result(workspace.pk, actor, act)
        if first is None:
            raise
        return first
    run = new_id()
    own = run_type.contract.ownership.deadline
    now = clock.now()
    until = deadline or (now + own if own is not None else None)
    for_whom = principal or actor.email
    row: dict[str, Any] = {
        "id": run,
        "workspace_id": workspace.pk,
        "type": run_type.name,
        "type_version": run_type.version,
        "contract_digest": run_type.digest,
        "title": intents.english(run_type.describe(loaded))[:300],
        "goal": goal[:500],
        "principal": for_whom,
        "started_by_id": actor.pk,
        "references": run_type.references(loaded),
        "priority": priority,
        "deadline": until,
        "state": RunState.ACCEPTED,
        "step": FIRST_STEP,
    }
    start = record.full_row("run", row)
    sealed = memory.seal(start, Memory(data, FIRST_STEP), "accepted")
    event = {
        "type": run_type.name,
        "version": run_type.version,
        "goal": goal,
        "input": canonical.digest(data),
    }
    commit = Commit(
        workspace.pk,
        run,
        [Entry(EventKind.RUN_ACCEPTED, event)],
        actor=actor.pk,
        behalf=for_whom,
        act=act,
        facts={"run": str(run)},
        checkpoint=sealed,
    )
    failpoints.hit("accept.before_commit")
    with transaction.atomic():
        access.require(actor, workspace.pk, "start")
        done = record.accept(commit, row, {"accepted_at": 0, "wake_at": 0})
    failpoints.hit("accept.after_commit")
    return Done(done.last, done.at, done.replayed, done.facts)


def signal(run_id: UUID, name: str, payload: Mapping[str, Any], *, actor: Person, act: Act) -> Done:
    """Send a named event to a run. It is kept; the run that waits for it is woken.

    Raises RunEnded, UnknownSignal naming those the run type declares, ParamsInvalid naming each field, NotAllowed.
    """

    def plan(at: Locked) -> Plan:
        run = require_run(at)
        refuse_ended(run)
        told = _payload(run, name, payload)
        row = {
            "id": new_id(),
            "workspace_id": run.workspace_id,
            "run_id": run.pk,
            "name": name,
            "payload": told,
            "sender_id": actor.pk,
        }
        changes = [record.new("signal", row, {"received_at": 0}), record.reckon(wake=True)]
        facts = {"name": name, "payload": canonical.digest(told)}
        return Plan([Entry(EventKind.RUN_SIGNALLED, facts, changes)], {"run": str(run.pk), "name": name})

    return carry_out(_subject(run_id), "start", plan, actor=actor, act=act, reason=None)


def _payload(run: Run, name: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    declared = registry.run_type(run.type, run.type_version).contract.ownership.signals
    if name not in declared:
        raise UnknownSignal(f"{run.type} knows no signal {name!r}", name=name, known=sorted(declared))
    refuse_tokens(name, payload)
    try:
        told = declared[name].model_validate(dict(payload)).model_dump(mode="json")
    except ValidationError as error:
        raise ParamsInvalid(name, fields_of(error)) from error
    canonical.check(told)
    return told


def cancel(run_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """Ask for a run to be cancelled: new work stops now, what was sent is settled first.

    Raises RunEnded, ReasonNeeded, NotAllowed. Asking again by another act changes nothing; its facts then say who
    asked first and when (``asked_at``, ``by``).
    """

    def plan(at: Locked) -> Plan:
        run = require_run(at)
        refuse_ended(run)
        facts: dict[str, Any] = {"run": str(run.pk), "asked_at": None, "by": None}
        if run.state == RunState.CANCELLING:
            assert run.cancel_asked_at is not None and run.cancel_by is not None
            facts |= {"asked_at": run.cancel_asked_at.isoformat(), "by": run.cancel_by.name}
            return Plan([Entry(EventKind.RUN_CANCEL_ASKED, {"again": True})], facts)
        asked = {"state": RunState.CANCELLING, "cancel_by_id": actor.pk, "cancel_reason": reason}
        changes = [
            record.run_moves(asked, prior=[run.state], times={"cancel_asked_at": 0, "wake_at": 0}),
            record.close_reviews(run.pk),
        ]
        entry = Entry(EventKind.RUN_CANCEL_ASKED, {"scope": "run", "how": "graceful"}, changes)
        return Plan([entry], facts)

    return carry_out(_subject(run_id), "cancel", plan, actor=actor, act=act, reason=reason)


def look_again(run_id: UUID, *, actor: Person, act: Act) -> Done:
    """Have the run looked at now. Light: nothing outside changes. Raises RunEnded, NotAllowed."""

    def plan(at: Locked) -> Plan:
        run = require_run(at)
        refuse_ended(run)
        woken = Entry(EventKind.RUN_WOKEN, {"by": "person"}, [record.run_moves({}, times={"wake_at": 0})])
        return Plan([woken], {"run": str(run.pk)})

    return carry_out(_subject(run_id), "check", plan, actor=actor, act=act, reason=None)


def _subject(run_id: UUID) -> Subject:
    workspace = Run.objects.filter(pk=run_id).values_list("workspace_id", flat=True).first()
    if workspace is None:
        raise NotFound
    return Subject("run", run_id, workspace, run_id)


def refuse_ended(run: Run) -> None:
    """Raise RunEnded: an ended run stays ended (invariant 5)."""
    if run.ended:
        raise RunEnded(at=run.ended_at.isoformat() if run.ended_at else None, state=run.state)
