"""Cancelling and mending: what policy demands is mended before the run is cancelled; the rest is only proposed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from recovery import failpoints
from recovery.actions import compensations as actions
from recovery.actions import effects as effect_actions
from runs.models import Checkpoint, Effect, Plan
from runs.states import EffectState, EventKind, PlanState, ReviewKind, RunState
from tests.recovery.engine.plans import SOON, accept_rest, carrying, decide, mends, plan_of, start, trip, trips
from tests.recovery.engine.world import World
from tests.recovery.stage import act

__all__ = ["trips"]


def test_what_policy_demands_is_mended_before_it_is_cancelled(trips: World) -> None:
    """cancelling, compensating, cancelled: the hotel must be mended, the flight is named as what stays."""
    w = trips
    run = trip(w, "flight", "hotel", mode="wait")
    w.cancel(run)
    w.drive(jump=SOON)
    plan = plan_of(run)
    assert (plan.state, w.run(run).state) == (PlanState.COMPENSATED, RunState.CANCELLED)
    assert w.effect_states(run) == [EffectState.SUCCEEDED, EffectState.COMPENSATED]
    how = w.run(run).ended_how
    assert [line["effect"] for line in how["left"]] == [str(w.effects(run)[0].pk)]
    assert [(line["code"], line["what"]) for line in how["stays"]] == [
        ("residual", "a fee for ch_2"),
        ("not_chosen", "Flight ch_1"),
    ]
    kinds = [e.kind for e in w.events(run)]
    assert kinds.index(EventKind.RUN_COMPENSATING) < kinds.index(EventKind.RUN_CANCELLED)


def test_what_policy_does_not_demand_is_proposed(trips: World) -> None:
    """Never automatic by default: the run is cancelled, a draft waits for whoever begins it."""
    w = trips
    run = trip(w, "flight", mode="wait")
    sent = len(w.sandbox.requests())
    w.cancel(run)
    w.drive(jump=timedelta(days=2))
    plan = plan_of(run)
    assert (w.run(run).state, plan.state) == (RunState.CANCELLED, PlanState.DRAFT)
    assert plan.why["code"] == "happened_and_cancelled"
    assert len(w.sandbox.requests()) == sent
    start(w, plan)
    w.drive(jump=SOON)
    assert (w.run(run).state, plan_of(run).state) == (RunState.CANCELLED, PlanState.COMPENSATED)
    assert w.effect_states(run) == [EffectState.COMPENSATED]


def test_a_late_success_after_cancelling_is_proposed_not_mended(trips: World) -> None:
    """Fault 33: the effect turns out to have happened when the run is cancelled already; it stays cancelled."""
    w = trips
    w.sandbox.dial("payments", reply="drop", readback="down", times=1)
    run = w.accept("trip.book", "flight")
    w.advance(run)
    w.cancel(run)
    w.drive()
    effect = w.effect(run)
    assert (w.run(run).state, effect.state) == (RunState.CANCELLING, EffectState.UNKNOWN)
    decide(w, effect, "did_not_happen")
    w.drive()
    assert w.run(run).state == RunState.CANCELLED
    assert not Plan.objects.filter(run_id=run).exists()
    w.sandbox.dial("payments", readback="ok")
    effect_actions.check(effect.pk, actor=w.s.oncall_a, act=act("check"))
    assert w.effect(run).state == EffectState.DISPUTED
    decide(w, w.effect(run), "happened")
    w.drive(jump=SOON)
    plan = plan_of(run)
    assert (w.run(run).state, w.effect(run).state) == (RunState.CANCELLED, EffectState.SUCCEEDED)
    assert (plan.state, plan.why["code"]) == (PlanState.DRAFT, "happened_late")
    assert len(w.events(run, EventKind.PLAN_MADE)) == 1
    assert not Effect.objects.filter(mends=effect).exists()


def test_cancelling_while_it_mends_lets_the_plan_end(trips: World) -> None:
    """What is being mended is not left half-way: the plan goes on, and the run ends as cancelled."""
    w = trips
    run = trip(w, "flight", "flight", mode="wait")
    w.sandbox.dial("payments", readback="down")
    w.signal(run, "told")
    w.drive()
    assert w.run(run).state == RunState.COMPENSATING
    w.cancel(run)
    w.drive()
    assert w.run(run).state == RunState.COMPENSATING
    w.sandbox.dial("payments", readback="ok")
    w.drive(jump=SOON)
    assert (w.run(run).state, plan_of(run).state) == (RunState.CANCELLED, PlanState.COMPENSATED)
    assert w.run(run).ended_how["left"] == []


def test_a_cancelled_run_whose_plan_fails_waits_for_people(trips: World) -> None:
    w = trips
    run = trip(w, "hotel", mode="wait")
    w.sandbox.dial("payments", reply="reject", match="un-", times=9)
    w.cancel(run)
    w.drive(jump=timedelta(days=1))
    assert (w.run(run).state, plan_of(run).state) == (RunState.COMPENSATING, PlanState.FAILED)
    assert w.reviews(run) == [ReviewKind.COMPENSATION_INCOMPLETE]
    accept_rest(w, plan_of(run))
    w.drive(jump=SOON)
    assert w.run(run).state == RunState.COMPLETED_UNRESOLVED
    assert [line["code"] for line in w.run(run).ended_how["stays"]] == ["not_mended"]


def test_a_run_whose_checkpoint_is_damaged_is_mended_and_cancelled_too(trips: World) -> None:
    """Neither its data nor its code is needed for what policy demands."""
    w = trips
    run = trip(w, "hotel", mode="wait")
    Checkpoint.objects.filter(run_id=run).update(sealed=b"RCK1 damaged")
    w.cancel(run)
    w.drive(jump=SOON)
    assert (w.run(run).state, plan_of(run).state) == (RunState.CANCELLED, PlanState.COMPENSATED)


def test_stopping_a_plan_settles_the_item_under_way(trips: World) -> None:
    """Stop after the current item: what was sent is settled, the rest is dropped, and the plan is incomplete."""
    w = trips
    run = trip(w, "flight", "flight", mode="wait")
    w.sandbox.dial("payments", reply="drop", match="un-ch_2", times=9, readback="down")
    w.signal(run, "told")
    w.drive()
    plan = plan_of(run)
    assert [e.state for e in mends(plan)] == [EffectState.UNKNOWN, EffectState.PLANNED]
    actions.stop(plan.pk, actor=w.s.oncall_a, act=act("stop"), reason="wait for the airline")
    w.drive()
    assert [e.state for e in mends(plan)] == [EffectState.UNKNOWN, EffectState.CANCELLED]
    assert (carrying(plan).state, plan_of(run).state) == (RunState.CANCELLING, PlanState.RUNNING)
    w.sandbox.dial("payments", readback="ok")
    w.drive(jump=SOON)
    assert (carrying(plan).state, plan_of(run).state) == (RunState.CANCELLED, PlanState.INCOMPLETE)
    assert w.effect_states(run) == [EffectState.SUCCEEDED, EffectState.COMPENSATED]
    start(w, plan)
    w.drive(jump=SOON)
    assert plan_of(run).state == PlanState.COMPENSATED


POINTS = sorted(p for p in failpoints.POINTS if p.startswith(("plan.", "mend.", "compensate.")))


@pytest.mark.parametrize("point", POINTS)
def test_whoever_dies_where_it_is_taken_up(trips: World, point: str) -> None:
    """A crash at each step between two runs' commits costs time only: each is mended once, and shown once (16)."""
    w = trips
    run = w.accept("trip.book", "flight", "hotel", mode="mend")
    died = [0]
    dead = w.worker()

    def end() -> None:
        failpoints.disarm()
        died[0] += 1
        raise Gone

    failpoints.arm(point, end)
    for _ in range(40):
        try:
            with w.as_worker(dead if not died[0] else w.me):
                w.drive(jump=SOON)
            break
        except Gone:
            w.dies(dead)
    assert died == [1], f"nothing came to {point}"
    plan = plan_of(run)
    assert (w.run(run).state, plan.state) == (RunState.COMPENSATED, PlanState.COMPENSATED)
    assert [w.applied(e) for e in mends(plan)] == [1, 1]
    assert Effect.objects.filter(mends__isnull=False).count() == 2
    assert len(w.events(run, EventKind.EFFECT_COMPENSATED)) == 2


class Gone(BaseException):
    """The worker is gone."""
