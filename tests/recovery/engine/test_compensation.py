"""Compensation (invariant 16): a plan is a run whose effects mend others, each at most once, its failure visible."""

from __future__ import annotations

import pytest

from recovery.engine import plans
from runs import clock, record
from runs.errors import LostRace
from runs.models import Effect, Evidence
from runs.states import EffectState, EventKind, PlanState, RunState
from tests.recovery.engine.plans import SOON, carrying, mends, plan_of, propose, sign, trip, trips
from tests.recovery.engine.world import World

__all__ = ["trips"]


def test_a_step_has_everything_mended(trips: World) -> None:
    """The plain path: settle, plan, mend in reverse order, verify by readback, end as compensated."""
    w = trips
    run = trip(w, "flight", "hotel", mode="mend")
    plan = plan_of(run)
    assert (w.run(run).state, plan.state) == (RunState.COMPENSATED, PlanState.COMPENSATED)
    assert w.effect_states(run) == [EffectState.COMPENSATED, EffectState.COMPENSATED]
    assert [e.describe for e in mends(plan)] == ["Cancel booking un-ch_2", "Cancel booking un-ch_1"]
    assert [e.key for e in mends(plan)] == [f"compensate:{e.pk}" for e in reversed(w.effects(run))]
    for effect in mends(plan):
        assert (effect.state, w.applied(effect)) == (EffectState.SUCCEEDED, 1)
        assert Evidence.objects.filter(effect=effect, kind="readback", claim="happened").exists()
    assert carrying(plan).state == RunState.COMPLETED
    assert [line["what"] for line in plan.stays] == ["a fee for ch_2"]
    assert w.run(run).ended_how["stays"] == plan.stays
    kinds = [e.kind for e in w.events(run)]
    assert kinds.index(EventKind.PLAN_STARTED) < kinds.index(EventKind.EFFECT_COMPENSATED)
    assert w.reviews(run) == []


def test_a_step_hears_how_it_ended(trips: World) -> None:
    w = trips
    run = trip(w, "flight", mode="mend_then")
    assert w.run(run).state == RunState.COMPLETED
    assert w.heard(run) == ["succeeded", ["compensated", 1, 1, 0]]


def test_the_order_is_that_of_the_contracts(trips: World) -> None:
    """``after`` before reverse order: the charge came last and is given back last, with signatures of its own (R15)."""
    w = trips
    run = trip(w, "hotel", "flight", "charge", mode="mend")
    plan = plan_of(run)
    flight, hotel, charge = mends(plan)
    assert [e.describe for e in (flight, hotel, charge)] == [
        "Cancel booking un-ch_2",
        "Cancel booking un-ch_1",
        "Give back EUR 84.00 for un-ch_3",
    ]
    assert charge.state == EffectState.AWAITING_APPROVAL
    assert w.effect_states(run) == [EffectState.COMPENSATED, EffectState.COMPENSATED, EffectState.SUCCEEDED]
    assert (w.run(run).state, plan.state) == (RunState.COMPENSATING, PlanState.RUNNING)
    sign(w, charge)
    w.drive(jump=SOON)
    assert (w.run(run).state, plan_of(run).state) == (RunState.COMPENSATED, PlanState.COMPENSATED)


def test_the_database_admits_one_compensation_of_an_effect(trips: World) -> None:
    """Invariant 16 by constraint: whatever the key, a second one of the same generation is refused."""
    w = trips
    run = trip(w, "flight", mode="mend")
    (mending,) = mends(plan_of(run))
    row = {f.attname: getattr(mending, f.attname) for f in Effect._meta.concrete_fields}
    row |= {"id": record.new_id(), "key": "another", "sent_key": "another", "ordinal": 9, "state": EffectState.READY}
    row |= {"settled_at": None, "result": None, "reason": None}
    entry = record.Entry(EventKind.EFFECT_ASKED, {}, [record.new("effect", row, {"requested_at": 0})])
    with pytest.raises(LostRace) as refused:
        record.commit(record.Commit(w.s.here.pk, w.effect(run).run_id, [entry]))
    assert refused.value.facts["thing"] == "effect_mended_once"


def test_one_open_plan_a_run(trips: World) -> None:
    """By constraint: a second draft loses against the first."""
    w = trips
    run = trip(w, "flight")
    first = propose(w, run)
    effects = w.effects(run)
    made = plans.make(w.s.here.pk, run, effects, now=clock.now(), why={"code": "t", "facts": {}})
    with pytest.raises(LostRace) as refused:
        record.commit(record.Commit(w.s.here.pk, run, made.entries))
    assert refused.value.facts["thing"] == "plan_one_open"
    assert plan_of(run).pk == first.pk
