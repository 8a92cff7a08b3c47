"""Pills, moments, money, payloads, differences and refusals: what the console says, without a database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from console import money, payload, pills, when, words
from console.diff import difference
from runs import errors, states


def _all_errors(kind: type[errors.RunsError]) -> list[type[errors.RunsError]]:
    """Refusals that a person can meet; those of the contract language are said by the checks and the API."""
    deeper = [error for child in kind.__subclasses__() for error in _all_errors(child)]
    return [e for e in [kind, *deeper] if not e.__module__.startswith("recovery.contract")]


@pytest.mark.parametrize(
    ("thing", "enum"),
    [
        ("effect", states.EffectState),
        ("approval", states.ApprovalState),
        ("review", states.ReviewKind),
        ("attempt", states.AttemptState),
        ("verdict", states.VerdictState),
        ("waiting", states.WaitingOn),
        ("strength", states.Strength),
    ],
)
def test_every_state_has_a_pill_and_no_pill_is_left_over(thing: str, enum: type) -> None:
    """A state without words would be an empty place on a page."""
    table = pills.STRENGTHS if thing == "strength" else pills.PILLS[thing]
    assert set(table) == set(enum.values)  # type: ignore[attr-defined]


def test_every_run_state_has_a_pill() -> None:
    """Waiting has one for each thing that a run waits on."""
    assert set(pills.PILLS["run"]) | {"waiting"} == set(states.RunState.values)
    assert pills.pill_for("run", "waiting", "unknown").form == "dashed"


def test_form_says_whose_turn_it_is() -> None:
    """Ended is plain, only evidence ends what is dashed: colour is never alone."""
    assert {pills.PILLS["effect"][s].form for s in states.EFFECT_SETTLED} == {"plain"}
    assert {pills.PILLS["run"][s].form for s in states.RUN_ENDED} == {"plain"}
    assert {s for s, look in pills.PILLS["effect"].items() if look.form == "dashed"} == {
        "unknown",
        "partial",
        "disputed",
    }


def test_a_pill_without_its_fact_still_says_something() -> None:
    """No brace reaches a page."""
    for table in pills.PILLS.values():
        for look in table.values():
            assert look.text() and "{" not in look.text()
    assert pills.PILLS["effect"]["rejected"].text(dependency="payments") == "Refused by payments"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (80, "1 min 20 s"),
        (119, "1 min 59 s"),
        (121, "2 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (6240, "1 h 44 min"),
        (24 * 3600 + 600, "24 h"),
        (38 * 3600, "38 h"),
        (51 * 3600, "2 d 3 h"),
        (72 * 3600, "3 d"),
        (-1860, "31 min"),
    ],
)
def test_spans_have_at_most_two_units(seconds: int, said: str) -> None:
    """The two largest units, seconds only in the last two minutes."""
    assert when.span(seconds) == said


def test_a_deadline_that_is_over_says_so() -> None:
    """ "in" becomes "past", "Due in" becomes "Late by"."""
    now = datetime(2026, 11, 30, 3, 12, 41, tzinfo=UTC)
    assert when.phrase("due", now - timedelta(minutes=4), now) == "Late by 4 min"
    assert when.phrase("due", now + timedelta(minutes=104), now) == "Due in 1 h 44 min"
    assert when.phrase("in", now - timedelta(minutes=4), now) == "4 min past"


def test_clocks_are_in_the_persons_zone_and_name_another_day() -> None:
    """One zone everywhere; the date appears as soon as it is not today there."""
    now = datetime(2026, 11, 30, 19, 12, 41, tzinfo=UTC)
    with timezone.override("Asia/Shanghai"):
        assert when.stamp(now, now) == "03:12:41"
        assert when.stamp(now - timedelta(hours=4), now, seconds=False) == "30 Nov 23:12"
        assert when.stamp(now + timedelta(days=60), now) == "30 Jan 2027 03:12:41"
        assert when.zone_label(now) == "UTC+08:00"
        assert when.precise(now) == "2026-12-01 03:12:41.000"


@pytest.mark.parametrize(
    ("minor", "currency", "said"),
    [
        (8400, "EUR", "EUR 84.00"),
        (125000, "USD", "USD 1,250.00"),
        (5, "USD", "USD 0.05"),
        (1500, "JPY", "JPY 1,500"),
        (1234567, "KWD", "KWD 1,234.567"),
        (-50, "EUR", "EUR -0.50"),
        (90071992547409931, "EUR", "EUR 900,719,925,474,099.31"),
        (100, "ZZZ", "100 minor units of ZZZ"),
    ],
)
def test_money_is_exact(minor: int, currency: str, said: str) -> None:
    """All minor digits of the currency, beyond 2**53 too; an unknown currency is not guessed."""
    assert money.amount(minor, currency) == said


def test_what_is_at_stake() -> None:
    """Money says its direction, other things their number."""
    stake = {"kind": "money", "direction": "out", "amount": 8400, "currency": "EUR"}
    assert money.at_stake(stake) == "EUR 84.00 out"
    assert money.at_stake({"kind": "count", "n": 1, "noun": "e-mail"}) == "1 e-mail"
    assert money.at_stake(None) == ""


@pytest.mark.parametrize(
    "char", ["\u202e", "\u200b", "\x00", "\u2066", "\ufeff", "\u00a0", "\r", "\u3164", "\U000e0041"]
)
def test_what_cannot_be_seen_becomes_a_chip(char: str) -> None:
    """A signer sees direction marks and invisible characters instead of what they do (trap 7)."""
    parts = list(payload.pieces(f"a{char}b"))
    assert [p.text for p in parts] == ["a", f"U+{ord(char):04X}", "b"]
    assert [p.chip for p in parts] == [False, True, False]


def test_ordinary_text_is_untouched() -> None:
    """Chinese, accents, line ends and tabs are no chips."""
    text = '{"note": "退款 é",\n\t"n": 1}'
    assert [p.text for p in payload.pieces(text)] == [text]


def test_a_difference_is_by_path() -> None:
    """added, removed, changed by JSON path; the same are counted; 1 and true differ."""
    found = difference({"a": 1, "b": {"c": [1, 2]}, "d": 1}, {"a": 1, "b": {"c": [1, 3], "e": None}, "d": True})
    assert [(c.mark, c.path, c.before, c.after) for c in found.changes] == [
        ("~", "b.c[1]", "2", "3"),
        ("+", "b.e", "", "null"),
        ("~", "d", "1", "true"),
    ]
    assert found.same == 2


@pytest.mark.parametrize("error", _all_errors(errors.RunsError), ids=lambda e: e.code)
def test_every_refusal_has_words(error: type[errors.RunsError]) -> None:
    """With facts or without, a code becomes a sentence: no brace, no bare code."""
    said = words.refusal(error.code, {})
    assert said.endswith(".") and "{" not in said and f"({error.code})" not in said


def test_a_refusal_names_who_and_when() -> None:
    """What did not happen, why with names and times, what now."""
    facts = {"thing": "The effect", "at": "03:13:58", "who": "Approver B"}
    assert words.refusal("stale_version", facts) == (
        "Nothing was done. The effect changed while you were reading (03:13:58, Approver B). Read it again."
    )
