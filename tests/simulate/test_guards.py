"""A guard is taken out on purpose, in a database of this test: the simulation must notice."""

from __future__ import annotations

import pytest

from recovery.simulation.guards import BREAKABLE, Guards, without_fence
from tests.simulate.conftest import Play

FOUND = {"fencing": (6, range(29, 59)), "attempt": (2, range(1, 9)), "consume": (8, range(1, 31))}
"""The invariant that each guard keeps, and seeds among which one finds it missing; the first of them does today."""


@pytest.mark.parametrize("play", BREAKABLE, indirect=True, ids=BREAKABLE)
def test_a_guard_that_is_out_is_found(play: Play, request: pytest.FixtureRequest) -> None:
    """Fencing (invariant 6), attempt before send (2), a request used once (8)."""
    guard = request.node.callspec.params["play"]
    invariant, seeds = FOUND[guard]
    assert any(invariant == one["invariant"] for seed in seeds for one in play(seed).violations)


def test_a_guard_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no guard"):
        Guards("gravity")


def test_the_fence_is_where_it_is_taken_out(db: None) -> None:
    """Else the breaking test would break nothing."""
    del db
    assert "ELSIF false THEN" in without_fence()
