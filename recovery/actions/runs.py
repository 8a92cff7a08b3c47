"""What people and clients do with runs: accept, signal, correct, cancel, look again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from pydantic import ValidationError

from recovery import failpoints
from recovery.actions.common import Done, Locked, Plan, Subject, carry_out, first_result, require_run, who
from recovery.contract import canonical, registry
from recovery.contract.effects import fields_of
from recovery.contract.errors import ContractError, ParamsInvalid, UnknownRunType
from recovery.contract.sealed import refuse_tokens
from recovery.engine import accepting
from runs import access, clock, record
from runs.errors import NotFound, RunEnded, RunsError
from runs.models import Person, Run, Workspace
from runs.models.base import new_id
from runs.record import Act, Change, Commit, Entry
from runs.states import EventKind, RunState, Scope


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
    for_whom = principal or actor.email
    try:
        run_type = registry.run_type(type)
        if run_type.internal:
            raise UnknownRunType(f"{type} is started by Recourse alone", type=type, version=None)
        refuse_tokens(type, input)
        born = accepting.newborn(
            run_type,
            input,
            workspace=workspace.pk,
            now=clock.now(),
            deadline=deadline,
            principal=for_whom,
            started_by_id=actor.pk,
            goal=goal[:500],
            priority=priority,
        )
    except ContractError:
        # A contract may have changed since: what was accepted under this act stays accepted (invariant 15).
        access.require(actor, workspace.pk, "start")
        first = first_result(workspace.pk, actor, act)
        if first is None:
            raise
        return first
    commit = Commit(
        workspace.pk,
        born.id,
        [born.entry],
        actor=actor.pk,
        behalf=for_whom,
        act=act,
        facts={"run": str(born.id)},
        checkpoint=born.checkpoint,
    )
    failpoints.hit("accept.before_write")
    with transaction.atomic():
        access.require(actor, workspace.pk, "start")
        done = record.accept(commit, born.row, accepting.TIMES)
        failpoints.hit("accept.before_commit")
    failpoints.hit("accept.after_commit")
    return Done(done.last, done.at, done.replayed, done.facts)


def signal(run_id: UUID, name: str, payload: Mapping[str, Any], *, actor: Person, act: Act) -> Done:
    """Send a named event to a run. It is kept; the run that waits for it is woken.

    Raises RunEnded, UnknownSignal naming those the run type declares, ParamsInvalid naming each field, NotAllowed.
    """

    def plan(at: Locked) -> Plan:
        row, facts = _kept(require_run(at), name, payload, actor)
        changes = [record.new("signal", row, {"received_at": 0}), record.reckon(wake=True)]
        return Plan([Entry(EventKind.RUN_SIGNALLED, facts, changes)], {"run": str(run_id), "name": name})

    return carry_out(subject_of(run_id), "start", plan, actor=actor, act=act, reason=None)


def correct(run_id: UUID, name: str, payload: Mapping[str, Any], *, actor: Person, act: Act, reason: str) -> Done:
    """Correct a run: a declared event with a person's reason, which the checks before going on and the step both see.

    It changes nothing by itself: the step that waits for it, or amends an effect on it, decides. Raises what
    ``signal`` raises, and ReasonNeeded.
    """

    def plan(at: Locked) -> Plan:
        row, facts = _kept(require_run(at), name, payload, actor)
        changes = [record.new("signal", {**row, "reason": reason}, {"received_at": 0}), record.reckon(wake=True)]
        told = {**facts, "by": who(actor)}
        return Plan([Entry(EventKind.RUN_CORRECTED, told, changes)], {"run": str(run_id), "name": name})

    return carry_out(subject_of(run_id), "decide", plan, actor=actor, act=act, reason=reason)


def _kept(run: Run, name: str, payload: Mapping[str, Any], sender: Person) -> tuple[dict[str, Any], dict[str, Any]]:
    """The row of a signal to ``run``, and what its event says."""
    refuse_ended(run)
    told = _payload(run, name, payload)
    row = {
        "id": new_id(),
        "workspace_id": run.workspace_id,
        "run_id": run.pk,
        "name": name,
        "payload": told,
        "sender_id": sender.pk,
    }
    return row, {"name": name, "payload": canonical.digest(told)}


def _payload(run: Run, name: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    declared = registry.run_type_for(run.type, run.type_version).contract.ownership.signals
    if name not in declared:
        raise UnknownSignal(f"{run.type} knows no signal {name!r}", name=name, known=sorted(declared))
    refuse_tokens(name, payload)
    try:
        told = declared[name].model_validate(dict(payload)).model_dump(mode="json")
    except ValidationError as error:
        raise ParamsInvalid(name, fields_of(error)) from error
    canonical.check(told)
    return told


def cancel(
    run_id: UUID,
    *,
    actor: Person,
    act: Act,
    reason: str,
    scope: Scope = Scope.CHILDREN,
    at_once: bool = False,
) -> Done:
    """Ask for a run to be cancelled: new work stops now, what was sent is settled first.

    ``scope``: this run alone, or with every run it started (then it is cancelled when they have ended). ``at_once``:
    nothing is mended first; what was sent is settled all the same. Needs what the run's contract names. Raises
    RunEnded, ReasonNeeded, NotAllowed. Asking again by another act only widens what was asked; its facts say who asked
    first and when (``asked_at``, ``by``).
    """

    def plan(at: Locked) -> Plan:
        run = require_run(at)
        refuse_ended(run)
        facts: dict[str, Any] = {"run": str(run.pk), "asked_at": None, "by": None}
        wanted = {"scope": str(scope), "how": "at_once" if at_once else "graceful"}
        if run.state == RunState.CANCELLING:
            assert run.cancel_asked_at is not None
            by = None if run.cancel_by is None else run.cancel_by.name
            facts |= {"asked_at": run.cancel_asked_at.isoformat(), "by": by}
            return Plan(
                [Entry(EventKind.RUN_CANCEL_ASKED, {"again": True, **wanted}, _widened(run, scope, at_once))], facts
            )
        asked = {
            "state": RunState.CANCELLING,
            "cancel_by_id": actor.pk,
            "cancel_reason": reason,
            "cancel_scope": scope,
            "cancel_at_once": at_once,
        }
        changes = [
            record.run_moves(asked, prior=[run.state], times={"cancel_asked_at": 0, "wake_at": 0}),
            record.close_reviews(run.pk),
        ]
        return Plan([Entry(EventKind.RUN_CANCEL_ASKED, wanted, changes)], facts)

    subject = subject_of(run_id)
    return carry_out(subject, _cancel_needs(run_id), plan, actor=actor, act=act, reason=reason)


def _widened(run: Run, scope: Scope, at_once: bool) -> list[Change]:
    more: dict[str, Any] = {}
    if scope == Scope.CHILDREN and run.cancel_scope == Scope.RUN:
        more["cancel_scope"] = Scope.CHILDREN
    if at_once and not run.cancel_at_once:
        more["cancel_at_once"] = True
    return [record.run_moves(more, prior=[run.state], times={"wake_at": 0})] if more else []


def _cancel_needs(run_id: UUID) -> str:
    """The permission that the run's own contract names; where its code is not here, the usual one."""
    type, version = Run.objects.values_list("type", "type_version").get(pk=run_id)
    try:
        return registry.run_type(type, version).contract.ownership.cancel_needs
    except UnknownRunType:
        return "cancel"


def look_again(run_id: UUID, *, actor: Person, act: Act) -> Done:
    """Have the run looked at now. Light: nothing outside changes. Raises RunEnded, NotAllowed."""

    def plan(at: Locked) -> Plan:
        run = require_run(at)
        refuse_ended(run)
        woken = Entry(EventKind.RUN_WOKEN, {"by": "person"}, [record.run_moves({}, times={"wake_at": 0})])
        return Plan([woken], {"run": str(run.pk)})

    return carry_out(subject_of(run_id), "check", plan, actor=actor, act=act, reason=None)


def subject_of(run_id: UUID) -> Subject:
    """A run as the subject of an action. Raises NotFound."""
    workspace = Run.objects.filter(pk=run_id).values_list("workspace_id", flat=True).first()
    if workspace is None:
        raise NotFound
    return Subject("run", run_id, workspace, run_id)


def refuse_ended(run: Run) -> None:
    """Raise RunEnded: an ended run stays ended (invariant 5)."""
    if run.ended:
        raise RunEnded(at=run.ended_at.isoformat() if run.ended_at else None, state=run.state)
