"""Sending again what is known not to have been applied: within limits, by one layer (invariant 10)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs import clock
from runs.models import Dependency
from runs.states import AttemptState, EffectState, RunState
from tests.recovery.engine.contracts import RETRY
from tests.recovery.engine.world import World, look
from tests.recovery.stage import later


def test_a_503_is_sent_again_with_the_same_key(w: World) -> None:
    """The contract says that a 503 comes before anything is applied: transient, again after a pause."""
    w.sandbox.dial("payments", reply="refuse", times=2)
    run = w.accept("test.many", "pay")
    w.drive(jump=timedelta(minutes=1))
    effect = w.effect(run)
    assert (w.run(run).state, effect.attempts) == (RunState.COMPLETED, 3)
    assert {r["intent"] for r in w.sandbox.requests()} == {effect.sent_key}
    assert w.applied(effect) == 1


def test_being_told_to_come_later_uses_up_no_try_and_is_heeded(w: World) -> None:
    """Fault 16: 429 counts against time, not tries; Retry-After is the least pause."""
    w.sandbox.dial("payments", reply="overload", retry_after=30, times=RETRY.attempts + 2)
    run = w.accept("test.many", "pay")
    w.advance(run)
    effect = w.effect(run)
    assert effect.state == EffectState.READY
    assert effect.not_before is not None and effect.not_before >= clock.now() + timedelta(seconds=29)
    assert w.dispatch(effect) == "pause", "a doorbell does not shorten the pause"
    w.drive(jump=timedelta(minutes=10))
    assert w.run(run).state == RunState.COMPLETED
    assert w.effect(run).attempts == RETRY.attempts + 3
    assert w.applied(effect) == 1


def test_tries_are_bounded(w: World) -> None:
    """Invariant 10: so many tries and no more; it is then known not to have happened, and the step decides."""
    w.sandbox.dial("payments", reply="refuse")
    run = w.accept("test.many", "pay")
    w.drive(jump=timedelta(minutes=30))
    effect = w.effect(run)
    assert (effect.state, effect.reason["code"]) == (EffectState.NOT_APPLIED, "tries_used_up")
    assert len(w.sandbox.requests()) == RETRY.attempts
    assert w.run(run).state == RunState.FAILED


def test_time_is_bounded_too(w: World) -> None:
    """Invariant 10: total time from the first send, whatever the other side says about coming later."""
    w.sandbox.dial("payments", reply="overload", retry_after=700)
    run = w.accept("test.many", "pay")
    w.drive(jump=timedelta(hours=3))
    effect = w.effect(run)
    assert (effect.state, effect.reason["code"]) == (EffectState.NOT_APPLIED, "tries_used_up")
    assert len(w.sandbox.requests()) <= RETRY.total / timedelta(seconds=700) + 2


def test_a_refused_connection_is_known_not_sent(w: World) -> None:
    """Fault 14: no byte left, so it is no unknown; the same key again when somebody listens."""
    Dependency.objects.filter(name="payments").update(base_url="http://127.0.0.1:9/payments")
    run = w.accept("test.many", "pay")
    w.advance(run)
    effect = w.effect(run)
    (attempt,) = w.attempts(effect)
    assert (attempt.state, effect.state) == (AttemptState.NOT_SENT, EffectState.READY)
    assert w.reviews(run) == []
    look(w)
    # The bytes and the address were fixed when the effect was asked for.
    assert effect.request["url"].startswith("http://127.0.0.1:9/")


def test_a_missing_credential_sends_nothing_and_ends_within_the_budget(w: World) -> None:
    Dependency.objects.filter(name="payments").update(credential="not-in-this-process")
    run = w.accept("test.many", "pay")
    w.drive(jump=timedelta(minutes=30))
    effect = w.effect(run)
    assert effect.state == EffectState.NOT_APPLIED
    assert {a.outcome["code"] for a in w.attempts(effect)} == {"credential_missing"}
    assert w.sandbox.requests() == []


def test_nothing_is_sent_after_the_effects_deadline(w: World) -> None:
    """Invariant 12: expired work is not sent."""
    w.sandbox.dial("payments", reply="refuse", times=1)
    run = w.accept("test.many", "pay")
    w.advance(run)
    later(days=3)
    w.drive()
    assert w.effect(run).state == EffectState.EXPIRED
    assert len(w.sandbox.requests()) == 1
    assert w.run(run).state == RunState.FAILED


@pytest.mark.parametrize("name", ["pay", "card", "mail", "notice"])
def test_what_the_business_refused_is_not_sent_again(w: World, name: str) -> None:
    """A rejection is an answer: the step decides."""
    w.sandbox.reset()
    provider = {"pay": "payments", "card": "cards-eu", "mail": "mail", "notice": "notices"}[name]
    w.sandbox.dial(provider, reply="reject")
    run = w.accept("test.many", name)
    w.drive(jump=timedelta(hours=1))
    assert w.effect(run).state == EffectState.REJECTED
    assert len(w.sandbox.requests()) == 1


def test_a_paused_sender_does_not_send_after_its_time(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault 25: a worker that slept between its commit and its send finds that its time is over."""
    from recovery import failpoints

    asleep = [0.0]
    awake = clock.elapsed
    monkeypatch.setattr(clock, "elapsed", lambda: awake() + asleep[0])
    failpoints.arm("advance.after_commit", lambda: asleep.__setitem__(0, 60.0))
    run = w.accept("test.many", "pay")
    w.advance(run)
    assert w.sandbox.requests() == []
    (attempt,) = w.attempts(w.effect(run))
    assert (attempt.state, attempt.outcome["code"]) == (AttemptState.NOT_SENT, "too_late")
