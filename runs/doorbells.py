"""Who is told after a commit. A doorbell carries no fact: lose, repeat or reorder it and nothing is lost.

The engine registers a ringer (Celery), the console another (live updates). They run after the commit and must
not raise for a broken broker; the sweep finds by state what a lost doorbell would have said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Ring:
    """What one commit touched. ``kinds`` are its events' kinds; ``ready`` the effects now ready to be sent; ``calls``
    the computations now to be asked for; ``wake`` whether the run is due now; ``trip`` a capacity whose breaker is to
    be looked at."""

    workspace: UUID
    run: UUID | None
    kinds: tuple[str, ...]
    effects: tuple[UUID, ...]
    approvals: tuple[UUID, ...]
    reviews: bool
    ready: tuple[UUID, ...]
    wake: bool
    trip: UUID | None = None
    calls: tuple[UUID, ...] = ()


_ringers: list[Callable[[Ring], None]] = []


def register(ringer: Callable[[Ring], None]) -> None:
    """Have ``ringer`` called after each commit of this process; registering it again changes nothing."""
    if ringer not in _ringers:
        _ringers.append(ringer)


def unregister(ringer: Callable[[Ring], None]) -> None:
    """Stop calling ``ringer``."""
    if ringer in _ringers:
        _ringers.remove(ringer)


def ring(what: Ring) -> None:
    """Tell everyone registered."""
    for ringer in tuple(_ringers):
        ringer(what)
