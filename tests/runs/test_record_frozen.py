"""What the writer refuses while a restore holds a workspace, or nobody compared the server (fault rows 36, 39)."""

from __future__ import annotations

import pytest

from runs import epochs, errors, record
from runs.models import Attempt, Capacity, Epoch, Restore, Run
from runs.restored import RestoreState
from runs.states import AttemptState, EffectState, EventKind
from tests.runs import make
from tests.runs.make import World


def freeze(w: World, state: str = RestoreState.FROZEN, epoch: int = 1) -> Restore:
    at = record.clock.now()
    return Restore.objects.create(
        workspace=w.workspace, epoch=epoch, state=state, cause="older_record", backup_at=at, began_at=at
    )


@pytest.mark.parametrize("state", [RestoreState.FROZEN, RestoreState.SWEPT, RestoreState.ASKED])
def test_no_attempt_is_committed_while_a_restore_holds_the_workspace(world: World, state: str) -> None:
    run = make.accept(world)
    freeze(world, state)
    with pytest.raises(errors.Frozen):
        make.send(world, run)
    assert not Attempt.objects.exists()


def test_no_attempt_is_committed_on_a_server_that_nobody_compared(world: World) -> None:
    run = make.accept(world)
    Epoch.objects.update(identity="another start")
    with pytest.raises(errors.Frozen):
        make.send(world, run)
    epochs.confirm(epochs.current(), epochs.here(), 1)
    make.send(world, run)


def test_no_lease_is_given_meanwhile_and_runs_are_accepted_all_the_same(world: World) -> None:
    freeze(world)
    run = make.accept(world)
    assert record.lease(world.ws, run, worker=world.worker.pk, epoch=1) == "frozen"
    Restore.objects.all().delete()
    Epoch.objects.update(identity="another start")
    assert record.lease(world.ws, run, worker=world.worker.pk, epoch=1) == "not_compared"
    assert Run.objects.get(pk=run).tries == 0


def test_the_neighbour_is_not_held(world: World) -> None:
    freeze(world)
    there = Restore.objects.get()
    Restore.objects.filter(pk=there.pk).update(workspace=world.other)
    run = make.accept(world)
    make.send(world, run)


def test_a_token_of_an_earlier_epoch_changes_nothing(world: World) -> None:
    """Also where the restored row still has it."""
    run = make.accept(world)
    lease = make.leased(world, run)
    epochs.begin(2, epochs.here(), 1, record.clock.now())
    with pytest.raises(errors.StaleOwner):
        make.write(world, run, record.run_moves({"goal": "mine"}), token=lease.token)


def test_a_process_of_an_earlier_epoch_gets_no_lease(world: World) -> None:
    run = make.accept(world)
    epochs.begin(2, epochs.here(), 1, record.clock.now())
    assert record.lease(world.ws, run, worker=world.worker.pk, epoch=1) == "old_epoch"
    assert make.leased(world, run, worker=make.worker().pk, epoch=2).token == (2 << 40) + 1


def test_a_try_that_the_record_lost_takes_no_permit_and_is_no_send(world: World) -> None:
    run = make.accept(world)
    freeze(world)
    effect = make.effect_row(world, run, EffectState.READY)
    lost = make.attempt_row(world, run, effect["id"], state=AttemptState.LOST)
    make.write(world, run, record.new("effect", effect), record.new("attempt", lost), kind=EventKind.EFFECT_UNKNOWN)
    assert Attempt.objects.get().state == AttemptState.LOST
    assert Capacity.objects.get().in_flight == 0


def test_the_database_wants_two_people(world: World) -> None:
    row = freeze(world, RestoreState.ASKED)
    from django.db import IntegrityError, transaction

    for change in ({"released_by": world.person, "asked_by": world.person}, {"state": "released"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Restore.objects.filter(pk=row.pk).update(**change)
