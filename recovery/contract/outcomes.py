"""What an answer proves, as data (DESIGN section 5, "Failure classes").

The rule: once the request may have left, everything the contract does not name is unknown: a timeout, a
reset, a 5xx, a body that cannot be read. A status says what was proved only because the contract says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, Final

from recovery.contract import canonical
from recovery.contract.errors import CanonicalError
from recovery.contract.failures import OVERRIDES, RULES, FailureClass
from recovery.contract.failures import Answer as Response
from recovery.ports.base import Answer, AnswerKind


class OutcomeKind(StrEnum):
    """What one attempt is known to have led to."""

    SUCCEEDED = "succeeded"
    REJECTED = "rejected"  # the business said no
    PARTIAL = "partial"
    TRANSIENT = "transient"  # answered before anything was applied
    OVERLOADED = "overloaded"  # 429: not tried
    ACCEPTED = "accepted"  # taken, result to come
    UNKNOWN = "unknown"
    NOT_SENT = "not_sent"  # no byte left
    REFUSED = "refused"  # 401, 403
    INVALID = "invalid"  # the contract says: refused as malformed, nothing applied
    IN_FLIGHT = "in_flight"  # 409: our own earlier send is being worked on
    MISMATCH = "mismatch"  # 422: the key is known with other content
    CONFLICT = "conflict"  # 409, 412: the authority's state moved on, nothing applied


FAILURE_OF: Final[dict[OutcomeKind, FailureClass | None]] = {
    OutcomeKind.SUCCEEDED: None,
    OutcomeKind.ACCEPTED: None,
    OutcomeKind.REJECTED: FailureClass.REJECTED,
    OutcomeKind.PARTIAL: FailureClass.PARTIAL,
    OutcomeKind.TRANSIENT: FailureClass.TRANSIENT,
    OutcomeKind.NOT_SENT: FailureClass.TRANSIENT,
    OutcomeKind.OVERLOADED: FailureClass.OVERLOAD,
    OutcomeKind.UNKNOWN: FailureClass.UNKNOWN,
    OutcomeKind.IN_FLIGHT: FailureClass.UNKNOWN,
    OutcomeKind.REFUSED: FailureClass.REFUSED,
    OutcomeKind.INVALID: FailureClass.INVALID,
    OutcomeKind.MISMATCH: FailureClass.INVALID,
    OutcomeKind.CONFLICT: FailureClass.CONFLICT,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One classified answer. ``code``: a stable word for what was met. ``retry_after_s``: seconds, if they
    said so."""

    kind: OutcomeKind
    code: str
    status: int | None = None
    result: dict[str, Any] | None = None
    reference: str | None = None
    retry_after_s: float | None = None

    @property
    def failure_class(self) -> FailureClass | None:
        """The class of this outcome, None when nothing failed."""
        return FAILURE_OF[self.kind]

    def as_json(self) -> dict[str, Any]:
        """As an attempt's ``outcome`` column keeps it."""
        return {
            "kind": str(self.kind),
            "code": self.code,
            "status": self.status,
            "result": self.result,
            "reference": self.reference,
            "retry_after_s": self.retry_after_s,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Outcome:
        """Back from the column. Raises KeyError or ValueError for what nobody wrote."""
        return cls(**{**stored, "kind": OutcomeKind(stored["kind"])})


_TABLES: Final = (
    "success",
    "accepted",
    "rejected",
    "refused",
    "invalid",
    "overload",
    "in_flight",
    "mismatch",
    "conflict",
    "transient",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """Statuses of one operation and what each proves; a status in none of them proves nothing (unknown).

    ``transient``: statuses that this operation answers before anything is applied, else empty. ``invalid``:
    refused as malformed, nothing applied. ``conflict``: refused because the authority's state is not the one
    the request was made for, nothing applied. ``answers``: what is done about a failure class instead of its
    default, {} for none (``failures.OVERRIDES``). ``result``: what of a success's body the step receives.
    ``reference``: our key as the body gives it back, or None. ``in_part``: from a success's body True when
    only some of it happened, or None. ``code_of``: the other side's own word in a refusal's body.
    """

    success: frozenset[int]
    accepted: frozenset[int]
    rejected: frozenset[int]
    refused: frozenset[int]
    invalid: frozenset[int]
    overload: frozenset[int]
    in_flight: frozenset[int]
    mismatch: frozenset[int]
    conflict: frozenset[int]
    transient: frozenset[int]
    answers: Mapping[FailureClass, Response]
    in_part: Callable[[Any], bool] | None
    reference: Callable[[Any], str | None] | None
    result: Callable[[Any], dict[str, Any]]
    code_of: Callable[[Any], str | None] | None

    def classify(self, answer: Answer) -> Outcome:
        """What ``answer`` proves. Never raises for what the other side sent."""
        if answer.kind is AnswerKind.NOT_SENT:
            return Outcome(OutcomeKind.NOT_SENT, answer.error or "not_sent")
        if answer.kind is AnswerKind.LOST or answer.status is None:
            return Outcome(OutcomeKind.UNKNOWN, answer.error or "no_answer", answer.status)
        status = answer.status
        if status in self.success or status in self.accepted:
            return self._taken(answer, status)
        for kind, statuses in self._refusals():
            if status in statuses:
                wait = retry_after(answer) if kind in (OutcomeKind.OVERLOADED, OutcomeKind.TRANSIENT) else None
                return Outcome(kind, self._their_code(answer) or f"http_{status}", status, retry_after_s=wait)
        return Outcome(OutcomeKind.UNKNOWN, f"http_{status}", status)

    def _refusals(self) -> Iterator[tuple[OutcomeKind, frozenset[int]]]:
        yield OutcomeKind.REJECTED, self.rejected
        yield OutcomeKind.REFUSED, self.refused
        yield OutcomeKind.INVALID, self.invalid
        yield OutcomeKind.OVERLOADED, self.overload
        yield OutcomeKind.IN_FLIGHT, self.in_flight
        yield OutcomeKind.MISMATCH, self.mismatch
        yield OutcomeKind.CONFLICT, self.conflict
        yield OutcomeKind.TRANSIENT, self.transient

    def answer_to(self, kind: FailureClass) -> Response:
        """What is done about a failure of this class: the contract's word, or the class's default."""
        return self.answers.get(kind, RULES[kind].answer)

    def _taken(self, answer: Answer, status: int) -> Outcome:
        try:
            body = canonical.parse(answer.body, nfc=False)
            result = self.result(body)
            canonical.check(result, nfc=False)
            reference = None if self.reference is None else self.reference(body)
            in_part = self.in_part is not None and self.in_part(body)
        except (CanonicalError, LookupError, TypeError, ValueError, AttributeError):
            # A success that cannot be read is not a success that can be trusted: the effect may well be
            # there.
            return Outcome(OutcomeKind.UNKNOWN, "unreadable_answer", status)
        if status in self.accepted:
            kind = OutcomeKind.ACCEPTED
        else:
            kind = OutcomeKind.PARTIAL if in_part else OutcomeKind.SUCCEEDED
        return Outcome(kind, f"http_{status}", status, result, reference)

    def _their_code(self, answer: Answer) -> str | None:
        if self.code_of is None:
            return None
        try:
            told = self.code_of(canonical.parse(answer.body, nfc=False))
        except (CanonicalError, LookupError, TypeError, ValueError, AttributeError):
            return None
        return None if told is None else str(told)[:100]

    def problems(self) -> Iterator[str]:
        """What is wrong with this table, one sentence each."""
        if not self.success and not self.accepted:
            yield "no status is named as success or accepted"
        seen: dict[int, str] = {}
        for name in _TABLES:
            for status in sorted(getattr(self, name)):
                if status in seen:
                    yield f"status {status} is both {seen[status]} and {name}"
                if not 200 <= status <= 599:
                    yield f"status {status} in {name} is no final HTTP status"
                seen[status] = name
        for kind, answer in self.answers.items():
            allowed = {RULES[kind].answer, *OVERRIDES.get(kind, ())}
            if answer not in allowed:
                yield f"{kind} is answered by {answer}; it can be {', '.join(sorted(allowed))}"


def retry_after(answer: Answer) -> float | None:
    """Seconds of a Retry-After header (RFC 9110, 10.2.3: seconds or a date), None when absent or unreadable.

    A date is taken relative to the answer's own Date header, so that a wrong clock there does no harm.
    """
    told = answer.headers.get("retry-after", "").strip()
    if told.isdigit():
        return float(told[:6])
    if not told:
        return None
    try:
        until = parsedate_to_datetime(told)
        sent = answer.headers.get("date")
        since = parsedate_to_datetime(sent) if sent else answer.ended_at
    except ValueError:
        return None
    return max(0.0, (_aware(until) - _aware(since)).total_seconds())


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)
