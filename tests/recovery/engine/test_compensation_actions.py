"""What people do about plans: plain path, then permission, stale, illegal, repeated; and the second person (D3, R4)."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from recovery.actions import compensations as actions
from recovery.actions import effects as effect_actions
from recovery.engine.refusals import AlreadyDone, DecisionWaiting, NothingToMend, PlanAtWork, RunGoesOn
from runs import access, errors
from runs.models import Effect, Plan, Run
from runs.record import Act
from runs.states import EffectState, EventKind, PlanState, ReviewKind, RunState
from tests.recovery import signers
from tests.recovery.engine.plans import SOON, carrying, mends, plan_of, propose, start, trip, trips
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later

__all__ = ["trips"]


def ended(w: World, *names: str) -> UUID:
    """A trip that has ended as completed."""
    run = trip(w, *names)
    assert w.run(run).state == RunState.COMPLETED
    return run


def test_a_plan_is_seen_proposed_begun(trips: World) -> None:
    """The screens' walk: look, draft, start; the run itself has ended and stays as it ended."""
    w = trips
    run = ended(w, "letter", "hotel")
    seen = actions.preview(run, actor=w.s.auditor_d)
    assert [(i.says, i.residual, i.preconditions) for i in seen if i.active] == [
        ("Cancel booking un-ch_2", "a fee for ch_2", ["the stay has not begun"])
    ]
    assert not Plan.objects.exists()
    plan = propose(w, run)
    assert (plan.state, plan.revision, plan.made_by) == (PlanState.DRAFT, 1, w.s.oncall_a)
    assert [line["code"] for line in plan.stays] == ["residual", "irreversible"]
    start(w, plan)
    w.drive(jump=SOON)
    assert plan_of(run).state == PlanState.COMPENSATED
    assert (w.run(run).state, w.effect_states(run)) == (
        RunState.COMPLETED,
        [EffectState.SUCCEEDED, EffectState.COMPENSATED],
    )
    for kind in (EventKind.PLAN_MADE, EventKind.PLAN_STARTED, EventKind.PLAN_ENDED):
        assert len(w.events(run, kind)) == 1


def test_the_compensation_run_is_on_the_authority_of_who_began_it(trips: World) -> None:
    w = trips
    run = ended(w, "flight")
    plan = propose(w, run)
    start(w, plan, actor=w.s.oncall_g)
    carried = carrying(plan)
    assert (carried.started_by, carried.principal) == (w.s.oncall_g, w.run(run).principal)
    assert carried.title == "Mend: Test trip.book"


@pytest.mark.parametrize("who", ["approver_b", "auditor_d"])
def test_only_who_may_decide(trips: World, who: str) -> None:
    w = trips
    run = ended(w, "flight")
    person = getattr(w.s, who)
    with pytest.raises(errors.NotAllowed):
        actions.propose(run, actor=person, act=act("propose"), reason="r")
    plan = propose(w, run)
    given = {"act": act("x"), "reason": "r"}
    for refused in (
        lambda: actions.start(plan.pk, actor=person, digest=plan.digest, **given),
        lambda: actions.leave_out(plan.pk, w.effect(run).pk, actor=person, digest=plan.digest, **given),
        lambda: actions.accept_rest(plan.pk, actor=person, digest=plan.digest, **given),
    ):
        with pytest.raises(errors.NotAllowed):
            refused()  # type: ignore[no-untyped-call]
    assert plan_of(run).state == PlanState.DRAFT


def test_nothing_is_told_of_another_workspace(trips: World) -> None:
    """Invariant 14: not seen is not found, whatever is asked."""
    w = trips
    run = ended(w, "flight")
    plan = propose(w, run)
    for refused in (
        lambda: actions.preview(run, actor=w.s.outsider_e),
        lambda: actions.propose(run, actor=w.s.outsider_e, act=act("p"), reason="r"),
        lambda: actions.start(plan.pk, actor=w.s.outsider_e, act=act("s"), reason="r", digest=plan.digest),
        lambda: actions.start(uuid4(), actor=w.s.oncall_a, act=act("s"), reason="r", digest=plan.digest),
        lambda: actions.stop(uuid4(), actor=w.s.oncall_a, act=act("s"), reason="r"),
    ):
        with pytest.raises(errors.NotFound):
            refused()


def test_another_revision_is_not_begun(trips: World) -> None:
    """The digest that was read is the plan that is begun; an item left out makes another."""
    w = trips
    run = ended(w, "flight", "flight")
    plan = propose(w, run)
    out = Effect.objects.get(pk=plan.items[0]["effect"])
    actions.leave_out(plan.pk, out.pk, actor=w.s.oncall_g, act=act("out"), reason="used already", digest=plan.digest)
    with pytest.raises(errors.StaleVersion) as stale:
        start(w, plan, digest=plan.digest)
    now = plan_of(run)
    assert stale.value.facts["now"] == now.digest != plan.digest
    assert (now.revision, now.editors) == (2, [w.s.oncall_a.pk, w.s.oncall_g.pk])
    start(w, now)
    w.drive(jump=SOON)
    assert plan_of(run).state == PlanState.COMPENSATED
    out.refresh_from_db()
    assert out.state == EffectState.SUCCEEDED
    assert plan_of(run).stays == [{"effect": str(out.pk), "what": out.describe, "code": "by_person"}]


def test_something_that_moved_since_is_seen_again_first(trips: World) -> None:
    """Begun is what was read: an item that cannot be mended any more refuses the start."""
    w = trips
    run = ended(w, "brief")
    plan = propose(w, run)
    w.drive(jump=SOON)
    later(hours=2)
    with pytest.raises(errors.StaleVersion) as moved:
        start(w, plan)
    assert moved.value.facts["moved"] == ["Brief ch_1"]
    with pytest.raises(NothingToMend) as nothing:
        propose(w, run)
    assert nothing.value.facts["left_out"] == ["too_late"]


def test_who_changed_the_plan_signs_nothing_of_it(trips: World) -> None:
    """R4: whoever had a hand in it, and whoever began it."""
    w = trips
    run = ended(w, "charge", "flight")
    access.grant(w.s.approver_b, w.s.here, ["on-call", "approver"])
    plan = propose(w, run)
    flight = next(i for i in plan.items if i["happened"] == "Flight ch_2")
    actions.leave_out(
        plan.pk, UUID(flight["effect"]), actor=w.s.approver_b, act=act("out"), reason="kept", digest=plan.digest
    )
    start(w, plan_of(run))
    w.drive(jump=SOON)
    approval = mends(plan)[0].approvals.get()
    with pytest.raises(errors.OwnRequest):
        signers.sign(approval, w.s.approver_b)
    signers.sign(approval, w.s.approver_c)


def test_begun_twice_is_begun_once(trips: World) -> None:
    """Invariants 15 and 16: the same act gives the first result, another one is told that it is begun."""
    w = trips
    run = ended(w, "flight")
    plan = propose(w, run)
    how = Act.over(uuid4(), "start", {"plan": str(plan.pk)})
    start(w, plan, how)
    again = start(w, plan, how, digest=plan.digest)
    assert again.replayed  # type: ignore[attr-defined]
    with pytest.raises(AlreadyDone):
        start(w, plan, actor=w.s.oncall_g)
    w.drive(jump=SOON)
    with pytest.raises(AlreadyDone):
        start(w, plan)
    assert Run.objects.filter(type="recourse.compensation").count() == 1
    assert Effect.objects.filter(mends__isnull=False).count() == 1


def test_what_is_mended_is_not_mended_again(trips: World) -> None:
    """Invariant 16: no second plan over the same effect, by whatever door."""
    w = trips
    run = trip(w, "flight", mode="mend")
    with pytest.raises(NothingToMend):
        propose(w, run)


def test_a_run_that_goes_on_is_not_mended_under_its_feet(trips: World) -> None:
    w = trips
    run = trip(w, "flight", mode="wait")
    plan = propose(w, run)
    with pytest.raises(RunGoesOn):
        start(w, plan)
    w.signal(run, "told")
    w.drive(jump=SOON)
    assert (w.run(run).state, plan_of(run).pk) == (RunState.COMPENSATED, plan.pk), "its own draft is taken up"


def test_an_unknown_is_settled_first(trips: World) -> None:
    """An outcome that nobody knows blocks the start; the refusal says how many."""
    w = trips
    run = ended(w, "flight", "flight")
    plan = propose(w, run)
    doubted = w.effects(run)[1]
    with w.sandbox.store.transaction() as db:
        db.execute("update effects set item = replace(item, 'succeeded', 'failed') where key = ?", [doubted.sent_key])
    effect_actions.check(doubted.pk, actor=w.s.oncall_a, act=act("check"))
    with pytest.raises(errors.OutcomeUnknown) as refused:
        start(w, plan)
    assert refused.value.facts["n"] == 1


def test_a_plan_at_work_is_not_changed(trips: World) -> None:
    w = trips
    run = ended(w, "charge")
    plan = propose(w, run)
    start(w, plan)
    w.drive(jump=SOON)
    given = {"actor": w.s.oncall_a, "reason": "r"}
    digest = plan_of(run).digest
    for refused in (
        lambda: actions.propose(run, act=act("p"), **given),
        lambda: actions.leave_out(plan.pk, w.effect(run).pk, act=act("o"), digest=digest, **given),
        lambda: actions.accept_rest(plan.pk, act=act("a"), digest=digest, **given),
    ):
        with pytest.raises(PlanAtWork):
            refused()


def test_stopping_again_changes_nothing(trips: World) -> None:
    w = trips
    run = ended(w, "charge")
    plan = propose(w, run)
    with pytest.raises(PlanAtWork):
        actions.stop(plan.pk, actor=w.s.oncall_a, act=act("stop"), reason="r")
    start(w, plan)
    w.drive(jump=SOON)
    actions.stop(plan.pk, actor=w.s.oncall_a, act=act("stop"), reason="r")
    actions.stop(plan.pk, actor=w.s.oncall_g, act=act("stop"), reason="r")
    w.drive()
    assert (carrying(plan).state, carrying(plan).cancel_by) == (RunState.CANCELLED, w.s.oncall_a)
    assert plan_of(run).state == PlanState.FAILED


def test_accepting_what_stays_takes_two_people(trips: World) -> None:
    """D3: a proposal changes nothing; the same person or owner does not confirm it; a second one ends the plan."""
    w = trips
    run = ended(w, "flight")
    plan = propose(w, run)
    actions.accept_rest(plan.pk, actor=w.s.oncall_a, act=act("a"), reason="cheaper", digest=plan.digest)
    assert (plan_of(run).state, w.reviews(run)) == (PlanState.DRAFT, [ReviewKind.CONFIRM_DECISION])
    with pytest.raises(DecisionWaiting):
        actions.accept_rest(plan.pk, actor=w.s.oncall_g, act=act("a"), reason="me too", digest=plan.digest)
    given = {"confirm": True, "reason": "r", "digest": plan.digest}
    with pytest.raises(errors.SamePerson):
        actions.confirm_rest(plan.pk, actor=w.s.oncall_a, act=act("c"), **given)
    with pytest.raises(errors.NotAllowed):
        actions.confirm_rest(plan.pk, actor=w.s.auditor_d, act=act("c"), **given)
    with pytest.raises(errors.StaleVersion):
        actions.confirm_rest(plan.pk, actor=w.s.oncall_g, act=act("c"), **{**given, "digest": "0" * 64})
    actions.confirm_rest(plan.pk, actor=w.s.approver_b, act=act("c"), **given)
    ended_plan = plan_of(run)
    assert (ended_plan.state, ended_plan.confirmed_by, w.reviews(run)) == (PlanState.ENDED, w.s.approver_b, [])
    assert (w.run(run).state, w.effect(run).state) == (RunState.COMPLETED, EffectState.SUCCEEDED)
    with pytest.raises(AlreadyDone):
        actions.confirm_rest(plan.pk, actor=w.s.oncall_g, act=act("c"), **given)


def test_a_proposal_is_taken_back(trips: World) -> None:
    w = trips
    run = ended(w, "flight")
    plan = propose(w, run)
    actions.accept_rest(plan.pk, actor=w.s.oncall_a, act=act("a"), reason="cheaper", digest=plan.digest)
    actions.confirm_rest(
        plan.pk, actor=w.s.oncall_a, act=act("c"), confirm=False, reason="wrong plan", digest=plan.digest
    )
    assert (plan_of(run).state, plan_of(run).accepted_by, w.reviews(run)) == (PlanState.DRAFT, None, [])


def test_a_reason_is_asked_for(trips: World) -> None:
    w = trips
    run = ended(w, "flight")
    with pytest.raises(errors.ReasonNeeded):
        actions.propose(run, actor=w.s.oncall_a, act=act("p"), reason=" ")


def test_who_agreed_to_leave_what_stays_agreed_to_that_alone(trips: World) -> None:
    """Begun again and failed again: a second person cannot confirm what was proposed before."""
    w = trips
    run = w.accept("trip.book", "flight", mode="wait")
    w.drive(jump=SOON)
    w.sandbox.dial("payments", reply="reject", match="un-", times=9)
    w.signal(run, "told")
    w.drive(jump=SOON)
    plan = plan_of(run)
    actions.accept_rest(plan.pk, actor=w.s.oncall_a, act=act("accept"), reason="too late", digest=plan.digest)
    start(w, plan, actor=w.s.oncall_g)
    w.drive(jump=SOON)
    plan = plan_of(run)
    assert (plan.state, plan.accepted_by) == (PlanState.FAILED, None)
    with pytest.raises(AlreadyDone):
        actions.confirm_rest(
            plan.pk, actor=w.s.oncall_g, act=act("confirm"), confirm=True, reason="yes", digest=plan.digest
        )
