"""What the record lets out, and when: moments, hold, breaker, budget and drains, in the transaction of the attempt."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from recovery.traffic import admission
from runs import clock, errors, record
from runs.models import Attempt, Capacity, Dependency, Drain
from runs.record import Admission
from runs.states import BreakerState, DrainState
from tests.runs import make
from tests.runs.make import World

PATIENT = Admission(ahead=3600)


def paced(rate: float = 50) -> tuple[datetime, timedelta]:
    """Pace the capacity; its next moment is a minute away, so that no test depends on how fast it runs."""
    at = clock.now() + timedelta(minutes=1)
    Capacity.objects.update(rate=rate, next_at=at, max_in_flight=1000)
    return at, timedelta(seconds=1 / admission.pace(rate))


def send(w: World, admit: Admission | None = PATIENT, *, n: int = 1, **effect: Any) -> UUID:
    """One attempt on an effect of its own; its id."""
    run = make.accept(w)
    row = make.effect_row(w, run, "in_flight", attempts=n, **effect)
    attempt = make.attempt_row(w, run, row["id"], n=n)
    make.write(w, run, record.new("effect", row), record.new("attempt", attempt), admission=admit)
    return attempt["id"]


def end(w: World, attempt: UUID, state: str, kind: str | None = None, code: str = "c") -> record.Committed:
    run = Attempt.objects.get(pk=attempt).run_id
    outcome = None if kind is None else {"kind": kind, "code": code}
    change = record.move("attempt", attempt, ["committed"], {"state": state, "outcome": outcome}, times={"ended_at": 0})
    return make.write(w, run, change)


def refused(w: World, admit: Admission | None = PATIENT, **effect: Any) -> dict[str, Any]:
    before = Attempt.objects.count()
    with pytest.raises(errors.NoPermit) as no:
        send(w, admit, **effect)
    assert Attempt.objects.count() == before, "what is refused leaves nothing"
    return no.value.facts


def cap() -> Capacity:
    return Capacity.objects.get()


@pytest.mark.parametrize("rate", [0.5, 3, 9.99, 10, 50, 51, 1000])
def test_the_database_paces_as_the_code_does(db: None, rate: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT runs_pace(%s)", [rate])
        assert cursor.fetchone()[0] == pytest.approx(admission.pace(rate))


# --- moments (invariant 12)


def test_each_call_takes_a_moment_of_its_own(world: World) -> None:
    at, gap = paced()
    for n in range(1, 6):
        send(world)
        assert abs(cap().next_at - (at + n * gap)) < timedelta(microseconds=10)


def test_a_moment_too_far_away_is_refused_with_the_time(world: World) -> None:
    at, _ = paced()
    facts = refused(world, Admission(ahead=2))
    assert facts["why"] == "pace" and 50 < facts["wait"] <= 60
    assert refused(world, None)["why"] == "pace"
    assert cap().next_at == at, "and takes none"


def test_moments_that_nobody_took_are_gone(world: World) -> None:
    """No burst after an idle while."""
    Capacity.objects.update(rate=50, next_at=clock.now() - timedelta(hours=1), max_in_flight=100)
    send(world)
    assert cap().next_at > clock.now() - timedelta(seconds=10)


def test_without_a_rate_there_is_no_moment(world: World) -> None:
    run = make.accept(world)
    row = make.effect_row(world, run, "in_flight", attempts=1)
    attempt = record.new("attempt", make.attempt_row(world, run, row["id"]))
    assert make.write(world, run, record.new("effect", row), attempt).wait is None
    assert cap().next_at is None
    assert record.take_moment(world.dependency.pk, ahead=1) is None


def test_a_readback_takes_a_moment_too_and_no_breaker_stops_it(world: World) -> None:
    at, gap = paced()
    Capacity.objects.update(state=BreakerState.OPEN)
    wait = record.take_moment(world.dependency.pk, ahead=100)
    assert wait is not None and wait <= 60
    assert abs(cap().next_at - (at + gap)) < timedelta(microseconds=10)
    with pytest.raises(errors.NoPermit):
        record.take_moment(world.dependency.pk, ahead=2)


def test_a_workspace_has_only_its_share(world: World) -> None:
    """Its own next moment; those between stay for the other workspaces (nothing is taken so far ahead)."""
    at, gap = paced()
    Dependency.objects.filter(pk=world.dependency.pk).update(share=0.1)
    send(world)
    own = Dependency.objects.get(pk=world.dependency.pk).next_at
    assert own is not None and abs(own - (at + 10 * gap)) < timedelta(microseconds=10)
    assert refused(world)["why"] == "pace"
    assert abs(cap().next_at - (at + gap)) < timedelta(microseconds=10)


# --- hold and breaker


def test_nothing_goes_to_a_dependency_that_is_held(world: World) -> None:
    Dependency.objects.filter(pk=world.dependency.pk).update(held_at=clock.now())
    assert refused(world)["why"] == "held"
    Dependency.objects.update(held_at=None)
    send(world)


def test_an_open_breaker_lets_nothing_through_and_a_half_open_one_a_single_call(world: World) -> None:
    Capacity.objects.update(state=BreakerState.OPEN, reopen_at=clock.now())
    assert refused(world)["why"] == "breaker"
    Capacity.objects.update(state=BreakerState.HALF_OPEN)
    probe = send(world)
    assert cap().probe == probe
    assert refused(world)["why"] == "breaker"
    done = end(world, probe, "answered", "succeeded")
    assert (done.trip, cap().probe_ok) == (cap().pk, True)


@pytest.mark.parametrize(
    ("state", "kind", "code", "failed"),
    [
        ("lost", "unknown", "timeout", True),
        ("answered", "transient", "http_503", True),
        ("answered", "overloaded", "http_429", True),
        ("answered", "unknown", "http_500", True),
        ("not_sent", "not_sent", "connect_failed", True),
        ("answered", "succeeded", "", False),
        ("answered", "rejected", "", False),
        ("not_sent", "not_sent", "credential_missing", None),
        ("not_sent", "not_sent", "too_late", None),
    ],
)
def test_what_counts_as_a_failure_of_the_dependency(
    world: World, state: str, kind: str, code: str, failed: bool | None
) -> None:
    end(world, send(world), state, kind, code)
    assert (cap().ended, cap().failed) == {True: (1, 1), False: (1, 0), None: (0, 0)}[failed]


def test_it_says_when_the_breaker_is_to_be_looked_at(world: World) -> None:
    Capacity.objects.update(breaker_least=4, max_in_flight=9)
    calls = [send(world) for _ in range(5)]
    ends = [("succeeded", None), ("transient", None), ("succeeded", None), ("transient", cap().pk), ("succeeded", None)]
    for call, (kind, trip) in zip(calls, ends, strict=True):
        assert end(world, call, "answered", kind).trip == trip


# --- the retry budget (invariant 10)


def test_repeats_beyond_the_budget_are_refused(world: World) -> None:
    Capacity.objects.update(max_in_flight=100)
    for _ in range(10):
        send(world, n=2)
    facts = refused(world, Admission(ahead=1, budget=0.1), n=2)
    assert facts["why"] == "budget" and facts["at"] is not None
    send(world, Admission(ahead=1, budget=0.1), n=1)
    send(world, Admission(ahead=1, budget=None), n=2)
    Capacity.objects.update(calls=300)
    send(world, Admission(ahead=1, budget=0.1), n=2)


def test_the_counters_are_of_the_last_two_windows(world: World) -> None:
    send(world)
    Capacity.objects.update(calls=7, failed=3, ended=5, repeats=2, window_at=clock.now() - timedelta(seconds=16))
    send(world)
    c = cap()
    assert (c.calls, c.last_calls, c.failed, c.last_failed, c.last_ended, c.last_repeats) == (1, 7, 0, 3, 5, 2)
    Capacity.objects.update(window_at=clock.now() - timedelta(seconds=31))
    send(world)
    c = cap()
    assert (c.calls, c.last_calls, c.last_failed) == (1, 0, 0)


# --- drains (invariant 12)


def draining(w: World, state: DrainState, **fields: Any) -> Drain:
    now = clock.now()
    drain = Drain.objects.create(
        workspace=w.workspace,
        dependency=w.dependency,
        state=state,
        began_at=now,
        moved_at=now,
        asks=True,
        warm_up=6,
        **{"canary": 2, "part": 1.0, **fields},
    )
    Dependency.objects.filter(pk=w.dependency.pk).update(draining=drain.pk)
    return drain


@pytest.mark.parametrize("state", ["checking", "dropping", "go_ahead", "held"])
def test_the_backlog_waits_and_new_work_goes(world: World, state: str) -> None:
    drain = draining(world, DrainState(state))
    assert refused(world, requested_at=drain.began_at)["why"] == "drain"
    send(world, requested_at=drain.began_at + timedelta(seconds=1))


def test_only_a_few_go_first(world: World) -> None:
    drain = draining(world, DrainState.CANARY)
    first = [send(world, requested_at=drain.began_at) for _ in range(2)]
    assert refused(world, requested_at=drain.began_at)["why"] == "drain"
    drain.refresh_from_db()
    assert (drain.canaries, drain.sent) == (first, 2)


def test_the_backlog_has_its_part_and_new_work_its_share(world: World) -> None:
    """The share is lent to the backlog while no new work comes."""
    at, gap = paced()
    drain = draining(world, DrainState.STEADY)
    send(world, requested_at=drain.began_at)
    drain.refresh_from_db()
    assert drain.next_at is not None and abs(drain.next_at - (at + gap)) < timedelta(microseconds=10)
    Capacity.objects.update(fresh_at=clock.now())
    send(world, requested_at=drain.began_at)
    drain.refresh_from_db()
    assert abs(drain.next_at - (at + gap + gap / 0.8)) < timedelta(microseconds=10)
    Drain.objects.update(part=0.25, next_at=None)
    at = cap().next_at
    send(world, requested_at=drain.began_at)
    drain.refresh_from_db()
    assert abs(drain.next_at - (at + gap / 0.25 / 0.8)) < timedelta(microseconds=10)
    assert refused(world, requested_at=drain.began_at)["why"] == "pace"
