"""What an answer proves (DESIGN section 5): only named statuses; all else after the request left is
unknown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from recovery.contract import FailureClass, OutcomeKind
from recovery.contract.failures import RULES, Answer
from recovery.contract.outcomes import FAILURE_OF, Outcome, retry_after
from recovery.ports.base import Answer as Heard
from recovery.ports.base import AnswerKind
from tests.unit.samples import HTTP, T0


def heard(
    status: int | None,
    body: bytes = b'{"id":"re_1"}',
    kind: AnswerKind = AnswerKind.ANSWERED,
    error: str | None = None,
    **headers: str,
) -> Heard:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Heard(kind, T0, T0, status=status, headers=named, body=body, error=error)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, OutcomeKind.SUCCEEDED),
        (201, OutcomeKind.SUCCEEDED),
        (202, OutcomeKind.ACCEPTED),
        (402, OutcomeKind.REJECTED),
        (401, OutcomeKind.REFUSED),
        (403, OutcomeKind.REFUSED),
        (400, OutcomeKind.INVALID),
        (429, OutcomeKind.OVERLOADED),
        (409, OutcomeKind.IN_FLIGHT),
        (422, OutcomeKind.MISMATCH),
        (503, OutcomeKind.TRANSIENT),
    ],
)
def test_named_statuses(status: int, kind: OutcomeKind) -> None:
    assert HTTP.classify(heard(status)).kind == kind


@pytest.mark.parametrize("status", [204, 301, 404, 408, 410, 418, 500, 502, 504, 599])
def test_every_other_status_is_unknown(status: int) -> None:
    """Invariant 4: a 500 is no guarantee that nothing happened."""
    assert HTTP.classify(heard(status)).kind == OutcomeKind.UNKNOWN


def test_503_is_unknown_too_unless_the_contract_says_otherwise() -> None:
    assert replace(HTTP, transient=frozenset()).classify(heard(503)).kind == OutcomeKind.UNKNOWN


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"id":', b"[]", b"null", b'{"id":1,"id":2}', b'{"other":1}'])
def test_a_success_that_cannot_be_read_is_unknown(body: bytes) -> None:
    """An unreadable answer after the request left is unknown; trap 28: duplicate keys count as unreadable."""
    got = HTTP.classify(heard(201, body))
    assert (got.kind, got.code, got.result) == (OutcomeKind.UNKNOWN, "unreadable_answer", None)


def test_a_refusal_does_not_need_a_readable_body() -> None:
    """The status proves it; their word is used when it can be read."""
    assert HTTP.classify(heard(402, b"<html>")).code == "http_402"
    assert HTTP.classify(heard(402, b'{"error":{"code":"insufficient_funds"}}')).code == "insufficient_funds"


def test_not_sent_and_lost() -> None:
    """Refused before any byte: known not sent. Anything after: unknown, whatever status was seen half-way."""
    assert HTTP.classify(heard(None, b"", AnswerKind.NOT_SENT, "connect_failed")).kind == OutcomeKind.NOT_SENT
    assert HTTP.classify(heard(None, b"", AnswerKind.LOST, "timeout")).kind == OutcomeKind.UNKNOWN
    assert HTTP.classify(heard(201, b"", AnswerKind.LOST, "reset")).kind == OutcomeKind.UNKNOWN


def test_in_part() -> None:
    partial = replace(HTTP, in_part=lambda body: body["done"] < 3)
    assert partial.classify(heard(200, b'{"id":"b","done":2}')).kind == OutcomeKind.PARTIAL
    assert partial.classify(heard(200, b'{"id":"b","done":3}')).kind == OutcomeKind.SUCCEEDED


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("Mon, 30 Nov 2026 02:42:00 GMT", 30.0),
        ("Mon, 30 Nov 2026 02:00:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("", None),
    ],
)
def test_retry_after_in_seconds_or_as_a_date_by_their_own_clock(told: str, seconds: float | None) -> None:
    answer = heard(429, retry_after=told, date="Mon, 30 Nov 2026 02:41:30 GMT")
    assert retry_after(answer) == seconds


def test_retry_after_without_date_header_is_by_the_end_of_the_call() -> None:
    answer = replace(
        heard(429, retry_after="Mon, 30 Nov 2026 02:42:00 GMT"),
        ended_at=datetime(2026, 11, 30, 2, 41, 50, tzinfo=UTC),
    )
    assert HTTP.classify(answer).retry_after_s == 10.0


def test_an_outcome_survives_its_column() -> None:
    outcome = HTTP.classify(heard(201))
    assert Outcome.from_json(outcome.as_json()) == outcome


def test_every_outcome_has_its_failure_class_and_every_class_its_answer() -> None:
    """DESIGN: ten classes, each with a default answer; success and "taken" are none."""
    assert set(FAILURE_OF) == set(OutcomeKind)
    assert set(RULES) == set(FailureClass)
    assert len(RULES) == 10
    assert {rule.answer for rule in RULES.values()} == set(Answer) - {Answer.ESCALATE}
    assert [kind for kind, failure in FAILURE_OF.items() if failure is None] == [
        OutcomeKind.SUCCEEDED,
        OutcomeKind.ACCEPTED,
    ]


def test_only_overload_costs_no_try_and_unknown_is_reconciled_first() -> None:
    assert [kind for kind, rule in RULES.items() if not rule.costs_a_try] == [FailureClass.OVERLOAD]
    assert RULES[FailureClass.UNKNOWN].answer == Answer.RECONCILE_FIRST


def test_problems_of_a_table() -> None:
    """A status in two tables, or none that is success, is refused by the check."""
    assert not list(HTTP.problems())
    assert "status 402 is both success and rejected" in list(replace(HTTP, success=frozenset({402})).problems())
    assert list(replace(HTTP, success=frozenset(), accepted=frozenset()).problems())
    assert list(replace(HTTP, invalid=frozenset({102})).problems())
