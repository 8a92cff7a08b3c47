"""Whether a run goes on: a person's answer to what the checks found, and the checks made dry.

An answer is bound to the digest of the findings that were shown: what was found since asks anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from recovery.actions.common import Done, Locked, Plan, carry_out, first_result, note_refusal, require_run, who
from recovery.actions.runs import refuse_ended, subject_of
from recovery.contract import registry
from recovery.contract.errors import ContractError
from recovery.engine import checks, memory, migrating
from recovery.engine.checks import Report
from recovery.engine.refusals import NotAsked
from runs import access, clock, record
from runs.checkpoints import codec
from runs.errors import RunsError, StaleVersion, Unreadable
from runs.models import Effect, Person, Review, Run
from runs.record import Act, Commit, Entry
from runs.states import EventKind, ReviewKind, ReviewState, RunState, Scope, WaitingOn


def go_on(run_id: UUID, *, actor: Person, act: Act, reason: str, report: str) -> Done:
    """Let the run go on over exactly what was found. ``report``: the digest that was shown.

    The checks are made again before anything is done; whatever else they find asks anew. Raises NotAsked, StaleVersion
    where something else is asked by now, RunEnded, ReasonNeeded, NotAllowed.
    """

    def plan(at: Locked) -> Plan:
        run = require_run(at)
        why = _asked(run, report)
        before = run.answered or {}
        # One question after another at the same checkpoint: what was answered there stays answered.
        earlier = before.get("reports", []) if before.get("checkpoint") == run.checkpoint_seq else []
        answered = {
            "what": "go_on",
            "reports": [*earlier, report],
            "newer": why["facts"].get("newer"),
            "checkpoint": run.checkpoint_seq,
            "by": str(actor.pk),
            "at": at.now.isoformat(),
        }
        changes = [
            record.run_moves({"answered": answered}, prior=[RunState.WAITING], times={"wake_at": 0}, bump=True),
            record.close_reviews(run.pk, [ReviewKind.RESUMPTION]),
        ]
        facts = {"run": str(run.pk), "report": report, "answer": "go_on", "by": who(actor), "asked": why}
        return Plan([Entry(EventKind.RUN_RESUMED, facts, changes)], facts)

    return carry_out(subject_of(run_id), "decide", plan, actor=actor, act=act, reason=reason)


def do_not_go_on(run_id: UUID, *, actor: Person, act: Act, reason: str, report: str) -> Done:
    """End the run instead: it and what it started are cancelled, what was sent is settled first. ``report``: the digest
    that was shown.

    Raises what ``go_on`` raises.
    """

    def plan(at: Locked) -> Plan:
        run = require_run(at)
        why = _asked(run, report)
        asked = {
            "state": RunState.CANCELLING,
            "cancel_by_id": actor.pk,
            "cancel_reason": reason,
            "cancel_scope": Scope.CHILDREN,
        }
        changes = [
            record.run_moves(asked, prior=[RunState.WAITING], times={"cancel_asked_at": 0, "wake_at": 0}),
            record.close_reviews(run.pk),
        ]
        facts = {"run": str(run.pk), "report": report, "answer": "do_not_go_on", "by": who(actor), "asked": why}
        told = {"scope": str(Scope.CHILDREN), "how": "graceful", **facts}
        return Plan([Entry(EventKind.RUN_CANCEL_ASKED, told, changes)], facts)

    return carry_out(subject_of(run_id), "decide", plan, actor=actor, act=act, reason=reason)


def _asked(run: Run, report: str) -> Mapping[str, Any]:
    """The standing question, if it is the one that was read. Raises RunEnded, NotAsked, StaleVersion."""
    refuse_ended(run)
    open_now = Review.objects.filter(subject=run.pk, kind=ReviewKind.RESUMPTION, state=ReviewState.OPEN)
    review = open_now.first()
    if review is None or run.state != RunState.WAITING or run.waiting_on != WaitingOn.PERSON:
        raise NotAsked(state=run.state)
    why: Mapping[str, Any] = review.why
    if why["facts"]["report"] != report:
        raise StaleVersion(thing="run", id=str(run.pk), seen=report, now=why["facts"]["report"])
    return why


def check_dry(run_id: UUID, *, actor: Person, act: Act) -> Done:
    """Make the nine checks without going on: what would be found now. ``facts``: the report.

    Changes nothing but the history, where the line is marked dry. The authority is asked, with no transaction open.
    Light: no reason. Raises RunEnded, NotAllowed.
    """
    subject = subject_of(run_id)
    try:
        access.require(actor, subject.workspace, "check")
        before = first_result(subject.workspace, actor, act)
        if before is not None:
            return before
        run = Run.objects.get(pk=run_id)
        refuse_ended(run)
        facts = {"run": str(run_id), "dry": True, **look(run).as_json()}
        entry = Entry(EventKind.RUN_CHECKED, {"why": "asked", **facts, "by": who(actor)})
        done = record.commit(Commit(run.workspace_id, run_id, [entry], actor=actor.pk, act=act, facts=facts))
    except RunsError as refused:
        note_refusal(subject, refused, actor=actor, act=act, reason=None)
        raise
    return Done(done.last, done.at, done.replayed, done.facts)


def look(run: Run) -> Report:
    """The nine checks over ``run`` as it stands, whatever stands in their way named by the first two. Reads only."""
    row = {field.attname: getattr(run, field.attname) for field in Run._meta.concrete_fields}
    stuck = Report(verdict="quarantine")
    try:
        restored, remembered = memory.restore(row)
    except Unreadable as error:
        stuck.add(1, checks.FAILED, said=str(error), **error.facts)
        return stuck
    if restored.schema > codec.SCHEMA:
        stuck.verdict = "wait"
        stuck.add(1, checks.WAITS, schema=restored.schema, knows=codec.SCHEMA)
        return stuck
    try:
        run_type = registry.run_type(run.type, run.type_version)
        moved = migrating.data_to(run_type, remembered)
    except ContractError as error:
        stuck.verdict = "wait"
        stuck.add(6, checks.WAITS, **error.facts)
        return stuck
    except (migrating.NoPath, migrating.PathBroke) as error:
        stuck.add(1, checks.FAILED, **error.facts)
        return stuck
    effects = list(Effect.objects.filter(run_id=run.pk).order_by("ordinal"))
    return checks.nine(row, restored, moved.memory if moved else remembered, run_type, effects, clock.now())
