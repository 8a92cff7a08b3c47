"""The simulation's time: it passes when the scheduler says so, and ten microseconds at each look.

The record's clock (``runs_now()``), the workers' (``clock.Watch``) and the sandbox's all read it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import connection

from runs import clock

BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""Where each seed begins. In the past of whoever runs it, so that no real time can look earlier than it."""

_INSTALL: Final = """
CREATE SEQUENCE IF NOT EXISTS simulated_looks CACHE 1;
CREATE OR REPLACE FUNCTION runs_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT timestamptz '2026-01-01 00:00:00+00' + (SELECT shift FROM runs_clockshift WHERE id = 1)
        + nextval('simulated_looks') * interval '10 microseconds'
$$
"""
_RESET: Final = "SELECT setval('simulated_looks', 1, false)"


def install() -> None:
    """Put this time in the record's clock; only ever in a throw-away database."""
    with connection.cursor() as cursor:
        cursor.execute(_INSTALL)


class Moments:
    """Seconds since the seed began, without the looks."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.before: list[Callable[[float], None]] = []
        with connection.cursor() as cursor:
            cursor.execute(_RESET)
        clock.shift(-self._shifted())

    def _shifted(self) -> timedelta:
        with connection.cursor() as cursor:
            cursor.execute("SELECT shift FROM runs_clockshift WHERE id = 1")
            (value,) = cursor.fetchone()
        assert isinstance(value, timedelta)
        return value

    def elapsed(self) -> float:
        """In the place of ``clock.elapsed``."""
        return self.passed

    def monotonic(self) -> float:
        """In the place of ``time.monotonic`` where a worker waits for its moment."""
        return self.passed

    def sleep(self, seconds: float) -> None:
        """In the place of ``time.sleep`` there: whoever waits lets time pass for all."""
        if seconds > 0:
            self.pass_by(seconds)

    def nanoseconds(self) -> int:
        """In the place of the sandbox's ``clock.nanoseconds``."""
        return int((BEGAN.timestamp() + self.passed) * 1_000_000) * 1_000

    def pass_by(self, seconds: float) -> None:
        """Let ``seconds`` pass, for everyone; ``before`` are told first."""
        for told in self.before:
            told(seconds)
        self.passed += seconds
        clock.shift(timedelta(seconds=seconds))
