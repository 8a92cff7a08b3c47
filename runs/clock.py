"""Time is the database's. A worker's own clock decides nothing."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from django.db import connection


def now() -> datetime:
    """The database's time: ``clock_timestamp()`` plus the shift that only tests set. One query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT runs_now()")
        (value,) = cursor.fetchone()
    assert isinstance(value, datetime)
    return value


def shift(by: timedelta) -> None:
    """Move the record's clock, for tests: expiry and timers follow at once in every process; heartbeats do not."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_clockshift SET shift = shift + make_interval(secs => %s)", [by.total_seconds()])


class Watch:
    """The database's time carried forward between two commits by the monotonic clock.

    Saves a query where an instant is only needed to the second; each commit sets it anew.
    """

    def __init__(self, at: datetime) -> None:
        self.set(at)

    def set(self, at: datetime) -> None:
        self._at = at
        self._mark = time.monotonic()

    def now(self) -> datetime:
        return self._at + timedelta(seconds=time.monotonic() - self._mark)


def parse(text: str) -> datetime:
    """An instant as the writer's function returns it (ISO 8601, UTC)."""
    return datetime.fromisoformat(text).astimezone(UTC)
