"""What the other side guarantees about keys: versioned data with an end date, a claim until probed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The promise of one dependency about one operation.

    ``keys``: it knows idempotency keys. ``window``: how long it remembers one. ``compares``: "body" when
    another body under the same key is refused, "nothing" when it is not looked at. ``mismatch_status`` and
    ``in_flight_status``: what it answers then. ``lag``: how far a readback may be behind. ``key_max_length``:
    in characters. ``until``: the day on which this promise ends (None: no end named). ``source``: where it is
    written.
    """

    keys: bool
    window: timedelta | None
    compares: str | None
    mismatch_status: int | None
    in_flight_status: int | None
    lag: timedelta | None
    key_max_length: int | None
    version: int
    until: date | None
    source: str

    def in_force(self, now: datetime) -> bool:
        """Whether the promise still holds on the day of ``now``; the end day itself counts."""
        return self.until is None or now.date() <= self.until

    def protects_resend(self, now: datetime) -> bool:
        """Whether sending the same bytes under the same key cannot make it happen twice (window apart)."""
        return self.keys and self.compares == "body" and self.window is not None and self.in_force(now)

    def problems(self) -> Iterator[str]:
        """What is wrong with this promise, one sentence each."""
        if self.keys:
            if self.window is None:
                yield "a promise with keys names its window"
            if self.compares not in ("body", "nothing"):
                yield 'a promise with keys says what it compares: "body" or "nothing"'
            if self.key_max_length is None:
                yield "a promise with keys names key_max_length"
        elif self.window is not None or self.compares is not None:
            yield "a promise without keys has neither window nor compares"
        if self.version < 1:
            yield "version starts at 1"
        if not self.source:
            yield "source says where the promise is written"
