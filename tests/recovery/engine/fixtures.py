"""A world for each test: a fresh database, a sandbox, contracts of the tests' own, no doorbell but the
sweep's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recovery import bells, failpoints
from recovery.engine import workers
from recovery.sandbox.server import Sandbox
from runs import doorbells
from runs.models import Epoch
from tests.databases import FreshDatabase
from tests.recovery.engine.registered import registered
from tests.recovery.engine.world import World, look
from tests.recovery.stage import stage


@pytest.fixture
def w(fresh_db: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Afterwards every chain verifies, every history folds, no intent took effect twice."""
    del fresh_db
    monkeypatch.setattr(doorbells, "_ringers", [])
    epoch = Epoch.objects.order_by("-id").values_list("id", flat=True)[0]
    with registered(), Sandbox(tmp_path / "sandbox.sqlite3") as sandbox:
        world = World(stage(), sandbox)
        look(world)
        world.me = workers.Me(world.worker().id, "advance", epoch)
        monkeypatch.setattr(workers, "_me", world.me)
        monkeypatch.setattr(workers, "_pid", workers.os.getpid())

        monkeypatch.setattr(bells, "publish", world.publish)
        yield world
        failpoints.disarm()
        world.sound()
