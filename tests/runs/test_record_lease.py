"""The lease: who may advance a run, and what fences everyone else (invariant 6)."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import DatabaseError, transaction

from runs import clock, errors, record
from runs.models import Event, Run
from runs.states import RUN_ENDED, EventKind
from tests.runs import make
from tests.runs.make import World


def test_a_due_run_is_leased_with_a_token_and_a_counted_try(world: World) -> None:
    run = make.accept(world)
    lease = make.leased(world, run, epoch=3)
    row = Run.objects.get(pk=run)
    assert lease.token == row.token == (3 << 40) + 1
    assert (row.state, row.tries, row.lease_owner, row.wake_at) == ("running", 1, world.worker.pk, None)
    event = Event.objects.filter(run_id=run).latest("seq")
    assert (event.kind, event.body["token"]) == ("run.leased", lease.token)
    assert event.body["moves"] == [{"t": "run", "id": str(run), "from": "accepted", "to": "running"}]


def test_a_live_workers_lease_is_not_taken(world: World) -> None:
    run = make.accept(world)
    make.leased(world, run)
    make.silence(world.worker, record.DEAD_AFTER - 5)
    assert record.lease(world.ws, run, worker=make.worker().pk, epoch=1) == "leased"
    assert Run.objects.get(pk=run).tries == 1


def test_a_heartbeat_keeps_the_lease(world: World) -> None:
    run = make.accept(world)
    make.leased(world, run)
    make.silence(world.worker, record.DEAD_AFTER + 1)
    make.silence(world.worker, 0)
    assert record.lease(world.ws, run, worker=uuid4(), epoch=1) == "leased"


def test_a_test_that_moves_the_records_clock_kills_no_worker(world: World) -> None:
    """Heartbeats are measured by the real clock: a timer can be tested while real workers live."""
    run = make.accept(world)
    make.leased(world, run)
    clock.shift(timedelta(days=1))
    assert record.lease(world.ws, run, worker=uuid4(), epoch=1) == "leased"


def test_a_dead_workers_lease_is_taken_and_its_token_is_refused(world: World) -> None:
    """Invariant 6, both halves."""
    run = make.accept(world)
    old = make.leased(world, run)
    make.silence(world.worker, record.DEAD_AFTER + 1)
    new = make.leased(world, run, make.worker().pk)
    assert new.token == old.token + 1
    assert Run.objects.get(pk=run).tries == 2
    with pytest.raises(errors.StaleOwner):
        make.write(world, run, token=old.token)
    make.write(world, run, token=new.token)


def test_a_worker_without_a_heartbeat_row_is_dead(world: World) -> None:
    run = make.accept(world)
    make.leased(world, run, uuid4())
    assert make.leased(world, run).row["tries"] == 2


def test_a_later_epoch_fences_every_token_of_the_one_before(world: World) -> None:
    """A backup that is restored cannot give out a token that is already in use."""
    run = make.accept(world)
    before = make.leased(world, run, epoch=1)
    make.write(world, run, record.run_moves({"tries": 0, "lease_owner": None}, times={"wake_at": 0}))
    after = make.leased(world, run, epoch=2)
    assert after.token == (2 << 40) + 1 > before.token


def test_a_run_that_is_not_due_is_not_leased(world: World) -> None:
    """Invariant 11: a wait holds no worker, and its timer is the database's clock."""
    run = make.accept(world)
    lease = make.leased(world, run)
    asleep = record.run_moves({"state": "waiting", "waiting_on": "timer", "lease_owner": None}, times={"wake_at": 3600})
    make.write(world, run, asleep, token=lease.token)
    assert record.lease(world.ws, run, worker=world.worker.pk, epoch=1) == "not_due"
    clock.shift(timedelta(seconds=3601))
    assert make.leased(world, run).token == lease.token + 1
    row = Run.objects.get(pk=run)
    assert (row.state, row.waiting_on) == ("running", "")


@pytest.mark.parametrize("sleeps_until", [None, 3600])
def test_what_woke_a_run_while_its_owner_was_at_work_is_not_slept_over(world: World, sleeps_until: int | None) -> None:
    """Invariant 11: a signal that comes between the owner's last look and its wait still wakes the run."""
    run = make.accept(world)
    lease = make.leased(world, run)
    make.write(world, run, record.run_moves({}, times={"wake_at": 0}), kind=EventKind.RUN_SIGNALLED)
    asleep = record.run_moves(
        {"state": "waiting", "waiting_on": "event", "lease_owner": None, "wake_at": None},
        times=None if sleeps_until is None else {"wake_at": sleeps_until},
        soonest=True,
    )
    make.write(world, run, asleep, token=lease.token)
    assert make.leased(world, run).token == lease.token + 1


def test_a_wait_without_a_timer_is_never_due_by_itself(world: World) -> None:
    run = make.run_in(world, "waiting").pk
    clock.shift(timedelta(days=400))
    assert record.lease(world.ws, run, worker=world.worker.pk, epoch=1) == "not_due"


@pytest.mark.parametrize("state", [*sorted(RUN_ENDED), "quarantined"])
def test_what_ended_or_is_quarantined_is_not_leased(world: World, state: str) -> None:
    """Invariant 5: no worker finds a way back in."""
    run = make.run_in(world, state, wake_at=clock.now())
    assert record.lease(world.ws, run.pk, worker=world.worker.pk, epoch=1) == state
    run.refresh_from_db()
    assert (run.state, run.token, run.tries) == (state, 0, 0)


def test_a_cancelling_run_is_leased_and_stays_cancelling(world: World) -> None:
    run = make.run_in(world, "cancelling", wake_at=clock.now())
    make.leased(world, run.pk)
    run.refresh_from_db()
    assert run.state == "cancelling"


def test_a_token_never_falls_even_by_plain_sql(world: World) -> None:
    run = make.accept(world)
    make.leased(world, run)
    with pytest.raises(DatabaseError, match="a token never falls"), transaction.atomic():
        Run.objects.filter(pk=run).update(token=1)


@pytest.mark.parametrize("state", sorted(RUN_ENDED))
def test_an_ended_run_stays_ended_even_by_plain_sql(world: World, state: str) -> None:
    """Invariant 5."""
    run = make.run_in(world, state)
    for change in (
        {"state": "running", "ended_at": None},
        {"state": "cancelled" if state != "cancelled" else "failed"},
        {"ended_at": clock.now() + timedelta(days=1)},
    ):
        with pytest.raises(DatabaseError, match="an ended run stays ended"), transaction.atomic():
            Run.objects.filter(pk=run.pk).update(**change)
    with pytest.raises(errors.IllegalMove):
        make.write(world, run.pk, record.run_moves({"state": "running", "ended_at": None}))
