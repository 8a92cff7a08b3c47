"""In quarantine, and while a person is asked, nothing happens: what was handed over before stays unsent."""

from __future__ import annotations

from uuid import UUID

from recovery.upkeep.sweep import Sweep
from runs import record
from runs.states import EffectState, RunState, WaitingOn
from tests.recovery.engine.world import World


def _handed(w: World) -> UUID:
    """A run whose refund is ready to be sent, and that stands in quarantine."""
    run = w.accept("test.many", "slow")
    w.advance(run)
    row = {"state": RunState.QUARANTINED, "waiting_on": "", "wake_at": None}
    w.s.write(run, record.run_moves(row, prior=[RunState.WAITING]))
    return run


def test_a_ready_effect_stays_unsent(w: World) -> None:
    run = _handed(w)
    w.dispatch(w.effect(run))
    assert (w.effect(run).state, w.effect(run).attempts) == (EffectState.READY, 0)
    assert w.sandbox.requests() == []


def test_nobody_is_rung_for_it(w: World) -> None:
    _handed(w)
    assert Sweep().run_once()["ready"] == 0


def test_cancelling_it_drops_what_was_not_sent(w: World) -> None:
    run = _handed(w)
    w.cancel(run)
    w.drive()
    assert (w.effect(run).state, w.run(run).state) == (EffectState.CANCELLED, RunState.CANCELLED)


def test_nothing_is_sent_while_a_person_is_asked_whether_the_run_goes_on(w: World) -> None:
    """Invariant 13: what was handed over before the gap waits for the answer, by doorbell and by sweep alike."""
    run = w.accept("test.many", "slow")
    w.advance(run)
    asked = record.run_moves({"waiting_on": WaitingOn.PERSON, "wake_at": None}, prior=[RunState.WAITING])
    w.s.write(run, asked)
    w.dispatch(w.effect(run))
    assert Sweep().run_once()["ready"] == 0
    assert (w.effect(run).state, w.effect(run).attempts) == (EffectState.READY, 0)
    assert w.sandbox.requests() == []
