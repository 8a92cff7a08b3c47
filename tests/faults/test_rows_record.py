"""Faults of the record, of its clients and of whoever writes it, one test a row of docs/faults.md."""

from __future__ import annotations

import ast
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from django.conf import settings
from django.db import OperationalError, connection, connections

from recovery import failpoints
from recovery.actions import runs
from recovery.engine import insisting, workers
from recovery.upkeep import sweep
from runs.checkpoints import codec
from runs.errors import ActionMismatch
from runs.history import chain
from runs.models import Attempt, Effect, Event, Run, Worker
from runs.record import Act
from runs.states import EventKind, RunState
from tests.databases import FreshDatabase
from tests.faults import deeds, scenes
from tests.faults.conftest import Workers
from tests.faults.scenes import SCENES
from tests.recovery.engine.driver import TASKS
from tests.recovery.engine.world import World

ROOT = Path(__file__).parents[2]


def test_row_04_the_same_key_with_another_body(w: World, forks: Workers) -> None:
    """The first stays as it is; the attempt is refused by name and kept."""
    asked = SCENES["accept"].play(w, forks)
    deeds.accept(asked)
    how, other = deeds.act(asked), {**asked["input"], "amount": 1}
    with pytest.raises(ActionMismatch):
        runs.accept(w.s.here, asked["type"], other, actor=w.s.oncall_a, act=Act(how.id, how.route, "another digest"))
    assert Run.objects.count() == 1


def test_row_05_dead_between_commit_and_doorbell(w: World, forks: Workers) -> None:
    """Nobody was told, nobody asks again: the sweep alone brings it to its end."""
    scene = SCENES["accept"]
    assert forks.kill(point="bell.before_publish", **scene.play(w, forks))
    assert Run.objects.get().state == RunState.ACCEPTED
    scenes.finish(w)
    assert scenes.ends(w) == scene.end


@pytest.mark.parametrize(("row", "action"), [(7, "do_then_raise"), (8, "raise")])
def test_row_07_and_08_a_checkpoint_whose_commit_is_not_answered(
    w: World, forks: Workers, row: int, action: str
) -> None:
    """Applied or not: the record is read again and says which; no step and no effect comes twice."""
    scene = SCENES["order"]
    asked = scene.play(w, forks)
    assert forks.wait(forks.start(point="advance.before_commit", action=action, nth=2, **asked)) == {"code": 0}
    scenes.finish(w)
    assert scenes.ends(w) == scene.end
    assert Effect.objects.count() == 2
    kept = list(Attempt.objects.values_list("effect_id", "n"))
    assert len(kept) == len(set(kept))


def test_row_09_the_record_is_away_for_minutes(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker stops, sends nothing, and takes another name; the next owner decides from the record."""
    monkeypatch.setattr(insisting, "PATIENCE", 0.0)
    run = w.accept("test.chain", "pay", "pay")
    right = connections.settings["default"]["HOST"]

    def away() -> None:
        failpoints.disarm()
        connection.close()
        connection.settings_dict["HOST"] = "/nowhere"

    failpoints.arm("advance.before_commit", away)
    try:
        with pytest.raises(OperationalError):
            w.advance(run)
    finally:
        connection.settings_dict["HOST"] = right
    assert w.sandbox.requests() == [] and workers._me is None
    workers._me = w.worker()
    w.dies(w.me)
    w.drive(jump=timedelta(minutes=1))
    assert w.run(run).state == RunState.COMPLETED


@pytest.mark.parametrize(("point", "scene"), [("advance.before_commit", "order"), ("send.before_claim", "notice")])
def test_row_10_dead_before_anything_left(w: World, forks: Workers, point: str, scene: str) -> None:
    """Also where there is neither key nor readback: before it claimed, nothing can have left, and it is sent."""
    assert forks.kill(point=point, **SCENES[scene].play(w, forks))
    assert w.sandbox.requests() == []
    scenes.finish(w)
    assert scenes.ends(w) == SCENES[scene].end


def test_row_22_two_deliveries_at_the_same_moment(w: World, forks: Workers) -> None:
    """Two processes are told of the same work: one does it, the other finds a live lease and goes away."""
    scene = SCENES["order"]
    asked = scene.play(w, forks)
    both = [forks.start(**asked), forks.start(**asked)]
    assert [forks.wait(pid) for pid in both] == [{"code": 0}, {"code": 0}]
    scenes.finish(w)
    assert scenes.ends(w) == scene.end


def test_row_23_two_workers_resume_one_checkpoint(w: World, forks: Workers) -> None:
    """The first is stopped with the checkpoint in its hands; the second goes on; the first changes nothing."""
    scene = SCENES["order"]
    asked = scene.play(w, forks)
    stopped = forks.start(point="checkpoint.after_load", action="stop", **asked)
    assert forks.wait(stopped) == {"stopped": True}
    for row in Worker.objects.exclude(pk=w.me.id):
        w.silence(row.pk)
    scenes.finish(w)
    before = Event.objects.count()
    assert forks.go_on(stopped) == {"code": 0}
    refused = Event.objects.order_by("id")[before:]
    assert [(e.kind, e.body["moves"]) for e in refused] == [(EventKind.RUN_STALE_REFUSED, [])], "told, no state moved"
    assert scenes.ends(w) == scene.end


WALL = {"time.time", "datetime.now", "datetime.utcnow", "timezone.now", "date.today"}
READS_IT = {
    "recovery/contract/inspection.py": "a sample run for the checks of a contract",
    "recovery/ports/http.py": "how long a call took, for the screens",
    "recovery/checks.py": "a warning that a promise ends soon",
    "recovery/upkeep/notify.py": "the timestamp that a signed message carries to its receiver",
    "recovery/simulation/mail.py": "signs as the other side would: the library verifies by the wall's clock",
}


def test_row_26_no_worker_reads_its_own_clock() -> None:
    """Leases, clocks and order are the database's: a machine whose clock is wrong can be early or late for nothing."""
    found = {}
    for path in sorted([*(ROOT / "runs").rglob("*.py"), *(ROOT / "recovery").rglob("*.py")]):
        name = path.relative_to(ROOT).as_posix()
        if "/migrations/" in name or "/sandbox/" in name:
            continue
        calls = {ast.unparse(n.func) for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)}
        if calls & WALL:
            found[name] = sorted(calls & WALL)
    assert set(found) == set(READS_IT)


@pytest.mark.parametrize("point", ["advance.leased", "advance.after_step", "send.after", "reconcile.after_ask"])
def test_row_45_a_backend_is_terminated(w: World, fresh_db: FreshDatabase, forks: Workers, point: str) -> None:
    """At any place of a run: the connection is another one afterwards, and no half transaction stays."""
    scene = SCENES["order"]
    asked = {**scene.play(w, forks), "meanwhile": {point: "cut"}}
    assert forks.wait(forks.start(**asked)) == {"code": 0}
    scenes.finish(w)
    assert scenes.ends(w) == scene.end
    with fresh_db.connect() as other:
        left = other.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
        ).fetchone()
    assert left == (0,)


def test_row_47_a_transaction_that_stands_still_is_ended(fresh_db: FreshDatabase, w: World) -> None:
    """Every connection of ours has both limits; PostgreSQL ends what stands still, and its locks are free."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("30s",)
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("30s",)
    run = w.accept("test.chain", "pay")
    with fresh_db.connect(autocommit=False) as other:
        other.execute("SET idle_in_transaction_session_timeout = '50ms'")
        other.execute("SELECT 1 FROM runs_run WHERE id = %s FOR UPDATE", [run])
        assert w.advance(run) == "completed", "it waited for the lock until PostgreSQL had ended the other"
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            other.execute("SELECT 1")


def test_row_49_decisions_read_the_primary() -> None:
    """There is one database: nothing can read a replica by mistake."""
    assert set(settings.DATABASES) == {"default"} and not settings.DATABASE_ROUTERS


def test_row_63_the_sweep_twice_or_not_at_all(w: World, fresh_db: FreshDatabase) -> None:
    """One by the lock; and where two sweep all the same, everything is done once."""
    with fresh_db.connect() as other:
        other.execute("SELECT pg_advisory_lock(%s)", [sweep.LOCK])
        assert not sweep.is_the_one()
        other.execute("SELECT pg_advisory_unlock(%s)", [sweep.LOCK])
    assert sweep.is_the_one()
    run = w.accept("test.many", "slow")
    w.advance(run)
    for one in (sweep.Sweep(), sweep.Sweep()):
        one.run_once()
    rung = [args for task, args in w.rung if task == "dispatch"]
    assert len(rung) == 2, "both rang"
    for args in rung:
        w.do(TASKS["dispatch"], *map(UUID, args))
    w.drive(jump=timedelta(minutes=1))
    assert w.applied(w.effect(run)) == 1 and w.run(run).state == RunState.COMPLETED


def test_row_64_an_owner_of_the_database_edits_the_history(w: World, fresh_db: FreshDatabase) -> None:
    """With the triggers switched off an edit goes through; verifying names the first line that is not true."""
    run = w.accept("test.chain", "pay")
    w.drive()
    third = w.events(run)[2]
    edited = third.text.replace('"run"', '"nur"', 1)
    with fresh_db.connect() as owner, owner.transaction(force_rollback=True):
        owner.execute("ALTER TABLE runs_event DISABLE TRIGGER USER")
        owner.execute("UPDATE runs_event SET text = %s WHERE id = %s", [edited, third.pk])
        rows = owner.execute("SELECT seq, text, hash FROM runs_event WHERE run_id = %s ORDER BY seq", [run]).fetchall()
    assert chain.verify_run(w.run(run)).ok
    bad = [seq for seq, text, kept in rows if sha256(text.encode()).hexdigest() != kept]
    assert bad == [third.seq]


def test_row_67_no_result_backend_is_asked() -> None:
    """What a task gave is in the record; Celery keeps nothing that could be away."""
    assert settings.CELERY_RESULT_BACKEND is None and settings.CELERY_TASK_IGNORE_RESULT


def test_row_58_a_schema_from_the_future_is_left_alone(w: World) -> None:
    """No downgrade is written: the bytes stay, the lease is given back, the page says what it waits for."""
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    before = w.run(run).checkpoint_seq
    with pytest.MonkeyPatch.context() as older:
        older.setattr(codec, "SCHEMA", codec.SCHEMA - 1)
        w.advance_anyway(run)
    row = w.run(run)
    assert (row.state, row.waiting_on, row.lease_owner) == ("waiting", "version_missing", None)
    assert row.checkpoint_seq == before
