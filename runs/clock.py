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


elapsed = time.monotonic
"""Seconds that pass, for Watch; only the simulation puts its own here."""


class Watch:
    """The database's time carried forward between two commits by the monotonic clock.

    Saves a query where an instant is only needed to the second; each commit sets it anew.
    """

    def __init__(self, at: datetime, since: float | None = None) -> None:
        self.set(at, since)

    def set(self, at: datetime, since: float | None = None) -> None:
        """``at`` is the database's time of a call that began at ``since`` (by ``elapsed()``; None: now).

        A process that was stopped while it waited for that answer must not take the time it slept for none: what
        passed since the call began counts.
        """
        self._at = at
        self._mark = elapsed() if since is None else since

    def now(self) -> datetime:
        return self._at + timedelta(seconds=elapsed() - self._mark)


def parse(text: str) -> datetime:
    """An instant as the writer's function returns it (ISO 8601, UTC)."""
    return datetime.fromisoformat(text).astimezone(UTC)
