"""The ten failure classes and the default answer to each (DESIGN section 5).

A class says whether another try can change the result; it is derived from an outcome, never from an
exception's name alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class FailureClass(StrEnum):
    """What kind of failure this is."""

    INVALID = "invalid"  # the request or an invariant is wrong
    REFUSED = "refused"  # authorization or policy said no
    REJECTED = "rejected"  # the business said no
    TRANSIENT = "transient"  # known not applied, may pass
    OVERLOAD = "overload"  # known not applied, asked to come later
    PARTIAL = "partial"  # some items happened
    UNKNOWN = "unknown"  # sent, and nobody knows
    CONFLICT = "conflict"  # the authority's state moved on
    CANCELLED_OR_EXPIRED = "cancelled_or_expired"  # no longer wanted or allowed
    CORRUPT = "corrupt"  # recovery state is damaged or incompatible


class Answer(StrEnum):
    """What is done about a failure. ``escalate`` is nobody's default: a contract asks for it."""

    REPAIR_OR_END = "repair_or_end"
    GET_AUTHORITY = "get_authority"
    STEP_DECIDES = "step_decides"
    SEND_AGAIN_IN_BUDGET = "send_again_in_budget"
    BACK_OFF = "back_off"
    MEND_ON_PURPOSE = "mend_on_purpose"
    RECONCILE_FIRST = "reconcile_first"
    RELOAD_AND_REPLAN = "reload_and_replan"
    STOP_AND_SETTLE = "stop_and_settle"
    QUARANTINE = "quarantine"
    ESCALATE = "escalate"  # a person says whether the run goes on, before its step hears of it


@dataclass(frozen=True, slots=True)
class Rule:
    """The default answer, whether the same request may be sent again at all, and whether it costs a try."""

    answer: Answer
    same_request_again: bool
    costs_a_try: bool


RULES: Final[dict[FailureClass, Rule]] = {
    FailureClass.INVALID: Rule(Answer.REPAIR_OR_END, same_request_again=False, costs_a_try=True),
    FailureClass.REFUSED: Rule(Answer.GET_AUTHORITY, same_request_again=False, costs_a_try=True),
    FailureClass.REJECTED: Rule(Answer.STEP_DECIDES, same_request_again=False, costs_a_try=True),
    FailureClass.TRANSIENT: Rule(Answer.SEND_AGAIN_IN_BUDGET, same_request_again=True, costs_a_try=True),
    FailureClass.OVERLOAD: Rule(Answer.BACK_OFF, same_request_again=True, costs_a_try=False),
    FailureClass.PARTIAL: Rule(Answer.MEND_ON_PURPOSE, same_request_again=False, costs_a_try=True),
    FailureClass.UNKNOWN: Rule(Answer.RECONCILE_FIRST, same_request_again=True, costs_a_try=True),
    FailureClass.CONFLICT: Rule(Answer.RELOAD_AND_REPLAN, same_request_again=False, costs_a_try=True),
    FailureClass.CANCELLED_OR_EXPIRED: Rule(Answer.STOP_AND_SETTLE, same_request_again=False, costs_a_try=True),
    FailureClass.CORRUPT: Rule(Answer.QUARANTINE, same_request_again=False, costs_a_try=True),
}
"""Overload counts against time, not against tries; unknown may be sent again only with the key, in its
window."""

RETRYABLE: Final = frozenset(kind for kind, rule in RULES.items() if rule.same_request_again)

_C, _W = FailureClass, Answer

OVERRIDES: Final[dict[FailureClass, frozenset[Answer]]] = {
    _C.INVALID: frozenset({_W.QUARANTINE, _W.ESCALATE}),
    _C.REFUSED: frozenset({_W.STEP_DECIDES, _W.QUARANTINE}),
    _C.REJECTED: frozenset({_W.ESCALATE}),
    _C.TRANSIENT: frozenset({_W.ESCALATE}),
    _C.OVERLOAD: frozenset({_W.ESCALATE}),
    _C.PARTIAL: frozenset({_W.ESCALATE, _W.QUARANTINE}),
    _C.CONFLICT: frozenset({_W.ESCALATE, _W.QUARANTINE}),
    _C.CANCELLED_OR_EXPIRED: frozenset({_W.ESCALATE}),
}
"""Other answers that a contract may name (``Http.answers``). A class may also be taken out of ``Retry.classes`` (never
sent again), and a status be put into another table of ``Http`` (it proves something else). Unknown has no other answer:
nothing may come before asking. Nor has what is damaged: a path (``StateSchema``) makes it not damaged."""

ASKS_FIRST: Final = frozenset({Answer.ESCALATE, Answer.GET_AUTHORITY})
"""Answers for which a person is asked before the run's step hears of the outcome."""
