"""When the same request may be sent again, how often, how long, how far apart (invariant 10).

One layer sends again: Recourse. HTTP clients, Celery and SDKs are set to none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from recovery.contract.failures import RETRYABLE, FailureClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential: ``base`` doubled for each further try, never above ``cap``."""

    base: timedelta
    cap: timedelta

    def ceiling(self, n: int) -> timedelta:
        """The longest pause after the ``n``-th try (n from 1)."""
        doublings = min(max(n - 1, 0), 32)
        return min(self.base * (1 << doublings), self.cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The retry policy of one operation.

    ``classes``: failure classes that may be sent again. ``attempts``: sends in all, the first included;
    overload does not count. ``total``: time from the first send to the last. ``jitter`` is "full" (0 to the
    ceiling). ``budget``: share of a dependency's calls that may be repeats, 0 to 1, or None. ``owner``: the
    one layer.
    """

    classes: frozenset[FailureClass]
    attempts: int
    total: timedelta
    backoff: Backoff
    jitter: str
    honour_retry_after: bool
    budget: float | None
    owner: str

    def allows(self, kind: FailureClass) -> bool:
        """Whether this class may be sent again at all."""
        return kind in self.classes

    def delay(self, n: int, rng: random.Random, retry_after: timedelta | None = None) -> timedelta:
        """The pause after the ``n``-th try: full jitter, but never less than an honoured Retry-After."""
        pause = self.backoff.ceiling(n) * rng.random()
        if retry_after is not None and self.honour_retry_after:
            # Jitter on top, so that all who were told the same second do not come back in it.
            return retry_after + pause
        return pause

    def problems(self) -> Iterator[str]:
        """What is wrong with this policy, one sentence each."""
        if self.attempts < 1:
            yield "attempts must be at least 1"
        if self.total <= timedelta(0):
            yield "total must be longer than nothing"
        if self.backoff.base <= timedelta(0) or self.backoff.cap < self.backoff.base:
            yield "backoff needs 0 < base <= cap"
        if self.jitter != "full":
            yield 'jitter must be "full"'
        if self.owner != "recourse":
            yield 'owner must be "recourse": one layer sends again'
        if self.budget is not None and not 0 <= self.budget <= 1:
            yield "budget must be a share from 0 to 1, or None"
        for kind in sorted(self.classes - RETRYABLE):
            yield f"class {kind} never becomes right by sending the same again"
