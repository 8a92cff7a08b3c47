"""An effect whose contract this code does not have: its gate says so, and it is done when the code is back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from recovery import failpoints
from recovery.contract import registry
from recovery.engine import reconcile
from recovery.engine.dispatch import dispatch
from runs.states import EffectState, EventKind, RunState
from tests.recovery.engine.world import World


@contextmanager
def without(operation: str) -> Iterator[None]:
    """This worker's code has no such contract."""
    kept = registry._registry._effects
    taken = kept.pop((operation, 1))
    try:
        yield
    finally:
        kept[operation, 1] = taken


def test_what_is_ready_waits_and_says_for_what(w: World) -> None:
    run = w.accept("test.many", "slow")
    w.advance(run)
    with without("test.slow"):
        assert dispatch(w.effect(run).pk) == "version_missing"
        gate = w.effect(run).decision
        assert (gate["reason"], gate["facts"]["operation"]) == ("contract_missing", "test.slow")
        w.drive()
        before = len(w.events(run))
        w.drive(jump=timedelta(seconds=50))
        assert len(w.events(run)) == before, "not again and again"
        w.drive(jump=timedelta(seconds=61))
        assert len(w.events(run)) == before + 1
        assert w.effect(run).state == EffectState.READY and w.sandbox.requests() == []
    w.drive(jump=timedelta(minutes=2))
    assert w.run(run).state == RunState.COMPLETED


def test_what_is_unknown_is_looked_for_when_the_code_is_back(w: World) -> None:
    w.sandbox.dial("payments", reply="drop", times=1)
    run = w.accept("test.many", "pay")
    w.advance(run)
    with without("test.pay"):
        assert reconcile.reconcile(w.effect(run).pk) == "version_missing"
        assert w.effect(run).decision["reason"] == "contract_missing"
        assert w.effect(run).state == EffectState.UNKNOWN
    w.drive(jump=timedelta(minutes=5))
    assert w.run(run).state == RunState.COMPLETED
    assert w.applied(w.effect(run)) == 1


def test_an_attempt_of_a_dead_sender_is_lost_without_any_code(w: World) -> None:
    """Invariant 4: nobody knows, so it is unknown, and visible as such."""
    run = w.accept("test.many", "pay")
    old = w.worker()
    failpoints.arm("advance.after_commit", "raise")
    with w.as_worker(old):
        try:
            w.advance(run)
        except failpoints.Failpoint:
            failpoints.disarm()
    w.dies(old)
    (attempt,) = w.attempts(w.effect(run))
    with without("test.pay"):
        assert reconcile.lose(attempt.pk) == "version_missing"
        effect = w.effect(run)
        assert (effect.state, effect.attempts, w.attempts(effect)[0].state) == (EffectState.UNKNOWN, 1, "lost")
        assert effect.unknown_since is not None
        assert len(w.events(run, EventKind.EFFECT_UNKNOWN)) == 1
    w.drive(jump=timedelta(minutes=10))
    assert w.run(run).state == RunState.COMPLETED
    assert w.applied(w.effect(run)) == 1
