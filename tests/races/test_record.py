"""Two real connections at one seam each. A seam is a named place where the first stops until it is let go;
whether the second waits for it is asked of PostgreSQL, not of a clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction

from runs import clock, doorbells, errors, record
from runs.history import chain, fold
from runs.models import Action, Capacity, Effect, Event, Run
from runs.record import Act, Lease
from runs.states import EventKind
from tests.runs import make
from tests.runs.make import World


@pytest.fixture
def world(fresh_db: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    """Committed rows: each connection sees them. The record alone: no doorbell rings."""
    monkeypatch.setattr(doorbells, "_ringers", [])
    return make.world()


class Seam:
    """Where the first connection stops: its work is done, its transaction is open."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._reached, self._go = threading.Event(), threading.Event()

    def stop_here(self) -> None:
        """Called by the first: says that it is here and waits to be let go."""
        self._reached.set()
        assert self._go.wait(20), f"nobody let {self.name} go"

    def wait(self) -> None:
        """Called by the test: returns when the first is here."""
        assert self._reached.wait(20), f"{self.name} was not reached"

    def let_go(self) -> None:
        """Called by the test: the first goes on and commits."""
        self._go.set()


class Abandoned(Exception):
    """The first connection gives its transaction up at the seam."""


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def _first(seam: Seam, work: Callable[[], Any], *, abandon: bool = False) -> Any:
    try:
        with transaction.atomic():
            result = work()
            seam.stop_here()
            if abandon:
                raise Abandoned
        return result
    except Abandoned:
        return None
    finally:
        connection.close()


@contextmanager
def _own_connection(pid: Future[int]) -> Iterator[None]:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            pid.set_result(cursor.fetchone()[0])
        yield
    finally:
        connection.close()


def _second(pid: Future[int], work: Callable[[], Any]) -> Any:
    with _own_connection(pid):
        return work()


def _race(
    threads: ThreadPoolExecutor,
    seam: Seam,
    first: Callable[[], Any],
    second: Callable[[], Any],
    *,
    abandon: bool = False,
) -> tuple[Future[Any], Future[Any]]:
    """``second`` runs while ``first`` stands at the seam, and is seen to wait before ``first`` goes on."""
    one = threads.submit(_first, seam, first, abandon=abandon)
    seam.wait()
    pid: Future[int] = Future()
    two = threads.submit(_second, pid, second)
    until = clock.now() + timedelta(seconds=20)
    while not _waits(pid.result(20)):
        assert not two.done(), f"the second did not wait at {seam.name}: {two}"
        assert clock.now() < until
    seam.let_go()
    return one, two


def _waits(pid: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [pid])
        return bool(cursor.fetchone()[0])


def test_two_workers_and_one_lease(world: World, threads: ThreadPoolExecutor) -> None:
    """One token; the loser writes nothing (invariant 6)."""
    run = make.accept(world)
    workers = world.worker, make.worker()

    def take(n: int) -> Any:
        return record.lease(world.ws, run, worker=workers[n].pk, epoch=1)

    one, two = _race(threads, Seam("lease taken, not committed"), lambda: take(0), lambda: take(1))
    assert isinstance(one.result(20), Lease)
    assert two.result(20) == "leased"
    row = Run.objects.get(pk=run)
    assert (row.lease_owner, row.tries) == (workers[0].pk, 1)
    assert make.kinds(run) == ["run.accepted", "run.leased"]


def test_a_lease_that_was_abandoned_goes_to_the_next(world: World, threads: ThreadPoolExecutor) -> None:
    run = make.accept(world)
    late = make.worker()
    _, two = _race(
        threads,
        Seam("lease taken, then rolled back"),
        lambda: record.lease(world.ws, run, worker=world.worker.pk, epoch=1),
        lambda: record.lease(world.ws, run, worker=late.pk, epoch=1),
        abandon=True,
    )
    assert isinstance(two.result(20), Lease)
    row = Run.objects.get(pk=run)
    assert (row.lease_owner, row.tries) == (late.pk, 1)


def test_an_old_owner_that_commits_while_the_run_is_taken_over(world: World, threads: ThreadPoolExecutor) -> None:
    """Invariant 6: it waits for the row, and then its token is old."""
    run = make.accept(world)
    old = make.leased(world, run)
    effect, _ = make.send(world, run, token=old.token)
    make.silence(world.worker, record.DEAD_AFTER + 1)
    heir = make.worker()
    change = record.move("effect", effect, ["in_flight"], {"state": "unknown"})
    one, two = _race(
        threads,
        Seam("taken over, not committed"),
        lambda: record.lease(world.ws, run, worker=heir.pk, epoch=1),
        lambda: make.write(world, run, change, token=old.token),
    )
    assert isinstance(one.result(20), Lease)
    assert isinstance(two.exception(20), errors.StaleOwner)
    assert Effect.objects.get(pk=effect).state == "in_flight"


def test_cancelled_or_sent_but_not_both(world: World, threads: ThreadPoolExecutor) -> None:
    """Whoever comes first wins; the other is told."""
    run = make.accept(world)
    row = make.effect_row(world, run, "ready")
    make.write(world, run, record.new("effect", row), kind=EventKind.EFFECT_ASKED)
    cancel = record.move("effect", row["id"], ["ready"], {"state": "cancelled"}, times={"settled_at": 0})
    claim = (
        record.move("effect", row["id"], ["ready"], {"state": "in_flight", "attempts": 1}),
        record.new("attempt", make.attempt_row(world, run, row["id"])),
    )
    one, two = _race(
        threads,
        Seam("cancelled, not committed"),
        lambda: make.write(world, run, cancel),
        lambda: make.write(world, run, *claim),
    )
    assert one.result(20)
    assert isinstance(two.exception(20), errors.LostRace)
    assert Capacity.objects.get().in_flight == 0
    found = Run.objects.get(pk=run)
    assert fold.differences(found) == [] and chain.verify_run(found).ok


@pytest.mark.parametrize("abandon", [False, True])
def test_two_runs_and_the_last_permit(world: World, threads: ThreadPoolExecutor, abandon: bool) -> None:
    """Capacity is one row that runs share: the second waits, and gets it only where the first gave up."""
    Capacity.objects.update(max_in_flight=1)
    runs = make.accept(world), make.accept(world)
    one, two = _race(
        threads,
        Seam("permit taken, not committed"),
        lambda: make.send(world, runs[0]),
        lambda: make.send(world, runs[1]),
        abandon=abandon,
    )
    one.result(20)
    assert isinstance(two.exception(20), errors.NoPermit) is not abandon
    assert Capacity.objects.get().in_flight == 1
    assert list(Effect.objects.values_list("run_id", flat=True)) == [runs[int(abandon)]]


def test_the_same_intent_from_two_runs(world: World, threads: ThreadPoolExecutor) -> None:
    """Invariant 3: the database keeps one; the other meets it."""
    runs = make.accept(world), make.accept(world)
    one, two = _race(
        threads,
        Seam("intent written, not committed"),
        lambda: make.write(
            world, runs[0], record.new("effect", make.effect_row(world, runs[0], "ready", key="refund:1"))
        ),
        lambda: make.write(
            world, runs[1], record.new("effect", make.effect_row(world, runs[1], "ready", key="refund:1"))
        ),
    )
    assert one.result(20)
    assert isinstance(two.exception(20), errors.LostRace)
    assert Effect.objects.get().run_id == runs[0]


def test_two_presses_at_once_are_one_event(world: World, threads: ThreadPoolExecutor) -> None:
    """Invariant 15: the second is told at once that the same action is being carried out; pressed again, it
    gets the first one's result."""
    run = make.accept(world)
    act = Act(uuid4(), "runs.cancel", "d")

    def press() -> record.Committed:
        return make.write(world, run, act=act, actor=world.person.pk, kind=EventKind.RUN_CANCEL_ASKED)

    seam = Seam("action carried out, not committed")
    one = threads.submit(_first, seam, press)
    seam.wait()
    with pytest.raises(errors.ActionInFlight):
        press()
    seam.let_go()
    first, again = one.result(20), press()
    assert (again.replayed, again.last, again.at) == (True, first.last, first.at)
    assert make.kinds(run).count("run.cancel_asked") == 1
    assert Action.objects.count() == 1


def test_many_writers_make_one_chain(world: World) -> None:
    """Invariant 9: the head is under the run's lock, so no number is taken twice and none is left out."""
    run = make.accept(world)

    def write(n: int) -> int:
        try:
            return make.write(world, run, kind=EventKind.RUN_CHECKED).last
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(write, range(40)))
    assert sorted(numbers) == list(range(2, 42))
    assert chain.verify_run(Run.objects.get(pk=run)) == chain.ChainReport(41)
    times = list(Event.objects.filter(run_id=run).order_by("seq").values_list("at", flat=True))
    assert times == sorted(times)
