"""What people do about compensation plans: propose, begin, stop, leave an item out, accept what stays.

A plan is begun as it was read: each of these carries the digest of the revision that the person saw (invariant 15
and 16). Nothing is sent by any of them; the plan's run does that, and its effects ask for their own signatures (R15).
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db import DatabaseError

from recovery.actions.common import Done, Locked, Plan, Subject, carry_out, require_run, who
from recovery.actions.seconds import require_second
from recovery.contract.mending import LeftOut, PlanItem
from recovery.engine import compensate, intents, mending_runs, plans
from recovery.engine.changes import open_review
from recovery.engine.changes import reason as why_of
from recovery.engine.refusals import AlreadyDone, DecisionWaiting, NothingToMend, PlanAtWork, RunGoesOn
from runs import access, clock, models, record
from runs.errors import NotFound, OutcomeUnknown, RunEnded, StaleVersion
from runs.models import Effect, Person, Run
from runs.record import Act, Entry
from runs.states import (
    EFFECT_BLOCKS_END,
    EffectState,
    EventKind,
    PlanState,
    ReviewKind,
    RunState,
)

log = logging.getLogger("recourse.plans")


def preview(run_id: UUID, *, actor: Person, effects: Collection[UUID] | None = None) -> list[PlanItem]:
    """What a plan would do now, item by item; nothing is recorded. Raises NotFound for what the person cannot see."""
    run = _run(run_id)
    access.require(actor, run.workspace_id, "see")
    return plans.look(list(Effect.objects.filter(run_id=run_id)), now=clock.now(), only=effects)


def propose(run_id: UUID, *, actor: Person, act: Act, reason: str, effects: Collection[UUID] | None = None) -> Done:
    """Make a draft over what happened in a run, or look at its draft anew; nothing moves. ``effects``: None means all.

    ``facts``: plan, digest, revision, to_mend. Raises NothingToMend with the reasons, PlanAtWork, NotAllowed.
    """

    def plan(at: Locked) -> Plan:
        run = require_run(at)
        old = plans.open_plan(run.pk)
        if old is not None and old.state not in plans.MAY_BEGIN:
            raise PlanAtWork(plan=str(old.pk), state=str(old.state))
        happened = list(Effect.objects.filter(run_id=run.pk))
        why = why_of("asked_by_person", who=actor.name, reason=reason)
        made = plans.make(run.workspace_id, run.pk, happened, now=at.now, why=why, by=actor.pk, only=effects, plan=old)
        if not made.active:
            raise NothingToMend(
                run=str(run.pk), left_out=[i.left_out.code for i in made.items if i.left_out is not None]
            )
        # The same items again is still something that was done: it has its line.
        entries = made.entries or [Entry(EventKind.PLAN_CHANGED, {"plan": str(made.id), "again": True})]
        facts = {"run": str(run.pk), "plan": str(made.id), "digest": made.digest, "to_mend": len(made.active)}
        return Plan(entries, facts)

    run = _run(run_id)
    subject = Subject("run", run_id, run.workspace_id, run_id)
    return carry_out(subject, "decide", plan, actor=actor, act=act, reason=reason)


def start(plan_id: UUID, *, actor: Person, act: Act, reason: str, digest: str) -> Done:
    """Begin a plan as it was read, or begin again with what is left of an incomplete one.

    Raises StaleVersion (another revision, or something moved since), AlreadyDone, OutcomeUnknown (what is unknown is
    settled first), RunGoesOn, NotAllowed. The same act again returns the first result; two people begin it once.
    """

    def plan(at: Locked) -> Plan:
        run, found = require_run(at), models.Plan.objects.select_related("started_by").get(pk=plan_id)
        if found.state not in plans.MAY_BEGIN:
            raise AlreadyDone(**_begun(found))
        _refuse_stale(found, digest)
        if not run.ended and run.state != RunState.COMPENSATING:
            raise RunGoesOn(run=str(run.pk), state=run.state)
        items = plans.items_of(found)
        _refuse_open(run, items)
        left = _left(found, items, at)
        if not left:
            raise NothingToMend(run=str(run.pk), plan=str(found.pk))
        made = plans.Made(found.pk, items, found.digest, [])
        begun = plans.begin(made, by=actor.pk, prior=PlanState(found.state))
        facts = {"run": str(run.pk), "plan": str(found.pk), "to_mend": left}
        return Plan([begun], facts)

    done = carry_out(_subject(plan_id), "decide", plan, actor=actor, act=act, reason=reason)
    try:
        mending_runs.mend(plan_id)
    except DatabaseError:
        # It is begun, and the sweep finds it without its run.
        log.exception("plan %s: its run is not accepted yet", plan_id)
    return done


def stop(plan_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """Stop a plan after the item under way: what was not sent is dropped, what was sent is settled.

    Raises PlanAtWork where it does not work, NotAllowed. Stopping again changes nothing.
    """
    found = models.Plan.objects.filter(pk=plan_id).first()
    if found is None:
        raise NotFound
    if found.state == PlanState.RUNNING and access.can(actor, found.workspace_id, "decide"):
        # For whoever may not, it stays untouched, and takes as long as what is not there (invariant 14).
        mending_runs.mend(plan_id)

    def plan(at: Locked) -> Plan:
        carrying, now = at.run, models.Plan.objects.get(pk=plan_id)
        if now.state != PlanState.RUNNING or carrying is None:
            raise PlanAtWork(plan=str(plan_id), state=str(now.state))
        if carrying.ended:
            raise RunEnded(at=carrying.ended_at.isoformat() if carrying.ended_at else None, state=carrying.state)
        facts = {"run": str(now.run_id), "plan": str(plan_id)}
        if carrying.state == RunState.CANCELLING:
            return Plan([Entry(EventKind.PLAN_STOPPED, {**facts, "again": True})], facts)
        asked = {"state": RunState.CANCELLING, "cancel_by_id": actor.pk, "cancel_reason": reason}
        changes = [
            record.run_moves(asked, prior=[carrying.state], times={"cancel_asked_at": 0, "wake_at": 0}),
            record.close_reviews(carrying.pk),
        ]
        return Plan([Entry(EventKind.PLAN_STOPPED, {**facts, "by": who(actor)}, changes)], facts)

    subject = Subject("plan", plan_id, found.workspace_id, found.mending_run_id)
    return carry_out(subject, "decide", plan, actor=actor, act=act, reason=reason)


def leave_out(plan_id: UUID, effect: UUID, *, actor: Person, act: Act, reason: str, digest: str) -> Done:
    """Leave one item out of a draft, with a reason that stands in the plan. A new revision, with a new digest.

    Raises StaleVersion, PlanAtWork (what was begun is stopped or accepted, not thinned out), NotFound, NotAllowed.
    """

    def plan(at: Locked) -> Plan:
        del at
        found = models.Plan.objects.get(pk=plan_id)
        if found.state != PlanState.DRAFT:
            raise PlanAtWork(plan=str(plan_id), state=str(found.state))
        _refuse_stale(found, digest)
        items = plans.items_of(found)
        if not any(item.effect == effect and item.active for item in items):
            raise NotFound
        out = LeftOut(code="by_person", facts={"who": actor.name, "reason": reason})
        rest = [i.model_copy(update={"left_out": out}) if i.effect == effect else i for i in items]
        rest = [i.model_copy(update={"after": [o for o in i.after if o != effect]}) for i in rest]
        made = plans.changed(found, rest, why=why_of("item_left_out", who=actor.name, reason=reason), by=actor.pk)
        return Plan(made.entries, {"run": str(found.run_id), "plan": str(plan_id), "digest": made.digest})

    return carry_out(_subject(plan_id), "decide", plan, actor=actor, act=act, reason=reason)


def accept_rest(plan_id: UUID, *, actor: Person, act: Act, reason: str, digest: str) -> Done:
    """Propose to leave what was not mended as it is; a second person confirms (D3), until then nothing changes.

    Raises StaleVersion, PlanAtWork, DecisionWaiting, NotAllowed.
    """

    def plan(at: Locked) -> Plan:
        del at
        found = models.Plan.objects.select_related("accepted_by").get(pk=plan_id)
        if found.state not in plans.MAY_BEGIN:
            raise PlanAtWork(plan=str(plan_id), state=str(found.state))
        if found.accepted_by is not None:
            raise DecisionWaiting(who=found.accepted_by.name, plan=str(plan_id))
        _refuse_stale(found, digest)
        stays = _stays(found)
        said = {"accepted_by_id": actor.pk, "accepted_reason": reason, "stays": stays}
        why = why_of("residue_proposed", who=actor.name, stays=len(stays))
        changes = [
            record.move("plan", plan_id, plans.MAY_BEGIN, said),
            open_review(
                ReviewKind.CONFIRM_DECISION,
                plan_id,
                workspace=found.workspace_id,
                run=found.run_id,
                group=_group(found),
                why=why,
                due_in=mending_runs.DUE_IN,
            ),
        ]
        facts = {"run": str(found.run_id), "plan": str(plan_id), "digest": found.digest, "needs_second": True}
        data = {**facts, "why": why, "stays": stays, "by": who(actor)}
        return Plan([Entry(EventKind.PLAN_CHANGED, data, changes)], facts)

    return carry_out(_subject(plan_id), "decide", plan, actor=actor, act=act, reason=reason)


def confirm_rest(plan_id: UUID, *, actor: Person, act: Act, confirm: bool, reason: str, digest: str) -> Done:
    """The second person's answer: confirmed, the plan ends with what stays named, and its run may end too.

    Another person of another owner, who may confirm or decide. With ``confirm=False`` the proposal is dropped; whoever
    proposed may take it back the same way. Raises SamePerson, NotAllowed, AlreadyDone, StaleVersion.
    """

    def plan(at: Locked) -> Plan:
        run, found = require_run(at), models.Plan.objects.select_related("accepted_by").get(pk=plan_id)
        if found.accepted_by is None or found.state not in plans.MAY_BEGIN:
            raise AlreadyDone(**_begun(found))
        if confirm or actor.pk != found.accepted_by_id:
            second = Person.objects.get(pk=actor.pk)
            require_second(run.workspace_id, second, found.accepted_by, ("confirm", "decide"))
        _refuse_stale(found, digest)
        facts = {"run": str(run.pk), "plan": str(plan_id), "confirmed": confirm}
        data = {**facts, "by": who(actor), "proposed_by": who(found.accepted_by)}
        dropped = record.close_reviews(plan_id, [ReviewKind.CONFIRM_DECISION])
        if not confirm:
            said: dict[str, Any] = {"accepted_by_id": None, "accepted_reason": ""}
            moved = record.move("plan", plan_id, plans.MAY_BEGIN, said)
            return Plan([Entry(EventKind.PLAN_CHANGED, data, [moved, dropped])], facts)
        stays = _stays(found)
        ended = {"state": PlanState.ENDED, "confirmed_by_id": actor.pk, "stays": stays}
        changes = [
            record.move("plan", plan_id, plans.MAY_BEGIN, ended, times={"ended_at": 0}),
            record.close_reviews(plan_id),
        ]
        if run.state == RunState.COMPENSATING:
            changes.append(record.reckon(wake=True))
        return Plan([Entry(EventKind.PLAN_ENDED, {**data, "state": PlanState.ENDED, "stays": stays}, changes)], facts)

    return carry_out(_subject(plan_id), "see", plan, actor=actor, act=act, reason=reason)


def _run(run_id: UUID) -> Run:
    found = Run.objects.filter(pk=run_id).first()
    if found is None:
        raise NotFound
    return found


def _subject(plan_id: UUID) -> Subject:
    found = models.Plan.objects.filter(pk=plan_id).values_list("workspace_id", "run_id").first()
    if found is None:
        raise NotFound
    return Subject("plan", plan_id, *found)


def _refuse_stale(plan: models.Plan, digest: str) -> None:
    if digest != plan.digest:
        raise StaleVersion(
            thing="plan", id=str(plan.pk), seen=digest, now=plan.digest, revision=plan.revision, state=str(plan.state)
        )


def _begun(plan: models.Plan) -> dict[str, Any]:
    """Facts of a plan that somebody began or ended before."""
    at = plan.ended_at or plan.started_at
    by = plan.started_by.name if plan.started_by is not None else None
    return {"what": "started", "at": at.isoformat() if at else None, "who": by, "plan": str(plan.pk)}


def _refuse_open(run: Run, items: list[PlanItem]) -> None:
    """What is unknown is settled first: of the run, and of an earlier compensation of the same effects."""
    own = Effect.objects.filter(run_id=run.pk, state__in=EFFECT_BLOCKS_END)
    earlier = Effect.objects.filter(mends_id__in=[i.effect for i in items], state__in=EFFECT_BLOCKS_END)
    n = own.count() + earlier.count()
    if n:
        raise OutcomeUnknown(what="begun", n=n)


def _left(plan: models.Plan, items: list[PlanItem], at: Locked) -> int:
    """How many effects are still to be mended. Raises StaleVersion where one is not as the plan knew it."""
    states = dict(Effect.objects.filter(pk__in=[i.effect for i in items]).values_list("pk", "state"))
    to_mend = [i for i in items if i.active and states[i.effect] != EffectState.COMPENSATED]
    moved = [i for i in to_mend if states[i.effect] != i.state]
    looked_at = {i.effect: i for i in plans.look(list(Effect.objects.filter(run_id=plan.run_id)), now=at.now)}
    over = [i for i in to_mend if i not in moved and not looked_at[i.effect].active]
    if moved or over:
        raise StaleVersion(
            thing="plan",
            id=str(plan.pk),
            seen=plan.digest,
            now=plan.digest,
            moved=[i.happened for i in (*moved, *over)],
        )
    return len(to_mend)


def _stays(plan: models.Plan) -> list[dict[str, Any]]:
    items = plans.items_of(plan)
    mended = Effect.objects.filter(pk__in=[i.effect for i in items], state=EffectState.COMPENSATED)
    return compensate.stays(items, set(mended.values_list("pk", flat=True)))


def _group(plan: models.Plan) -> UUID | None:
    names = [i.escalate_to for i in plans.items_of(plan) if i.escalate_to]
    return intents.group_id(plan.workspace_id, names[0]) if names else None
