"""Lengths of time as contracts write them: ``timeout=seconds(10)``."""

from __future__ import annotations

from datetime import timedelta


def seconds(n: float) -> timedelta:
    """``n`` seconds."""
    return timedelta(seconds=n)


def minutes(n: float) -> timedelta:
    """``n`` minutes."""
    return timedelta(minutes=n)


def hours(n: float) -> timedelta:
    """``n`` hours."""
    return timedelta(hours=n)


def days(n: float) -> timedelta:
    """``n`` days."""
    return timedelta(days=n)
