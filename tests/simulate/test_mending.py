"""The judge of compensations sees what it is for (invariant 16); no guard could be taken out to show it."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from recovery.simulation.invariants.mending import invariant_16

ORIGINAL, MENDING, AGAIN = (UUID(int=n) for n in (1, 2, 3))


def _judged(state: str, counts: dict[str, int]) -> list[str]:
    wrong: list[str] = []
    rows: dict[UUID, dict[str, Any]] = {
        ORIGINAL: {"id": ORIGINAL, "mends_id": None, "sent_key": "book", "state": state},
        MENDING: {"id": MENDING, "mends_id": ORIGINAL, "sent_key": "unbook", "state": "not_applied"},
        AGAIN: {"id": AGAIN, "mends_id": ORIGINAL, "sent_key": "unbook/2", "state": "succeeded"},
    }
    world: Any = SimpleNamespace(
        seen=SimpleNamespace(effects=rows, new=[]),
        network=SimpleNamespace(counts=lambda: list(counts.items())),
        exercised=Counter(),
        label=str,
        violate=lambda number, what: wrong.append(f"{number}: {what}"),
    )
    invariant_16(world)
    return wrong


@pytest.mark.parametrize(
    ("state", "counts", "told"),
    [
        ("compensated", {"book": 1, "unbook": 1, "unbook/2": 1}, "mended 2 times"),
        ("compensated", {"book": 1}, "never was"),
        ("succeeded", {"unbook": 1}, "had never happened"),
    ],
)
def test_what_is_wrong_is_seen(state: str, counts: dict[str, int], told: str) -> None:
    """Twice in two generations, shown and not done, done for nothing."""
    (said,) = _judged(state, counts)
    assert told in said


def test_a_mended_original_is_right() -> None:
    assert _judged("compensated", {"book": 1, "unbook/2": 1}) == []
