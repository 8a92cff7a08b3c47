"""What a readback shows: rows side by side, and the difference between proof and agreement (screens 1.4)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from recovery.contract.readback import Readback
from recovery.ports.base import Answer, AnswerKind
from runs.states import Claim, Strength
from tests.unit.samples import BY_FACTS, BY_REFERENCE, T0, Params, at

PARAMS = Params(charge="ch_3QK9", amount=8400, currency="EUR")
KEY = "refund:ch_3QK9"
BODY = b'{"amount":8400,"charge":"ch_3QK9","currency":"EUR"}'
ITEM: dict[str, Any] = {
    "id": "rf_77",
    "status": "succeeded",
    "charge": "ch_3QK9",
    "amount": 8400,
    "currency": "EUR",
    "created": at(1).isoformat(),
}
OURS = {**ITEM, "reference": KEY}


def read(readback: Readback, *items: dict[str, Any], **more: Any):
    body = json.dumps({"data": items, **more}).encode()
    answer = Answer(AnswerKind.ANSWERED, T0, at(60), status=200, body=body)
    return readback.read(answer, PARAMS, KEY, body=BODY, first_sent_at=T0)


def rows(answer) -> dict[str, tuple[str | None, str | None, str | None, bool | None]]:
    return {row.name: (row.meant, row.sent, row.theirs, row.same) for row in answer.facts}


def test_our_reference_proves() -> None:
    got = read(BY_REFERENCE, OURS)
    assert (got.claim, got.strength, got.item) == (Claim.HAPPENED, Strength.PROVES, {"id": "rf_77"})
    assert rows(got)["our reference"] == (KEY, KEY, KEY, True)


def test_equal_facts_agree_and_do_not_prove() -> None:
    """Walk a: 3 of 3 facts that can be compared agree; our reference cannot be compared."""
    got = read(BY_FACTS, ITEM)
    assert (got.claim, got.strength, got.others) == (Claim.HAPPENED, Strength.AGREES, 0)
    table = rows(got)
    assert table["amount"] == ("EUR 84.00", "8400 EUR", '[8400,"EUR"]', True)
    assert table["charge"] == ("ch_3QK9", "ch_3QK9", "ch_3QK9", True)
    assert table["made at"][3] is True
    assert table["our reference"] == (KEY, KEY, None, None)
    assert [row.same for row in got.facts].count(True) == 3


@pytest.mark.parametrize(
    "item",
    [
        {**ITEM, "amount": 8401},
        {**ITEM, "currency": "USD"},
        {**ITEM, "charge": "ch_other"},
        {**ITEM, "created": at(-61).isoformat()},
    ],
    ids=["amount", "currency", "charge", "older than our first send"],
)
def test_another_record_is_not_ours(item: dict[str, Any]) -> None:
    """Check that what is seen came from this intent."""
    got = read(BY_FACTS, item)
    assert (got.claim, got.item, got.others) == (Claim.NOT_FOUND, None, 1)


def test_a_reference_on_other_content_contradicts() -> None:
    got = read(BY_REFERENCE, {**OURS, "amount": 1})
    assert got.strength == Strength.CONTRADICTS
    assert rows(got)["amount"][3] is False


def test_nothing_there_is_not_found() -> None:
    got = read(BY_REFERENCE)
    assert (got.claim, got.strength) == (Claim.NOT_FOUND, Strength.AGREES)
    assert rows(got)["charge"] == ("ch_3QK9", "ch_3QK9", None, None)


@pytest.mark.parametrize(("word", "claim"), [("pending", Claim.PENDING), ("failed", Claim.REJECTED)])
def test_their_own_words_for_pending_and_refused(word: str, claim: Claim) -> None:
    assert read(BY_REFERENCE, {**OURS, "status": word}).claim == claim


def test_a_further_page_is_not_not_found() -> None:
    """A list that is not whole proves no absence."""
    assert read(BY_REFERENCE, has_more=True).claim == Claim.UNAVAILABLE
    assert read(BY_REFERENCE, OURS, has_more=True).claim == Claim.HAPPENED


def test_an_answer_speaks_of_its_own_time_but_never_of_the_future() -> None:
    """Fault 20: a replica that is behind does not count as a look at now."""
    assert read(BY_REFERENCE, as_of=at(5).isoformat()).observed_at == at(5)
    assert read(BY_REFERENCE, as_of=at(500).isoformat()).observed_at == at(60)
    assert read(BY_REFERENCE).observed_at == at(60)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(AnswerKind.LOST, T0, T0, error="timeout"),
        Answer(AnswerKind.NOT_SENT, T0, T0, error="connect_failed"),
        Answer(AnswerKind.ANSWERED, T0, T0, status=503, body=b"{}"),
        Answer(AnswerKind.ANSWERED, T0, T0, status=404, body=b'{"data":[]}'),
        Answer(AnswerKind.ANSWERED, T0, T0, status=200, body=b"<html>"),
        Answer(AnswerKind.ANSWERED, T0, T0, status=200, body=b'{"data":[{"id":1}]}'),
        Answer(AnswerKind.ANSWERED, T0, T0, status=200, body=b'{"items":[]}'),
        Answer(AnswerKind.ANSWERED, T0, T0, status=200, body=b'{"data":[],"as_of":"yesterday"}'),
        Answer(AnswerKind.ANSWERED, T0, T0, status=200, body=b'{"data":[],"as_of":"0001-01-01T00:00:00+23:59"}'),
        Answer(AnswerKind.ANSWERED, T0, T0, status=200, body=b'{"data":[],"as_of":"9999-12-31T23:59:59-23:59"}'),
        Answer(AnswerKind.ANSWERED, T0, T0, status=200, body=b'{"data":[],"as_of":"0001-01-01T00:00:00+23:59"}'),
        Answer(AnswerKind.ANSWERED, T0, T0, status=200, body=b'{"data":[],"as_of":"9999-12-31T23:59:59-23:59"}'),
    ],
)
def test_anything_else_is_no_answer(answer: Answer) -> None:
    """Fault 21: no answer is no evidence; it never reads as "not found"."""
    for readback in (BY_REFERENCE, BY_FACTS):
        got = readback.read(answer, PARAMS, KEY, body=BODY, first_sent_at=T0)
        if got.claim != Claim.UNAVAILABLE:
            assert readback is BY_REFERENCE and b'"id":1' in answer.body
            assert got.claim == Claim.NOT_FOUND
            continue
        assert (got.strength, got.item) == (Strength.NONE, None)
        assert got.error


def test_the_question_carries_the_key_or_the_charge() -> None:
    assert BY_REFERENCE.url("http://p/x/", PARAMS, KEY) == "http://p/x/v1/refunds?reference=refund%3Ach_3QK9"
    assert BY_FACTS.url("http://p/x", PARAMS, KEY) == "http://p/x/v1/refunds?charge=ch_3QK9"


def test_problems_name_what_is_wrong() -> None:
    assert not list(BY_REFERENCE.problems()) and not list(BY_FACTS.problems())
    assert any("reference" in text for text in replace(BY_FACTS, proof="reference").problems())
    assert any("proof" in text for text in replace(BY_FACTS, proof="hope").problems())
    assert any("fact" in text for text in replace(BY_FACTS, facts=()).problems())


def test_what_they_wrote_is_kept_as_text() -> None:
    """Where only our reference proves, an odd time or reference of theirs is shown, and read as nothing."""
    assert rows(read(BY_REFERENCE, {**OURS, "created": 1e308}))["made at"][2] == "1e+308"
    assert rows(read(BY_FACTS, {**ITEM, "created": "9999-12-31T23:59:59-23:59"})) == {}
