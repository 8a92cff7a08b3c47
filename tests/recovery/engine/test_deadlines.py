"""The run's own deadline: nothing new is sent, what was sent is settled, then it has expired."""

from __future__ import annotations

from datetime import timedelta

from runs import clock
from runs.models import Approval
from runs.states import ApprovalState, EffectState, EventKind, ReviewKind, RunState
from tests.recovery.engine.world import World
from tests.recovery.stage import later


def test_a_run_that_still_waits_expires(w: World) -> None:
    run = w.accept("test.bounded", "pay", amount=120_500)
    w.drive()
    assert w.run(run).deadline <= clock.now() + timedelta(hours=2)
    later(hours=3)
    w.drive()
    assert (w.run(run).state, w.effect(run).state) == (RunState.EXPIRED, EffectState.EXPIRED)
    assert Approval.objects.get().state in (ApprovalState.REVOKED, ApprovalState.EXPIRED)
    assert w.reviews(run) == []
    assert w.sandbox.requests() == []


def test_an_effect_lives_no_longer_than_its_run(w: World) -> None:
    run = w.accept("test.bounded", "slow")
    w.advance(run)
    assert w.effect(run).deadline == w.run(run).deadline


def test_an_unknown_outlives_the_deadline_and_costs_nothing_meanwhile(w: World) -> None:
    """Invariants 4 and 11: no clock ends an unknown; the run waits for it and is not looked at all the time."""
    w.sandbox.dial("notices", reply="drop")
    run = w.accept("test.bounded", "notice")
    w.advance(run)
    later(hours=3)
    w.drive()
    assert (w.run(run).state, w.effect(run).state) == (RunState.WAITING, EffectState.UNKNOWN)
    looked = len(w.events(run, EventKind.RUN_LEASED))
    w.drive(jump=timedelta(hours=5))
    assert len(w.events(run, EventKind.RUN_LEASED)) == looked
    assert w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN]


def test_it_expires_when_the_unknown_is_settled(w: World) -> None:
    w.sandbox.dial("payments", reply="drop", times=1)
    w.sandbox.dial("payments", readback="down")
    run = w.accept("test.bounded", "pay")
    w.advance(run)
    later(hours=3)
    w.drive()
    assert w.run(run).state == RunState.WAITING
    w.sandbox.dial("payments", readback="ok")
    w.drive(jump=timedelta(hours=1))
    assert (w.effect(run).state, w.run(run).state) == (EffectState.SUCCEEDED, RunState.EXPIRED)
    assert w.heard(run) == [], "no step is called after the deadline"
