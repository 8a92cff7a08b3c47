"""Fixtures of the record's tests."""

from __future__ import annotations

import pytest

from runs import doorbells
from tests.runs import make


@pytest.fixture
def world(db: None) -> make.World:
    """Two workspaces and what a run of the first one needs, rolled back afterwards."""
    return make.world()


@pytest.fixture(autouse=True)
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record alone: no doorbell of the engine or the console rings."""
    monkeypatch.setattr(doorbells, "_ringers", [])
