"""A backup of a test's database, and putting it back under everything else that goes on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psycopg
from django.db import connections
from psycopg import sql
from pytest_django.fixtures import Settings

from console.stack.services import Services
from recovery.actions import restore as actions
from recovery.engine import lookfirst, workers
from recovery.upkeep.recover import carry_on
from recovery.upkeep.sweep import Sweep
from runs import epochs
from runs.models import Attempt, Effect, Restore
from runs.restored import RestoreState
from runs.states import EffectState
from tests.databases import FreshDatabase, point_at
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later


@dataclass
class Backups:
    """``outside``: the file of what was last seen."""

    w: World
    database: FreshDatabase
    services: Services
    outside: Path

    @property
    def name(self) -> str:
        return f"{self.database.name}_backup"

    def take(self) -> None:
        """Copy the database as it is."""
        self._run("CREATE DATABASE {} TEMPLATE {}", self.name, self.database.name)

    def put_back(self) -> None:
        """The copy in the place of the database, in the same cluster: identifier and timeline stay as they were."""
        self.w.gone |= {str(id) for id in Attempt.objects.values_list("pk", flat=True)}
        self._run("DROP DATABASE {} WITH (FORCE)", self.database.name)
        self._run("CREATE DATABASE {} TEMPLATE {}", self.database.name, self.name)
        lookfirst.forget()

    def drop(self) -> None:
        self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name)

    def go_on(self) -> None:
        """The processes took another name under the record's epoch, as their heartbeat has them do."""
        self.w.me = workers.Me(self.w.worker().id, "advance", epochs.current().pk)
        workers._me = self.w.me

    def _run(self, statement: str, *names: str) -> None:
        connections.close_all()
        with psycopg.connect(self.services.database_url, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
        point_at(self.database.name)


def keep_outside(settings: Settings, folder: Path) -> Path:
    """Keep what was last seen in ``folder``."""
    path = folder / "outside" / "record.json"
    settings.RECOURSE_OUTSIDE = path
    return path


def seen(b: Backups) -> dict[str, int]:
    """One sweep, that rings for nothing to be done."""
    counts = Sweep().run_once()
    b.w.rung.clear()
    return counts


def swept(b: Backups) -> Restore:
    """The sweep after the restore, to its end; the clock goes on meanwhile."""
    restore = Restore.objects.get(workspace=b.w.s.here)
    for _ in range(40):
        if carry_on(restore.pk) == "swept":
            break
        b.w.beat()
        for effect in Effect.objects.filter(state=EffectState.UNKNOWN):
            b.w.reconcile(effect)
        later(seconds=40)
    restore.refresh_from_db()
    assert restore.state == RestoreState.SWEPT
    return restore


def released(b: Backups, restore: Restore) -> None:
    s = b.w.s
    actions.ask_release(restore.pk, actor=s.oncall_a, act=act("ask"), reason="read through")
    actions.answer_release(restore.pk, actor=s.approver_b, act=act("let"), confirm=True, reason="seen")


def requests(w: World) -> int:
    return len(w.sandbox.requests())


def restored(b: Backups) -> None:
    """What was done since the backup is gone; the processes have taken their new names."""
    seen(b)
    b.put_back()
    assert seen(b)["frozen"] == 2
    b.go_on()
