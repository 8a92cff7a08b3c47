"""What is decided about capacities and drains, without a record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from recovery.traffic import lanes
from recovery.traffic.admission import pace, room_for_repeat
from recovery.traffic.breaker import LONGEST_PAUSE, Step, next_step
from recovery.traffic.drains import CHECK_AT_MOST, RAMP, Move, Seen, next_move
from runs.models import Capacity, Drain
from runs.states import DRAIN_ENDED, BreakerState, DrainState, may_move

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def _capacity(**changes: Any) -> Capacity:
    return Capacity(name="c", max_in_flight=9, window_at=NOW, **changes)


@pytest.mark.parametrize("rate", [0.5, 1, 3, 9.9, 10, 11, 50, 400])
def test_the_pace_is_below_the_safe_rate(rate: float) -> None:
    """Invariant 12: also with a late call in the second, and with what the first and the last one add."""
    assert 0 < pace(rate) < rate
    if rate >= 10:
        assert pace(rate) * 1.02 + 1 <= rate


# --- the retry budget (invariant 10)


def test_repeats_are_a_share_of_the_calls() -> None:
    assert room_for_repeat(_capacity(calls=200, repeats=19), 0.1, NOW)
    assert not room_for_repeat(_capacity(calls=100, repeats=5, last_calls=100, last_repeats=15), 0.1, NOW)
    assert room_for_repeat(_capacity(calls=1, repeats=9), 0.1, NOW), "a few repeats need no budget"
    assert room_for_repeat(_capacity(calls=9, repeats=900), None, NOW)


def test_what_was_long_ago_uses_up_no_budget() -> None:
    busy = _capacity(calls=0, repeats=0, last_calls=100, last_repeats=100)
    assert not room_for_repeat(busy, 0.1, NOW + timedelta(seconds=14))
    assert room_for_repeat(busy, 0.1, NOW + timedelta(seconds=15))
    assert room_for_repeat(_capacity(calls=100, repeats=100), 0.1, NOW + timedelta(seconds=30))


# --- the breaker


def test_it_opens_on_the_share_of_failed_calls_and_not_on_a_few() -> None:
    assert next_step(_capacity(ended=19, failed=19), NOW) is None
    assert next_step(_capacity(ended=20, failed=9), NOW) is None
    assert next_step(_capacity(ended=20, failed=10), NOW) == Step(BreakerState.OPEN, 10.0)
    assert next_step(_capacity(ended=5, failed=5, last_ended=15, last_failed=5), NOW) == Step(BreakerState.OPEN, 10.0)


def test_it_tries_again_when_its_pause_is_over_and_goes_by_the_probe() -> None:
    open_ = _capacity(state=BreakerState.OPEN, reopen_at=NOW, opened=1)
    assert next_step(open_, NOW - timedelta(seconds=1)) is None
    assert next_step(open_, NOW) == Step(BreakerState.HALF_OPEN)
    half = _capacity(state=BreakerState.HALF_OPEN, opened=3, probe=uuid4())
    assert next_step(half, NOW) is None
    half.probe_ok = True
    assert next_step(half, NOW) == Step(BreakerState.CLOSED)
    half.probe_ok = False
    assert next_step(half, NOW) == Step(BreakerState.OPEN, 80.0)
    half.opened = 300
    assert next_step(half, NOW) == Step(BreakerState.OPEN, LONGEST_PAUSE)


# --- drains


def _drain(state: DrainState, **changes: Any) -> Drain:
    given: dict[str, Any] = {
        "state": state,
        "began_at": NOW,
        "moved_at": NOW,
        "canary": 3,
        "asks": True,
        "warm_up": 6.0,
        "part": RAMP[0],
    }
    return Drain(**{**given, **changes})


WORK = Seen(ready=100, out=2)


def test_what_nobody_knows_is_read_back_before_anything_is_written() -> None:
    checking = _drain(DrainState.CHECKING)
    assert next_move(checking, Seen(ready=9, out=0, unread=1), NOW) is None
    assert next_move(checking, Seen(ready=9, out=0, before_us=("ledger",)), NOW) is None, "another recovers first"
    assert next_move(checking, WORK, NOW) == Move(DrainState.DROPPING, "dropping", facts={"unread": 0})
    late = next_move(checking, Seen(ready=9, out=0, unread=4), NOW + CHECK_AT_MOST)
    assert late is not None and late.facts == {"unread": 4}, "and said so, when it cannot be"


def test_what_has_expired_is_dropped_before_the_canary() -> None:
    dropping = _drain(DrainState.DROPPING)
    assert next_move(dropping, Seen(ready=9, out=0, late=2), NOW) is None
    assert next_move(dropping, WORK, NOW) == Move(DrainState.CANARY, "canary")


def test_a_person_lets_it_go_ahead_after_the_canary() -> None:
    some = [uuid4() for _ in range(3)]
    assert next_move(_drain(DrainState.CANARY, canaries=some[:2]), WORK, NOW) is None
    assert next_move(_drain(DrainState.CANARY, canaries=some), Seen(ready=9, out=1, canaries_out=1), NOW) is None
    went = next_move(_drain(DrainState.CANARY, canaries=some), Seen(ready=9, out=0, failed=1), NOW)
    assert went is not None and went.to == DrainState.GO_AHEAD
    failed = next_move(_drain(DrainState.CANARY, canaries=some), Seen(ready=9, out=0, failed=2), NOW)
    assert failed is not None and (failed.to, failed.code) == (DrainState.HELD, "canary_failed")
    alone = next_move(_drain(DrainState.CANARY, canaries=some, asks=False), WORK, NOW)
    assert alone is not None and (alone.to, alone.part) == (DrainState.RAMPING, RAMP[0])


def test_it_grows_over_the_warm_up() -> None:
    parts = []
    drain = _drain(DrainState.RAMPING)
    for second in range(7):
        move = next_move(drain, WORK, NOW + timedelta(seconds=second))
        if move is not None:
            parts.append((second, move.to, move.part))
            drain.state, drain.part = move.to, move.part
    assert parts == [(2, "ramping", 0.5), (4, "ramping", 0.75), (6, "steady", 1.0)]


def test_a_breaker_that_opens_holds_it() -> None:
    """A second cascade: what is not sent cannot make it worse."""
    for state in (DrainState.RAMPING, DrainState.STEADY):
        move = next_move(_drain(state), Seen(ready=9, out=0, breaker_open=True), NOW)
        assert move is not None and (move.to, move.code) == (DrainState.HELD, "breaker_open")
    assert next_move(_drain(DrainState.CANARY), Seen(ready=9, out=0, breaker_open=True), NOW) is None


def test_only_a_person_takes_it_on_from_a_hold_or_an_end() -> None:
    for state in (DrainState.HELD, *DRAIN_ENDED):
        assert next_move(_drain(state), Seen(ready=0, out=0), NOW + timedelta(days=1)) is None
    assert next_move(_drain(DrainState.GO_AHEAD), WORK, NOW + timedelta(days=1)) is None


def test_every_move_is_legal() -> None:
    for state in DrainState:
        for seen in (WORK, Seen(ready=0, out=0), Seen(ready=9, out=0, breaker_open=True), Seen(9, 0, failed=3)):
            for at in (NOW, NOW + timedelta(hours=1)):
                move = next_move(_drain(state, canaries=[uuid4()] * 3), seen, at)
                assert move is None or move.to == state or may_move("drain", state, move.to), (state, move)


# --- waiting in a process


def test_a_lane_has_few_threads_and_the_others_effects_queue() -> None:
    lane = lanes.Lane(lanes.Road())
    lane.limit = 2
    first, second, third, fourth = (uuid4() for _ in range(4))
    assert lane.enter(first) and lane.enter(second)
    assert not lane.enter(third) and not lane.enter(fourth) and not lane.enter(third)
    assert lane.leave() == third
    lane.give_up()
    assert lane.leave() == fourth
    assert lane.leave() is None
    assert lane.enter(first) and lane.enter(second) and not lane.enter(third)


def test_calls_that_were_held_up_do_not_leave_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 12: what a busy machine delayed leaves one by one, at the pace."""
    now = [100.0]
    left: list[float] = []

    def sleep(seconds: float) -> None:
        left.append(now[0] + seconds)

    monkeypatch.setattr(lanes.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(lanes.time, "sleep", sleep)
    road = lanes.Road()
    for _ in range(5):
        road.depart(-0.3, 0.02)  # all of their moments are over
    assert [round(at - left[0], 6) for at in left] == [0.0, 0.02, 0.04, 0.06, 0.08]
    road.depart(1.0, 0.02)
    assert round(left[-1] - now[0], 6) == 1.0
