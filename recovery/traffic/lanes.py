"""Waiting for a moment inside a worker: few threads wait for one dependency, and calls leave one by one.

Moments are given out by the record, evenly apart (``runs_admit``). What is here keeps one process from spoiling that:
calls that were held up by a busy machine do not leave together afterwards, and a paced backlog does not occupy the
threads that other dependencies need. Nothing here is a fact: a process that ends loses only doorbells.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from math import ceil
from typing import Final
from uuid import UUID

AHEAD_OF_TIME: Final = 0.5
"""Seconds' worth of calls that wait in a process, each in its thread."""

MOST_THREADS: Final = 32
"""Threads of a process that wait for one dependency; half of the senders."""

TURNS: Final = 2
"""Threads of a lane that read and claim at once: one waits for the record while the other thinks."""

MOST_WAITING: Final = 1_000
"""Effects remembered behind them; the sweep rings the others again."""


class Road:
    """The calls of this process to one capacity: each leaves at its moment, and never closer than ``gap`` seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0.0

    def depart(self, wait: float, gap: float) -> None:
        """Sleep until the moment that is ``wait`` seconds away, or until the call before is ``gap`` seconds old."""
        with self._lock:
            at = max(time.monotonic() + max(wait, 0.0), self._last + gap)
            self._last = at
        time.sleep(max(at - time.monotonic(), 0))


class Turn:
    """The right to read, decide and claim in a lane: few at once, so that those who wait hold no connection."""

    def __init__(self, turns: threading.Semaphore) -> None:
        turns.acquire()
        self._turns: threading.Semaphore | None = turns

    def over(self) -> None:
        """Let the next one; a second time changes nothing."""
        turns, self._turns = self._turns, None
        if turns is not None:
            turns.release()


class Lane:
    """What this process sends to one dependency: at most ``limit`` threads at once, the others' effects queue."""

    def __init__(self, road: Road) -> None:
        self.road = road
        self._turns = threading.Semaphore(TURNS)
        self.gap = 0.0
        self.limit = 1
        self._lock = threading.Lock()
        self._active = 0
        self._waiting: deque[UUID] = deque()
        self._known: set[UUID] = set()

    def enter(self, effect: UUID) -> bool:
        """True if the caller may go on with ``effect`` and must call :meth:`leave`; else it waits for a thread."""
        with self._lock:
            if self._active < self.limit:
                self._active += 1
                return True
            if effect not in self._known and len(self._waiting) < MOST_WAITING:
                self._waiting.append(effect)
                self._known.add(effect)
            return False

    def leave(self) -> UUID | None:
        """The next effect for the thread that is done with one; None if it may go home."""
        with self._lock:
            if self._waiting and self._active <= self.limit and not _closing.is_set():
                effect = self._waiting.popleft()
                self._known.discard(effect)
                return effect
            self._active -= 1
            return None

    def turn(self) -> Turn:
        """Wait until this thread may read, decide and claim; hold no connection meanwhile."""
        return Turn(self._turns)

    def give_up(self) -> None:
        """The thread goes home in any case: what it did broke."""
        with self._lock:
            self._active -= 1


_closing = threading.Event()


def close() -> None:
    """This process ends: threads go home after the effect they are at; the sweep rings the others again."""
    _closing.set()


_lock = threading.Lock()
_roads: dict[UUID, Road] = {}
_lanes: dict[UUID, Lane] = {}


def road(capacity: UUID) -> Road:
    """This process's road to ``capacity``."""
    with _lock:
        return _roads.setdefault(capacity, Road())


def lane(dependency: UUID, capacity: UUID, pace: float, capacity_pace: float) -> Lane:
    """This process's lane to ``dependency``, for ``pace`` calls a second of the capacity's ``capacity_pace``."""
    own_road = road(capacity)
    with _lock:
        found = _lanes.get(dependency)
        if found is None or found.road is not own_road:
            found = _lanes[dependency] = Lane(own_road)
        found.gap = 1 / capacity_pace
        found.limit = max(2, min(MOST_THREADS, ceil(pace * AHEAD_OF_TIME)))
        return found
