"""Two connections at the capacity: one moment, one claim; a hold, or a claim."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from recovery.traffic import admission
from runs import clock, errors, record
from runs.models import Capacity, Dependency, Effect
from runs.record import Admission, Commit, Entry
from runs.states import EventKind
from tests.races.test_record import Seam, _race, threads, world
from tests.runs import make
from tests.runs.make import World

__all__ = ["threads", "world"]

PATIENT = Admission(ahead=3600)


def test_two_claims_and_one_moment(world: World, threads: ThreadPoolExecutor) -> None:
    """Invariant 12: the second waits for the first, and takes the moment after it."""
    at = clock.now() + timedelta(minutes=1)
    Capacity.objects.update(rate=50, next_at=at)
    runs = make.accept(world), make.accept(world)
    one, two = _race(
        threads,
        Seam("moment taken, not committed"),
        lambda: make.send(world, runs[0], admission=PATIENT),
        lambda: make.send(world, runs[1], admission=PATIENT),
    )
    assert one.result(20) and two.result(20)
    twice = at + 2 * timedelta(seconds=1 / admission.pace(50))
    assert abs(Capacity.objects.get().next_at - twice) < timedelta(microseconds=10)


def _hold(w: World) -> Any:
    change = record.move("dependency", w.dependency.pk, None, {"hold_reason": "outage"}, times={"held_at": 0})
    return record.commit(Commit(w.ws, None, [Entry(EventKind.DEPENDENCY_HELD, {}, [change])]))


def test_a_claim_that_comes_after_a_hold_sees_it(world: World, threads: ThreadPoolExecutor) -> None:
    run = make.accept(world)
    one, two = _race(threads, Seam("held, not committed"), lambda: _hold(world), lambda: make.send(world, run))
    assert one.result(20)
    refused = two.exception(20)
    assert isinstance(refused, errors.NoPermit) and refused.facts["why"] == "held"
    assert not Effect.objects.exists()


def test_a_hold_that_comes_after_a_claim_waits_for_it(world: World, threads: ThreadPoolExecutor) -> None:
    """What was let in before the hold is on its way; once the hold is recorded nothing new is."""
    run = make.accept(world)
    one, two = _race(threads, Seam("let in, not committed"), lambda: make.send(world, run), lambda: _hold(world))
    assert one.result(20) and two.result(20)
    assert Dependency.objects.get(pk=world.dependency.pk).held_at is not None
    assert Effect.objects.get().state == "in_flight"
    with pytest.raises(errors.NoPermit):
        make.send(world, run)
