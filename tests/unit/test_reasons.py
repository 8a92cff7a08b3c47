"""The gate's four lines in the words of the screens (screens.md, sections 0 and 4)."""

from __future__ import annotations

import re
from datetime import datetime

import pytest

from recovery.engine.decide import decide
from recovery.engine.reasons import OF_RUNS, REASONS, TIMES, gate
from runs.states import Claim, EffectState
from tests.unit.samples import T0, at, evidence, facts_only, lost, neither, not_found, snap

FORBIDDEN = re.compile(
    r"\b(retry|undo|rollback|revert|error|failed|resolve|resolved|kill|dead letter|force|please|oops"
    r"|successfully|simply|user|N/A)\b|!",
    re.IGNORECASE,
)


def clock(when: datetime) -> str:
    return when.strftime("%d %b %H:%M:%S")


def lines(code: str, **facts: object) -> list[str]:
    made = gate({"code": code, "facts": facts}, people="Oncall A", show_time=clock)
    return [made.waiting_for, made.ends_when, made.who_can, made.if_nobody_acts]


@pytest.mark.parametrize("code", sorted(REASONS))
def test_no_forbidden_word_and_no_idle_sentence(code: str) -> None:
    """Tone: calm, no blame, none of the words that the screens do not write."""
    reason = REASONS[code]
    for text in (reason.waiting_for, reason.ends_when, reason.who_can, reason.if_nobody_acts):
        assert str(text).strip()
        assert not FORBIDDEN.search(str(text)), text
    assert str(reason.if_nobody_acts).endswith(".")


def test_walk_a_says_that_nothing_is_sent_again() -> None:
    """Walk a: agreeing facts; the last line says what happens by itself and when the run expires."""
    case = snap(EffectState.UNKNOWN, lost(), seen=[evidence(12, Claim.HAPPENED)], run_deadline=at(100_000))
    stored = decide(case, facts_only(), at(12)).as_json()
    got = gate(stored, people="Oncall A, Approver B", show_time=clock)
    assert got.turn == "person"
    assert got.waiting_for == (
        "a decision: cards-eu shows facts that agree, which is no proof: Refund EUR 84.00 on charge ch_3QK9"
    )
    assert got.who_can == "Oncall A, Approver B"
    assert got.if_nobody_acts == (
        "Nothing is sent again. Recourse checks at 30 Nov 02:41:14. The run expires 01 Dec 06:27:40."
    )


def test_no_way_to_check_says_so() -> None:
    """Screens 1.4: no key and no readback."""
    stored = decide(snap(EffectState.UNKNOWN, lost()), neither(), at(12)).as_json()
    got = gate(stored, people="Oncall A", show_time=clock)
    assert got.ends_when == "a person decides; notices offers no way to check"
    assert got.if_nobody_acts == "Nothing is sent again."


def test_walk_d_says_that_it_only_checks_while_cancelling() -> None:
    case = snap(EffectState.UNKNOWN, lost(), seen=[not_found(41)], cancelling=True)
    got = gate(decide(case, facts_only(), at(42)).as_json(), people="Oncall A", show_time=clock)
    assert got.ends_when == "cards-eu answers two checks, 30 s apart, or a person decides"
    assert "It does not send again while cancelling." in got.if_nobody_acts


def test_runs_have_their_own_lines() -> None:
    """What a reader makes from the run's columns."""
    facts = {"timer": {"at": T0.isoformat()}, "event": {"event": "order.changed"}, "undecryptable": {"key": "k1"}}
    facts |= {code: {"title": "Cancel order A-1"} for code in ("child", "child_stands")}
    for code in OF_RUNS:
        assert all(lines(code, **facts.get(code, {})))
    assert lines("timer", at=T0.isoformat())[3] == "Recourse goes on at 30 Nov 02:41:00."
    assert "The run expires" in lines("not_started", run_deadline=T0.isoformat())[3]


def test_an_undeclared_code_or_fact_is_noticed() -> None:
    with pytest.raises(KeyError):
        lines("whatever")
    with pytest.raises(KeyError):
        lines("timer")
    assert "at" in TIMES
