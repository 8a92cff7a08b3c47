"""Retry, backoff and promises (invariant 10; the promise's window, comparison and end date)."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, timedelta

import pytest

from recovery.contract import Backoff, FailureClass, hours, seconds
from tests.unit.samples import KEYS, NO_KEYS, RETRY, T0


def test_backoff_doubles_up_to_its_cap() -> None:
    backoff = Backoff(base=seconds(2), cap=seconds(60))
    assert [backoff.ceiling(n).total_seconds() for n in (1, 2, 3, 5, 6, 7, 500)] == [2, 4, 8, 32, 60, 60, 60]


def test_full_jitter_covers_the_whole_pause() -> None:
    """Full jitter: from nothing to the ceiling, so that nobody comes back together."""
    rng = random.Random(1)
    pauses = [RETRY.delay(4, rng).total_seconds() for _ in range(2_000)]
    assert 0 <= min(pauses) < 0.5 and 15.5 < max(pauses) <= 16
    assert 7.5 < sum(pauses) / len(pauses) < 8.5


def test_the_same_seed_gives_the_same_pause() -> None:
    assert RETRY.delay(3, random.Random("e/3")) == RETRY.delay(3, random.Random("e/3"))


def test_retry_after_is_a_floor_when_honoured() -> None:
    for seed in range(50):
        assert RETRY.delay(1, random.Random(seed), seconds(30)) >= seconds(30)
    deaf = replace(RETRY, honour_retry_after=False)
    assert deaf.delay(1, random.Random(1), seconds(30)) <= seconds(2)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"attempts": 0}, "attempts"),
        ({"total": timedelta(0)}, "total"),
        ({"backoff": Backoff(base=seconds(5), cap=seconds(1))}, "backoff"),
        ({"jitter": "none"}, "jitter"),
        ({"owner": "celery"}, "owner"),
        ({"budget": 1.5}, "budget"),
        ({"classes": frozenset({FailureClass.REJECTED})}, "rejected"),
    ],
)
def test_problems_name_the_field(change: dict[str, object], word: str) -> None:
    """One layer sends again, bounded, and never what cannot become right by it."""
    assert not list(RETRY.problems())
    assert any(word in text for text in replace(RETRY, **change).problems())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, True),
        ({"until": date(2026, 11, 30)}, True),
        ({"until": date(2026, 11, 29)}, False),
        ({"compares": "nothing"}, False),
    ],
)
def test_a_promise_protects_only_while_it_holds(change: dict[str, object], holds: bool) -> None:
    """Promises are data with an end date; its last day counts."""
    assert replace(KEYS, **change).protects_resend(T0) is holds  # type: ignore[arg-type]


def test_without_keys_nothing_is_protected() -> None:
    assert not NO_KEYS.protects_resend(T0)


@pytest.mark.parametrize(
    ("promise", "word"),
    [
        (replace(KEYS, window=None), "window"),
        (replace(KEYS, compares=None), "compares"),
        (replace(KEYS, key_max_length=None), "key_max_length"),
        (replace(NO_KEYS, window=hours(1)), "neither window"),
        (replace(KEYS, version=0), "version"),
        (replace(KEYS, source=""), "source"),
    ],
)
def test_problems_of_a_promise_name_the_field(promise, word: str) -> None:
    assert not list(KEYS.problems()) and not list(NO_KEYS.problems())
    assert any(word in text for text in promise.problems())
