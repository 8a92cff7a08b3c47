"""The sandbox's own clock: whole microseconds since 1970 (UTC), and their ISO 8601 forms."""

import time
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

SECOND: Final = 1_000_000
nanoseconds = time.time_ns
"""What tells the time; only the simulation puts its own here."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def now_us() -> int:
    """The present moment, in microseconds since 1970."""
    return nanoseconds() // 1_000


def iso(moment_us: int, precision: Literal["milliseconds", "microseconds"] = "milliseconds") -> str:
    """`moment_us` as ISO 8601 in UTC: providers answer in milliseconds, the ledger in microseconds."""
    moment = EPOCH + timedelta(microseconds=moment_us)
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")
