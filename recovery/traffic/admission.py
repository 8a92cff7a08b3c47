"""What a dependency lets through now, as the record has it; decided again under lock when an attempt is committed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Q

from runs.models import Capacity, Dependency, Drain
from runs.record import Committed
from runs.states import BreakerState, DrainState

AHEAD: Final = 2.0
"""Seconds for which a sender waits for its moment, with its attempt committed: less than the attempt's grace."""

AHEAD_INLINE: Final = 0.05
"""The same for a run's own worker: it holds a process, so what must wait longer is handed over."""

WINDOW: Final = timedelta(seconds=15)
"""Two windows make the counters (``runs_admit``)."""

FREE_REPEATS: Final = 10
"""Repeats in two windows that need no budget: a share of next to nothing says nothing."""

SENDS_BACKLOG: Final = frozenset({DrainState.CANARY, DrainState.RAMPING, DrainState.STEADY})


def pace(rate: float) -> float:
    """Calls a second at which a capacity with the safe ``rate`` is paced; the same as ``runs_pace``.

    Below the rate, since calls arrive less evenly than they leave (a sliding second then still has at most ``rate``).
    """
    return min(rate - 2, rate * 0.96) if rate >= 10 else rate * 0.8


def room_for_repeat(c: Capacity, budget: float | None, now: datetime) -> bool:
    """Whether one more repeat fits the retry budget (invariant 10). ``budget``: share of calls that may be repeats."""
    if budget is None or c.window_at is None or now >= c.window_at + 2 * WINDOW:
        return True
    over = now >= c.window_at + WINDOW
    repeats = c.repeats + (0 if over else c.last_repeats)
    calls = c.calls + (0 if over else c.last_calls)
    return repeats + 1 <= max(FREE_REPEATS, budget * (calls + 1))


def wait(done: Committed) -> None:
    """Sleep until the moment that a commit was given for its call. No connection should be held meanwhile."""
    if done.wait is not None:
        time.sleep(max(done.wait, 0.0))


@dataclass(frozen=True, slots=True)
class Standing:
    """One dependency as a sender finds it. ``drain``: the live one."""

    dependency: Dependency
    capacity: Capacity
    drain: Drain | None

    @property
    def closed_off(self) -> bool:
        """Whether a person holds it or its breaker lets nothing through: nothing is sent, whatever it is."""
        c = self.capacity
        probing = c.state == BreakerState.HALF_OPEN and c.probe is not None
        return self.dependency.held_at is not None or c.state == BreakerState.OPEN or probing

    def holds(self, asked_at: datetime | None) -> bool:
        """Whether what was asked for at ``asked_at`` may not be sent now."""
        if self.closed_off:
            return True
        return self.in_backlog(asked_at) and self.drain is not None and self.drain.state not in SENDS_BACKLOG

    def in_backlog(self, asked_at: datetime | None) -> bool:
        """Whether it belongs to the backlog of the live drain."""
        return self.drain is not None and asked_at is not None and asked_at <= self.drain.began_at

    def wants_check(self, asked_at: datetime) -> datetime | None:
        """The beginning of a drain that reads back what nobody knows before anything is written; else None."""
        if self.drain is not None and self.drain.state == DrainState.CHECKING and self.in_backlog(asked_at):
            return self.drain.began_at
        return None

    @property
    def pace(self) -> float | None:
        """Calls a second for this workspace, None where nothing paces it."""
        rate = self.capacity.rate
        return None if rate is None else pace(rate) * self.dependency.share


def standing(dependency: UUID) -> Standing:
    """The dependency, its capacity and its live drain, read now. At most two queries."""
    return standing_of(Dependency.objects.select_related("capacity").get(pk=dependency))


def standing_of(found: Dependency) -> Standing:
    """The same of a dependency that was just read with its capacity."""
    drain = None
    if found.draining is not None:
        drain = Drain.objects.filter(pk=found.draining, ended_at=None).first()
    return Standing(found, found.capacity, drain)


WAITING: Final = Q(not_before__isnull=False) | Q(next_check_at__isnull=False)
"""Effects that wait for something of Recourse's own: both halves have an index, unlike their state."""
