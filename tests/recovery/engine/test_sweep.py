"""The sweep finds by the record what a lost doorbell would have said; a broker that is away costs time only."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.conf import settings

from recovery import bells, tasks
from recovery.upkeep import sweep
from runs import clock, doorbells
from runs.models import Approval, Worker
from runs.states import AttemptState, EffectState, ReviewKind, RunState
from tests.recovery.engine.world import World
from tests.recovery.signers import sign
from tests.recovery.stage import later


def test_everything_comes_to_its_end_without_a_single_doorbell(w: World) -> None:
    """Faults 5 and 6: accepted and never rung; the sweep starts each, and nothing is done twice."""
    runs = [w.accept("test.chain", "pay", "slow", "mail") for _ in range(3)]
    w.drive()
    assert {w.run(r).state for r in runs} == {RunState.COMPLETED}
    assert all(w.applied(e) == 1 for r in runs for e in w.effects(r))


def test_a_broker_that_is_away_fails_nothing_and_is_not_waited_for(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 1: to accept a run PostgreSQL is enough; the doorbell is lost, the caller does not notice."""
    from console.celery import app

    monkeypatch.setattr(app.conf, "broker_url", "redis://127.0.0.1:9/0")
    monkeypatch.setitem(app.conf, "broker_write_url", "redis://127.0.0.1:9/0")  # its getter falls back to the other
    monkeypatch.setattr(bells, "_quiet_until", 0.0)
    app.set_current()
    app.amqp._producer_pool = None
    app._pool = None
    from kombu import pools

    pools.reset()
    try:
        monkeypatch.setattr(doorbells, "_ringers", [bells.ring])
        began = time.monotonic()
        run = w.accept("test.many", "pay")
        assert time.monotonic() - began < 2, "a request does not wait for the broker"
        assert bells._quiet_until > time.monotonic(), "the broker did not answer, and that was noticed"
        assert bells._publish(tasks.advance, "a", "b") is False
    finally:
        app.amqp._producer_pool = None
        app._pool = None
        pools.reset()
        doorbells._ringers.clear()
    assert settings.CELERY_BROKER_URL != "redis://127.0.0.1:9/0"
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_a_ring_is_not_repeated_each_second(w: World) -> None:
    """A call under way is not rung again and again; a lost ring is, after a while."""
    w.accept("test.many", "pay")
    one = sweep.Sweep()
    assert one.run_once()["runs"] == 1
    assert one.run_once()["runs"] == 0
    one.rung = {mark: at - 4 for mark, at in one.rung.items()}
    assert one.run_once()["runs"] == 1


def test_what_is_rung_already_does_not_hide_what_stands_behind(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It pages: effects that cannot go now (no permit) do not starve the later ones."""
    monkeypatch.setattr(sweep, "PAGE", 2)
    for _ in range(5):
        w.accept("test.many", "pay")
    one = sweep.Sweep()
    assert [one.run_once()["runs"] for _ in range(4)] == [2, 2, 1, 0]


def test_a_dead_senders_attempt_is_given_up_at_once(w: World) -> None:
    """Its worker is silent: nobody waits for the attempt's limit."""
    from recovery import failpoints

    run = w.accept("test.many", "slow")
    w.advance(run)
    gone = w.worker()

    class Death(BaseException):
        pass

    def die() -> None:
        raise Death

    failpoints.arm("send.after", die)
    with w.as_worker(gone), pytest.raises(Death):
        w.dispatch(w.effect(run))
    failpoints.disarm()
    w.pass_once()
    assert w.effect(run).state == EffectState.IN_FLIGHT, "it lives: it may still bring its answer"
    w.dies(gone)
    w.drive()
    assert w.attempts(w.effect(run))[0].state == AttemptState.LOST
    assert w.run(run).state == RunState.COMPLETED


def test_an_attempt_past_its_limit_is_given_up_though_its_sender_lives(w: World) -> None:
    from recovery import failpoints

    run = w.accept("test.many", "slow")
    w.advance(run)

    class Stuck(BaseException):
        pass

    def stuck() -> None:
        raise Stuck

    failpoints.arm("send.after", stuck)
    with pytest.raises(Stuck):
        w.dispatch(w.effect(run))
    failpoints.disarm()
    w.drive(jump=timedelta(seconds=30))
    assert w.run(run).state == RunState.COMPLETED
    assert w.applied(w.effect(run)) == 1


def test_requests_past_their_time_are_ended(w: World) -> None:
    run = w.accept("test.many", "pay", amount=120_500)
    w.drive()
    later(hours=9)
    w.drive()
    assert Approval.objects.get().state == "expired"
    assert w.effect(run).state == EffectState.AWAITING_APPROVAL
    assert w.reviews(run) == [ReviewKind.SIGNATURES_NEEDED]


def test_an_effect_that_nobody_signs_ends_by_its_own_deadline(w: World) -> None:
    run = w.accept("test.many", "pay", amount=120_500)
    w.drive(jump=timedelta(days=3))
    assert (w.effect(run).state, w.run(run).state) == (EffectState.EXPIRED, RunState.FAILED)
    assert w.reviews(run) == []
    assert w.sandbox.requests() == []


def test_a_signature_in_time_is_in_time(w: World) -> None:
    """The other edge: a second before approve_by both signatures count."""
    run = w.accept("test.many", "pay", amount=120_500)
    w.advance(run)
    approval = Approval.objects.get()
    clock.shift(approval.approve_by - clock.now() - timedelta(seconds=30))
    sign(approval, w.s.approver_b)
    sign(approval, w.s.approver_c)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_a_worker_that_gave_up_its_name_frees_what_it_held(w: World) -> None:
    """Where the record is away at the wrong moment, the old name falls silent and another takes the run."""
    from recovery.engine import workers

    run = w.accept("test.many", "slow")
    assert workers._me is not None
    old = workers._me.id
    workers.rename()
    fresh = workers.me("advance")
    try:
        assert fresh.id != old
        assert Worker.objects.filter(pk=fresh.id).exists()
        assert w.advance(run) == "waits: in_flight"
    finally:
        workers._me = w.me
