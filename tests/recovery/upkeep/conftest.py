"""A world whose record can be backed up and put back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from console.stack.services import Services
from recovery.contract import registry
from recovery.engine import workers
from tests.databases import FreshDatabase
from tests.recovery.engine.world import World
from tests.recovery.upkeep.backups import Backups, keep_outside


@pytest.fixture
def b(
    w: World,
    fresh_db: FreshDatabase,
    services: Services,
    tmp_path: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Backups]:
    """Only the tests' own operations are declared: those of the demonstration tell the sandbox's time, which stands."""
    declared = [contract for contract in registry.effects() if contract.operation.startswith("test.")]
    monkeypatch.setattr(registry, "effects", lambda: iter(declared))
    made = Backups(w, fresh_db, services, keep_outside(settings, tmp_path))
    before = workers._me
    yield made
    workers._me = before
    made.drop()
