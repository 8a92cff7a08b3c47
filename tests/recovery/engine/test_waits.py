"""Waits for a time and for a signal: rows, no worker (invariant 11)."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from recovery.actions import runs as actions
from recovery.actions.runs import UnknownSignal
from recovery.contract.errors import ParamsInvalid
from runs import clock, errors
from runs.models import Signal
from runs.record import Act
from runs.states import EventKind, RunState, WaitingOn
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later


def test_a_timer_holds_no_worker_and_fires_once(w: World) -> None:
    """Invariant 11: a row until it is due; looking earlier changes nothing."""
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    row = w.run(run)
    assert (row.state, row.waiting_on, row.lease_owner) == (RunState.WAITING, WaitingOn.TIMER, None)
    assert row.wake_at is not None and row.wake_at > clock.now() + timedelta(minutes=9)
    assert w.advance(run) == "not_due"
    assert len(w.events(run, EventKind.RUN_LEASED)) == 1, "a wait costs nothing while it lasts"
    later(minutes=11)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert w.heard(run) == [None]


def test_a_timer_survives_the_death_of_the_worker_that_set_it(w: World) -> None:
    """Invariant 11: it survives every restart."""
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    w.dies(w.me)
    later(minutes=11)
    with w.as_worker(w.worker()):
        assert w.advance(run) == "completed"


def test_a_signal_wakes_the_run_that_waits_for_it(w: World) -> None:
    run = w.accept("test.waiter", mode="event")
    w.drive()
    row = w.run(run)
    assert (row.waiting_on, row.wait_event, row.wake_at) == (WaitingOn.EVENT, "told", None)
    w.signal(run, "told", text="now")
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert w.heard(run) == ["now"]
    assert Signal.objects.get(run_id=run).consumed_at is not None


def test_a_signal_that_came_before_the_wait_is_kept_for_it(w: World) -> None:
    """Signals are rows: early is as good as in time."""
    run = w.accept("test.waiter", mode="event")
    w.signal(run, "told", text="early")
    w.drive()
    assert w.heard(run) == ["early"]


def test_another_signal_does_not_end_the_wait(w: World) -> None:
    run = w.accept("test.waiter", mode="event")
    w.drive()
    w.signal(run, "order.changed", amount=5)
    w.drive()
    assert w.run(run).state == RunState.WAITING
    assert Signal.objects.get(run_id=run).consumed_at is None


def test_the_first_of_two_signals_is_used_and_the_second_is_kept(w: World) -> None:
    run = w.accept("test.waiter", mode="event")
    w.signal(run, "told", text="first")
    w.signal(run, "told", text="second")
    w.drive()
    assert w.heard(run) == ["first"]
    used = Signal.objects.filter(run_id=run).order_by("id").values_list("consumed_at", flat=True)
    assert [at is not None for at in used] == [True, False]


def test_the_wait_for_a_signal_ends_by_its_timeout(w: World) -> None:
    run = w.accept("test.waiter", mode="timeout")
    w.drive()
    assert w.run(run).wake_at is not None
    later(minutes=11)
    w.drive()
    assert (w.run(run).state, w.heard(run)) == (RunState.FAILED, [None])


def test_a_signal_before_the_timeout_counts(w: World) -> None:
    run = w.accept("test.waiter", mode="timeout")
    w.drive()
    w.signal(run, "told", text="in time")
    w.drive()
    later(minutes=11)
    w.drive()
    assert (w.run(run).state, w.heard(run)) == (RunState.COMPLETED, ["in time"])


def test_a_signal_is_validated_and_each_field_named(w: World) -> None:
    """Bad input: nothing is kept of it."""
    run = w.accept("test.waiter", mode="event")
    with pytest.raises(ParamsInvalid) as refused:
        w.signal(run, "order.changed", amount="lots")
    assert list(refused.value.facts["fields"]) == ["amount"]
    with pytest.raises(UnknownSignal) as unknown:
        w.signal(run, "never.heard.of")
    assert unknown.value.facts["known"] == ["order.changed", "told"]
    assert not Signal.objects.exists()


def test_an_ended_run_takes_no_signal(w: World) -> None:
    """Invariant 5."""
    run = w.accept("test.many", "pay")
    w.drive()
    with pytest.raises(errors.RunEnded):
        w.signal(run, "told")


def test_a_signal_sent_twice_is_one_signal(w: World) -> None:
    """Invariant 15: the same act; and another body under it is refused."""
    run = w.accept("test.waiter", mode="event")
    how = Act.over(uuid4(), "signal", {"text": "once"})
    w.signal(run, "told", how, text="once")
    w.signal(run, "told", how, text="once")
    with pytest.raises(errors.ActionMismatch):
        w.signal(run, "told", Act.over(how.id, "signal", {"text": "other"}), text="other")
    assert Signal.objects.filter(run_id=run).count() == 1


def test_looking_again_at_a_waiting_run_changes_nothing(w: World) -> None:
    """A light action: the timer is still the timer."""
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    before = w.run(run).wake_at
    actions.look_again(run, actor=w.s.oncall_a, act=act("look"))
    w.drive()
    assert (w.run(run).state, w.run(run).wake_at) == (RunState.WAITING, before)
