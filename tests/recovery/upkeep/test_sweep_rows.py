"""The sweep's own rows stay few, and one row that breaks stops nobody else's."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, OperationalError, connection

from recovery.engine import approvals, workers
from recovery.traffic import breaker
from recovery.upkeep.sweep import Sweep
from runs.models import Approval, Worker
from runs.states import ApprovalState, RunState
from tests.recovery.engine.world import World
from tests.recovery.stage import later


def _began(id: object, ago: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_worker SET started_at = clock_timestamp() - %s::interval WHERE id = %s", [ago, id])


def test_workers_that_are_gone_for_a_day_are_forgotten(w: World) -> None:
    """Also those who said goodbye or were buried: their row has no time any more."""
    old, young, alive = w.worker().id, w.worker().id, w.worker().id
    for id in (old, young):
        w.silence(id)
    _began(old, "2 days")
    _began(alive, "2 days")
    workers.bury_dead_here()
    left = set(Worker.objects.values_list("pk", flat=True))
    assert old not in left
    assert {young, alive} <= left


def test_a_quarantined_run_is_not_rung_for_ever(w: World) -> None:
    """Something of it moves, or a signal comes: nothing leaves quarantine by itself, so nobody is rung."""
    run = w.accept("test.broken", mode="raises")
    w.advance(run)
    assert w.run(run).state == RunState.QUARANTINED
    w.signal(run, "told", text="hello")
    assert Sweep().run_once()["runs"] == 0


def test_a_part_that_breaks_keeps_no_other_from_its_work(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    w.accept("test.many", "pay", amount=120_500)
    w.drive()
    later(hours=9)

    def broken(self: Sweep, now: object) -> int:
        raise IntegrityError("one bad row")

    monkeypatch.setattr(Sweep, "_due_runs", broken)
    counts = Sweep().run_once()
    assert (counts["runs"], counts["expired"]) == (0, 1)
    assert Approval.objects.get().state == ApprovalState.EXPIRED


def test_a_record_that_is_away_ends_the_pass(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sweeps must hear of it: its lock went with the connection."""

    def away(now: object, limit: int) -> int:
        raise OperationalError("the server went away")

    monkeypatch.setattr(approvals, "expire_due", away)
    with pytest.raises(OperationalError):
        Sweep().run_once()


def test_a_fault_of_ours_in_one_part_ends_no_sweep(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it raises: the process that sweeps goes on, and so do the parts after it."""

    def broken() -> int:
        raise KeyError("a kind that nobody has words for")

    monkeypatch.setattr(breaker, "tell_who_waits", broken)
    run = w.accept("test.many", "slow")
    counts = Sweep().run_once()
    assert (counts["runs"], counts["not sending"], counts["notices"]) == (1, 0, 0)
    assert ("advance", (str(w.s.here.pk), str(run))) in w.rung
