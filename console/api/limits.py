"""How many requests one caller may make: a bucket in the memory of each web process.

Nothing outside is asked: to accept a run PostgreSQL is enough, so a lost Valkey must not stop the API.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Any, Final

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

RATE: Final = 200.0  # requests a second, on average: well above the figure a run must be accepted at
BURST: Final = 400.0
MOST_CALLERS: Final = 10_000


class Buckets:
    """A token bucket for each key; the least recently used are forgotten."""

    def __init__(self, rate: float, burst: float, most: int = MOST_CALLERS) -> None:
        self._rate, self._burst, self._most = rate, burst, most
        self._lock = threading.Lock()
        self._levels: OrderedDict[Any, tuple[float, float]] = OrderedDict()

    def forget(self) -> None:
        """Begin anew for everyone."""
        with self._lock:
            self._levels.clear()

    def take(self, key: Any, now: float | None = None) -> float:
        """0.0 if one may pass now, else the seconds until one may. ``now``: of the monotonic clock."""
        now = time.monotonic() if now is None else now
        with self._lock:
            level, at = self._levels.get(key, (self._burst, now))
            level = min(self._burst, level + (now - at) * self._rate)
            passed = level >= 1.0
            self._levels[key] = (level - 1.0 if passed else level, now)
            self._levels.move_to_end(key)
            while len(self._levels) > self._most:
                self._levels.popitem(last=False)
        return 0.0 if passed else (1.0 - level) / self._rate


CALLERS: Final = Buckets(RATE, BURST)


class PerCaller(BaseThrottle):
    """One bucket a person and token."""

    def allow_request(self, request: Request, view: Any) -> bool:
        """Whether this request may go on."""
        self._wait = CALLERS.take((request.user.pk, getattr(request.auth, "token", None)))
        return self._wait == 0.0

    def wait(self) -> float:
        """Seconds until the next may, for Retry-After."""
        return self._wait
