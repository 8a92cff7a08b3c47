"""Some seeds of the simulation: every invariant holds after every move, and everything comes to rest."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulate.conftest import Play

BLOCKS = [range(first, first + 5) for first in (1, 6, 11, 16)]
ALWAYS = {1, 2, 3, 6, 9, 10, 11, 12, 14, 15, 16}
"""Invariants that any five seeds put to the test; the others need more of them."""


@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_the_invariants_hold_after_every_move(play: Play, seeds: range) -> None:
    """Safety in each move, liveness in each seed, and enough faults that this means something."""
    moves = effects = hit = 0
    exercised: Counter[int] = Counter()
    for seed in seeds:
        result = play(seed)
        assert result.violations == [], f"again: manage.py simulate --seed {seed} --trace"
        assert result.ended == result.runs, "liveness: once the faults are over everything ends"
        moves, effects, hit = moves + result.moves, effects + result.effects, hit + result.hit
        exercised += result.exercised
    assert moves >= 20 * len(seeds)
    assert hit >= 0.2 * effects > 0
    assert {n for n in ALWAYS if not exercised[n]} == set()


def test_a_seed_replays_exactly(play: Play) -> None:
    """The same moves, the same ends: whatever another seed left in the database."""
    first = play(7).trace
    play(8)
    assert play(7).trace == first
    assert len(first) > 30
