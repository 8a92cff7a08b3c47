"""A theatre for a module: one database of its own, and the doors of the engine back in their places afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from recovery.simulation import seeds
from recovery.simulation.guards import Guards
from recovery.simulation.seeds import Result
from tests.databases import FreshDatabase

Play = Callable[[int], Result]


@pytest.fixture
def play(fresh_db: FreshDatabase, request: pytest.FixtureRequest) -> Iterator[Play]:
    """Plays a seed. Parametrised indirectly by the guard that is out, if one is."""
    del fresh_db
    guards = Guards(getattr(request, "param", ""))
    with seeds.theatre(guards) as cast:
        yield lambda seed: seeds.play(seed, cast, guards)
