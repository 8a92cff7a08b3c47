"""Compensations that do not work: the original stays, the plan says so, a person is asked (faults 54 to 56)."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import UUID

import pytest

from recovery import failpoints
from recovery.actions import effects as effect_actions
from recovery.actions import runs as run_actions
from recovery.compensation import CompensationRun
from recovery.contract import registry
from recovery.contract.errors import UnknownRunType
from runs.errors import StaleVersion
from runs.models import Effect, Plan, Run
from runs.states import EffectState, EventKind, PlanState, ReviewKind, RunState, WaitingOn
from tests.recovery import signers
from tests.recovery.engine.plans import (
    SOON,
    accept_rest,
    carrying,
    decide,
    mends,
    plan_of,
    sign,
    start,
    trip,
    trips,
)
from tests.recovery.engine.world import World
from tests.recovery.stage import act

__all__ = ["trips"]


def refused(w: World, *names: str, match: str) -> UUID:
    """A trip whose compensation of one item is refused by the other side."""
    run = w.accept("trip.book", *names, mode="wait")
    w.drive(jump=SOON)
    w.sandbox.dial("payments", reply="reject", match=match, times=9)
    w.signal(run, "told")
    w.drive(jump=SOON)
    return run


def test_a_failure_leaves_the_original_and_asks_a_person(trips: World) -> None:
    """Fault 54: original still succeeded, item refused, plan failed, review open, and nothing goes on by itself."""
    w = trips
    run = refused(w, "flight", match="un-")
    plan, original = plan_of(run), w.effect(run)
    assert (original.state, plan.state) == (EffectState.SUCCEEDED, PlanState.FAILED)
    assert [e.state for e in mends(plan)] == [EffectState.REJECTED]
    assert carrying(plan).state == RunState.FAILED
    assert w.run(run).state == RunState.COMPENSATING
    assert w.reviews(run) == [ReviewKind.COMPENSATION_INCOMPLETE]
    asked = len(w.sandbox.requests())
    w.drive(jump=timedelta(days=2))
    assert len(w.sandbox.requests()) == asked, "no silent loop"
    assert w.run(run).state == RunState.COMPENSATING


def test_two_of_three_is_incomplete_and_goes_on_with_the_third(trips: World) -> None:
    """Fault 55: each item has its own key; begun again, only what is left is asked for, once more under its key."""
    w = trips
    run = refused(w, "flight", "flight", "flight", match="un-ch_2")
    plan = plan_of(run)
    assert plan.state == PlanState.INCOMPLETE
    (ended,) = w.events(run, EventKind.PLAN_ENDED)
    assert (ended.data["mended"], ended.data["of"]) == (2, 3)
    assert [line["code"] for line in plan.stays] == ["not_mended"]
    first = carrying(plan)
    w.sandbox.dial("payments", reply="ok")
    start(w, plan)
    w.drive(jump=SOON)
    plan = plan_of(run)
    assert (plan.state, w.run(run).state) == (PlanState.COMPENSATED, RunState.COMPENSATED)
    again = mends(plan)
    assert carrying(plan).pk != first.pk and len(again) == 1
    assert (again[0].generation, again[0].sent_key) == (2, f"compensate:{again[0].mends_id}/2")
    assert w.reviews(run) == []


def test_what_needs_a_failed_item_is_not_asked_for_and_the_rest_is(trips: World) -> None:
    """A failure blocks what the contracts put after it, and nothing else."""
    w = trips
    run = refused(w, "hotel", "flight", "charge", match="un-ch_2")
    plan = plan_of(run)
    assert [e.state for e in mends(plan)] == [EffectState.REJECTED, EffectState.SUCCEEDED, EffectState.CANCELLED]
    assert w.effect_states(run) == [EffectState.COMPENSATED, EffectState.SUCCEEDED, EffectState.SUCCEEDED]
    assert plan.state == PlanState.INCOMPLETE


def test_an_unknown_compensation_never_shows_the_original_as_mended(trips: World) -> None:
    """Fault 56: unknown like any effect; only its proof changes what is shown."""
    w = trips
    run = w.accept("trip.book", "flight", mode="wait")
    w.drive(jump=SOON)
    w.sandbox.dial("payments", reply="drop", match="un-", times=9, readback="down")
    w.signal(run, "told")
    w.drive(jump=timedelta(seconds=2))
    plan = plan_of(run)
    assert mends(plan)[0].state == EffectState.UNKNOWN
    assert (w.effect(run).state, plan.state) == (EffectState.SUCCEEDED, PlanState.RUNNING)
    w.sandbox.dial("payments", readback="ok", reply="ok")
    w.drive(jump=SOON)
    assert (w.effect(run).state, plan_of(run).state) == (EffectState.COMPENSATED, PlanState.COMPENSATED)
    assert w.applied(mends(plan)[0]) == 1


def test_an_answer_alone_does_not_verify(trips: World) -> None:
    """Verified by readback: while the authority shows nothing, the original is not shown as mended."""
    w = trips
    run = w.accept("trip.book", "flight", "flight", mode="wait")
    w.drive(jump=SOON)
    w.sandbox.dial("payments", readback="down")
    w.signal(run, "told")
    w.drive(jump=timedelta(seconds=30))
    plan = plan_of(run)
    assert [e.state for e in mends(plan)] == [EffectState.SUCCEEDED, EffectState.PLANNED], "what comes next waits"
    assert w.effect_states(run) == [EffectState.SUCCEEDED, EffectState.SUCCEEDED]
    waiting = carrying(plan)
    assert (waiting.state, waiting.waiting_on, waiting.lease_owner) == (RunState.WAITING, WaitingOn.DEPENDENCY, None)
    w.drive(jump=timedelta(minutes=15))
    assert w.reviews(run) == [ReviewKind.COMPENSATION_INCOMPLETE], "a person sees what cannot be verified"
    w.sandbox.dial("payments", readback="ok")
    w.drive(jump=SOON)
    assert plan_of(run).state == PlanState.COMPENSATED
    assert w.reviews(run) == []


def shows(w: World, effect: Effect, **facts: object) -> None:
    """Somebody else changes what the other side has of ``effect``."""
    with w.sandbox.store.transaction() as db:
        row = db.execute("select seq, item from effects where key = ?", (effect.sent_key,)).fetchone()
        item = {**json.loads(row["item"]), **facts}
        db.execute("update effects set item = ? where seq = ?", (json.dumps(item), row["seq"]))


def test_somebody_elses_later_change_is_not_overwritten(trips: World) -> None:
    """The authority's version has moved: the item is left and a person asked; begun again, it is known and goes."""
    w = trips
    run = w.accept("trip.book", "flight", "hotel", mode="wait")
    w.drive(jump=SOON)
    hotel = w.effects(run)[1]
    shows(w, hotel, version=9)
    w.signal(run, "told")
    w.drive(jump=SOON)
    plan = plan_of(run)
    assert [e.state for e in mends(plan)] == [EffectState.CANCELLED, EffectState.SUCCEEDED]
    assert mends(plan)[0].reason == {
        "code": "changed_by_others",
        "facts": {"what": "Hotel ch_2", "knew": 1, "now": 9},
    }
    assert w.applied(mends(plan)[0]) == 0
    assert (plan.state, plan.revision) == (PlanState.INCOMPLETE, 2)
    assert next(i for i in plan.items if i["effect"] == str(hotel.pk))["knew"] == 9
    start(w, plan)
    w.drive(jump=SOON)
    assert plan_of(run).state == PlanState.COMPENSATED


def test_an_original_that_does_not_answer_is_waited_for(trips: World) -> None:
    w = trips
    run = w.accept("trip.book", "hotel", mode="wait")
    w.drive(jump=SOON)
    w.sandbox.dial("payments", readback="down")
    w.signal(run, "told")
    w.drive(jump=timedelta(minutes=2))
    plan = plan_of(run)
    assert mends(plan)[0].state == EffectState.PLANNED
    assert carrying(plan).gate[0]["code"] == "original_unanswered"
    w.sandbox.dial("payments", readback="ok")
    w.drive(jump=SOON)
    assert plan_of(run).state == PlanState.COMPENSATED


def test_a_compensation_that_nobody_signs_is_declined_and_seen(trips: World) -> None:
    """R15: it needs signatures of its own, whatever was signed for the original."""
    w = trips
    run = trip(w, "charge", mode="mend")
    plan = plan_of(run)
    (giving,) = mends(plan)
    assert giving.state == EffectState.AWAITING_APPROVAL
    approval = giving.approvals.get()
    assert approval.precondition == {"mends": "Charge ch_1", "state": "succeeded"}
    signers.reject(approval, w.s.approver_b)
    w.drive(jump=SOON)
    assert mends(plan)[0].state == EffectState.DECLINED
    assert plan_of(run).state == PlanState.FAILED
    assert w.effect(run).state == EffectState.SUCCEEDED


def test_signed_with_the_original_needs_no_signature_again(trips: World) -> None:
    """R15: pre-approved in the digest that was signed."""
    w = trips
    run = trip(w, "signed", mode="mend")
    sign(w, w.effect(run))
    w.drive(jump=SOON)
    plan = plan_of(run)
    assert plan.items[0]["approved"] and plan.items[0]["signatures"] == 0
    assert (plan.state, w.run(run).state) == (PlanState.COMPENSATED, RunState.COMPENSATED)
    assert not mends(plan)[0].approvals.exists()


def test_a_signer_who_lost_the_right_leaves_it_to_be_signed_anew(trips: World) -> None:
    w = trips
    run = w.accept("trip.book", "signed", mode="wait")
    w.drive(jump=SOON)
    sign(w, w.effect(run))
    w.drive(jump=SOON)
    w.s.approvers.members.remove(w.s.approver_b)
    w.s.approvers.members.add(w.s.approver_f)
    w.signal(run, "told")
    w.drive(jump=SOON)
    assert mends(plan_of(run))[0].state == EffectState.AWAITING_APPROVAL


def test_what_cannot_be_mended_stands_in_the_plan(trips: World) -> None:
    """The e-mail was read: the rest is mended, and the plan says what stays."""
    w = trips
    run = trip(w, "letter", "flight", mode="mend")
    plan = plan_of(run)
    assert plan.state == PlanState.COMPENSATED
    assert [i["left_out"] and i["left_out"]["code"] for i in plan.items] == [None, "irreversible"]
    assert [line["code"] for line in w.run(run).ended_how["stays"]] == ["irreversible"]


def test_nothing_that_could_be_mended_is_a_failure_not_a_success(trips: World) -> None:
    w = trips
    run = trip(w, "letter", mode="mend")
    assert (w.run(run).state, plan_of(run).state) == (RunState.COMPENSATING, PlanState.FAILED)
    assert w.reviews(run) == [ReviewKind.COMPENSATION_INCOMPLETE]


def test_nothing_happened_is_mended_already(trips: World) -> None:
    w = trips
    w.sandbox.dial("payments", reply="reject", times=1)
    run = trip(w, "flight")
    assert w.run(run).state == RunState.COMPENSATED
    assert not Plan.objects.filter(run_id=run).exists()


def test_an_accepted_residue_ends_the_run_as_unresolved(trips: World) -> None:
    """Two people: the plan ends, what stays is named, the original still stands."""
    w = trips
    run = refused(w, "flight", "flight", match="un-ch_1")
    accept_rest(w, plan_of(run))
    w.drive(jump=SOON)
    row = w.run(run)
    assert (row.state, plan_of(run).state) == (RunState.COMPLETED_UNRESOLVED, PlanState.ENDED)
    assert row.ended_how["code"] == "residue_accepted"
    assert (row.ended_how["facts"]["mended"], row.ended_how["facts"]["of"]) == (1, 2)
    assert w.effect_states(run) == [EffectState.SUCCEEDED, EffectState.COMPENSATED]
    assert w.reviews(run) == []


def test_a_mending_effect_in_doubt_puts_the_original_in_doubt(trips: World) -> None:
    """The authority later contradicts the compensation: the original is not shown as mended any longer."""
    w = trips
    run = trip(w, "flight", mode="mend")
    (mending,) = mends(plan_of(run))
    shows(w, mending, status="failed")
    w.drive(jump=timedelta(minutes=2))
    effect_actions.check(mending.pk, actor=w.s.oncall_a, act=act("check"))
    w.drive(jump=SOON)
    assert Effect.objects.get(pk=mending.pk).state == EffectState.DISPUTED
    assert w.effect(run).state == EffectState.DISPUTED
    assert w.reviews(run) == [ReviewKind.EVIDENCE_DISAGREES]
    assert w.run(run).state == RunState.COMPENSATED, "an ended run stays ended"
    decide(w, mending, "happened")
    decide(w, w.effect(run), "happened")
    w.drive(jump=SOON)
    assert w.effect(run).state == EffectState.COMPENSATED, "what people say of the compensation shows here too"


def test_looking_at_what_was_mended_changes_nothing(trips: World) -> None:
    """The authority still shows the booking that was made, or does not: it stays mended."""
    w = trips
    run = trip(w, "flight", mode="mend")
    effect_actions.check(w.effect(run).pk, actor=w.s.oncall_a, act=act("check"))
    assert w.effect(run).state == EffectState.COMPENSATED


def test_a_plan_that_takes_too_long_ends_and_is_seen(trips: World) -> None:
    """``deadline``: what nobody signed by then is not sent any more, and a person sees what is left."""
    w = trips
    run = trip(w, "quick", mode="mend")
    plan = plan_of(run)
    assert (mends(plan)[0].state, plan.state) == (EffectState.EXPIRED, PlanState.FAILED)
    assert w.effect(run).state == EffectState.SUCCEEDED
    assert w.reviews(run) == [ReviewKind.COMPENSATION_INCOMPLETE]
    assert w.applied(mends(plan)[0]) == 0


def test_a_plan_that_cannot_be_begun_is_seen(trips: World) -> None:
    """A contract that went away since: nothing is asked for again and again, a person is asked."""
    w = trips
    run = trip(w, "flight", "flight", mode="wait")
    gone = {("trip.unbook", 1): registry._registry._effects["trip.unbook", 1]}

    def away() -> None:
        registry._registry._effects.pop(("trip.unbook", 1), None)

    failpoints.arm("plan.before_accept", away)
    w.signal(run, "told")
    w.drive(jump=SOON)
    plan = plan_of(run)
    assert (plan.state, w.run(run).state) == (PlanState.FAILED, RunState.COMPENSATING)
    assert w.reviews(run) == [ReviewKind.COMPENSATION_INCOMPLETE]
    assert not Run.objects.filter(type="recourse.compensation").exists()
    failpoints.disarm()
    registry._registry._effects.update(gone)
    start(w, plan)
    w.drive(jump=SOON)
    assert plan_of(run).state == PlanState.COMPENSATED


def test_a_quarantined_plan_run_is_seen_and_begun_anew(trips: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours in the middle of it: the plan says how far it came; once that run is cancelled, another one goes
    on with what is left.
    """

    def settled(self: object, run: object, outcome: object) -> None:
        raise RuntimeError("ours")

    w = trips
    with monkeypatch.context() as patched:
        patched.setattr(CompensationRun, "settled", settled)
        run = trip(w, "flight", "flight", mode="mend")
    plan = plan_of(run)
    assert (carrying(plan).state, plan.state) == (RunState.QUARANTINED, PlanState.INCOMPLETE)
    assert w.effect_states(run) == [EffectState.SUCCEEDED, EffectState.COMPENSATED]
    with pytest.raises(StaleVersion):
        start(w, plan)
    w.cancel(carrying(plan).pk)
    w.drive(jump=SOON)
    start(w, plan)
    w.drive(jump=SOON)
    assert (plan_of(run).state, w.run(run).state) == (PlanState.COMPENSATED, RunState.COMPENSATED)


def test_verified_by_its_answer_where_nothing_can_be_read(trips: World) -> None:
    w = trips
    run = trip(w, "posted", mode="mend")
    assert plan_of(run).state == PlanState.COMPENSATED


def test_unknown_at_a_provider_without_keys_waits_for_a_person(trips: World) -> None:
    """Neither key nor readback: once, and on doubt a person; meanwhile the original is not shown as mended."""
    w = trips
    run = w.accept("trip.book", "posted", mode="wait")
    w.drive(jump=SOON)
    w.sandbox.dial("notices", reply="drop")
    w.signal(run, "told")
    w.drive(jump=timedelta(hours=2))
    plan = plan_of(run)
    (mending,) = mends(plan)
    assert (mending.state, w.effect(run).state) == (EffectState.UNKNOWN, EffectState.SUCCEEDED)
    assert plan.state == PlanState.RUNNING
    assert w.reviews(carrying(plan).pk) == [ReviewKind.OUTCOME_UNKNOWN]
    assert mending.attempts == 1


def test_nobody_starts_a_compensation_run_by_hand(trips: World) -> None:
    w = trips
    with pytest.raises(UnknownRunType):
        run_actions.accept(w.s.here, "recourse.compensation", {}, actor=w.s.oncall_a, act=act("accept"))
    assert not Run.objects.exists()
