"""An answer that comes while the record is away: kept, and committed when it is back (faults 7, 8 and 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import OperationalError, connection

from recovery import failpoints
from recovery.engine import insisting, letting_go, reading, workers
from recovery.engine.dispatch import dispatch
from runs import record
from runs.models import Effect, Evidence
from runs.states import AttemptState, Claim, EffectState, EventKind, RunState
from tests.recovery.engine.world import World


def away_for(tries: int) -> Callable[[], None]:
    """The record cannot be reached; it is back when it was tried so often."""
    right = connection.settings_dict["HOST"]
    left = [tries]

    def sleep(seconds: float) -> None:
        left[0] -= 1
        if left[0] == 0:
            connection.settings_dict["HOST"] = right

    def go() -> None:
        failpoints.disarm()
        connection.close()
        connection.settings_dict["HOST"] = "/nowhere"
        insisting.time.sleep = sleep  # type: ignore[assignment]

    return go


@pytest.fixture
def no_real_sleep(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The pauses are the seam: time does not pass in them. The record can be reached again afterwards in any case."""
    right = connection.settings_dict["HOST"]

    class Time:
        monotonic = staticmethod(insisting.time.monotonic)
        sleep = staticmethod(insisting.time.sleep)

    monkeypatch.setattr(insisting, "time", Time)
    yield
    connection.settings_dict["HOST"] = right


@pytest.mark.usefixtures("no_real_sleep")
def test_a_sender_keeps_the_answer_until_the_record_is_back(w: World) -> None:
    run = w.accept("test.many", "slow")
    w.advance(run)
    failpoints.arm("dispatch.before_outcome", away_for(3))
    assert dispatch(w.effect(run).pk) == EffectState.SUCCEEDED
    (attempt,) = w.attempts(w.effect(run))
    assert attempt.state == AttemptState.ANSWERED
    w.drive()
    assert w.run(run).state == RunState.COMPLETED and len(w.sandbox.requests()) == 1


@pytest.mark.usefixtures("no_real_sleep")
def test_an_owner_keeps_the_answer_too_and_gives_the_run_back(w: World) -> None:
    run = w.accept("test.chain", "pay", "pay")
    failpoints.arm("advance.before_outcome", away_for(2))
    with pytest.raises(OperationalError):
        w.advance(run)
    (effect,) = w.effects(run)
    assert (effect.state, w.run(run).lease_owner) == (EffectState.SUCCEEDED, None)
    w.drive(jump=timedelta(seconds=5))
    assert w.run(run).state == RunState.COMPLETED
    assert [w.applied(e) for e in w.effects(run)] == [1, 1]


@pytest.mark.usefixtures("no_real_sleep")
def test_a_commit_that_was_applied_is_not_kept_as_late(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault 7: the second try finds its own work done; the answer is there once, and nobody calls it late."""
    run = w.accept("test.many", "slow")
    w.advance(run)
    effect = w.effect(run)
    real, lost = record.commit, [False]

    def commit(given: record.Commit) -> record.Committed:
        done = real(given)
        if given.entries[-1].kind == EventKind.EFFECT_SETTLED and not lost[0]:
            lost[0] = True
            raise OperationalError("the answer of the commit is lost")
        return done

    monkeypatch.setattr("recovery.engine.dispatch.record.commit", commit)
    insisting.time.sleep = lambda seconds: None  # type: ignore[assignment]
    dispatch(effect.pk)
    assert lost[0] and Evidence.objects.filter(effect=effect).count() == 1
    assert w.events(run, EventKind.EVIDENCE_RECEIVED) == []
    assert w.effect(run).state == EffectState.SUCCEEDED


def test_what_a_readback_said_and_no_column_holds_is_a_check_without_an_answer(w: World) -> None:
    """An author's function gives a number beyond 64 bits: the effect is looked at again, and a person is told."""
    w.sandbox.dial("cards-eu", reply="drop", times=1)
    run = w.accept("test.many", "card")
    w.advance(run)
    with pytest.MonkeyPatch.context() as odd:
        odd.setattr(reading, "read", _beyond(reading.read))
        w.reconcile(w.effect(run))
    (seen,) = Evidence.objects.filter(effect=w.effect(run))
    assert (seen.claim, seen.detail["error"]) == (Claim.UNAVAILABLE, "unreadable_answer")
    after = Effect.objects.get()
    assert after.state == EffectState.UNKNOWN and after.checks == 1 and after.next_check_at is not None


def test_a_run_that_cannot_be_given_back_is_held_by_nobody_who_lives(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever keeps the release from being recorded, the worker takes another name and the lease falls silent."""
    run = w.accept("test.chain", "pay")
    failpoints.arm("advance.after_step", "raise")
    monkeypatch.setattr(letting_go, "_release", _fails)
    with pytest.raises(ZeroDivisionError):
        w.advance(run)
    failpoints.disarm()
    assert workers._me is None
    workers._me = w.worker()


def _fails(*given: object) -> None:
    raise ZeroDivisionError


def _beyond(read: Callable[..., object]) -> Callable[..., object]:
    def asked(*given: object) -> object:
        return replace(read(*given), item={"number": 2**70})  # type: ignore[type-var]

    return asked
