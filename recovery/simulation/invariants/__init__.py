"""The invariants, each a function of its number, called after every move.

2, 8 and 14 are judged where they can be broken: in the commit that claims a send, and as the bytes leave
(``sending.py``); 6 also at each commit that goes through (``recovery/simulation/statement.py``); 15 where a person does
the same thing twice (``recovery/simulation/people.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from recovery.simulation.invariants.bounds import invariant_10, invariant_11, invariant_12
from recovery.simulation.invariants.computing import invariant_10_of_calls
from recovery.simulation.invariants.history import invariant_1, invariant_5, invariant_6, invariant_9
from recovery.simulation.invariants.mending import invariant_16
from recovery.simulation.invariants.resuming import invariant_13
from recovery.simulation.invariants.truth import invariant_3, invariant_4, invariant_7

if TYPE_CHECKING:
    from recovery.simulation.world import World

ALWAYS: Final[tuple[Callable[[World], None], ...]] = (invariant_3,)
"""What the ledger alone can break, also where the record has nothing new."""

AFTER_NEWS: Final[tuple[Callable[[World], None], ...]] = (
    *(invariant_1, invariant_9, invariant_5, invariant_6, invariant_13),
    *(invariant_4, invariant_7, invariant_10, invariant_10_of_calls, invariant_11, invariant_12, invariant_16),
)


def check(world: World) -> None:
    """Look at what the last move did; what does not hold is kept in the world."""
    news = world.seen.refresh()
    for one in (*AFTER_NEWS, *ALWAYS) if news else ALWAYS:
        one(world)
