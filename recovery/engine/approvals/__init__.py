"""Requests for signatures, by the rules R1 to R10 of the security rules and invariant 8.

``asking`` makes a request and what it binds; ``quorum`` knows who may sign; ``sending`` judges it before each
send; ``clocks`` ends what is over and follows changes of people. What people do is in
``recovery/actions/approvals.py``.
"""

from recovery.engine.approvals.asking import (
    OPEN,
    REPLACEABLE,
    ask,
    bytes_differ,
    columns,
    current_epoch,
    fields_of_effect,
    hands_in,
    review_of,
    supersede,
)
from recovery.engine.approvals.beforehand import signed_beforehand
from recovery.engine.approvals.clocks import expire_due, reevaluate
from recovery.engine.approvals.quorum import Rule, rule_of
from recovery.engine.approvals.sending import (
    Refused,
    check_before_send,
    consume,
    give_back,
    grant,
    revoke,
    still_good,
)

__all__ = [
    "OPEN",
    "REPLACEABLE",
    "Refused",
    "Rule",
    "ask",
    "bytes_differ",
    "check_before_send",
    "columns",
    "consume",
    "current_epoch",
    "expire_due",
    "fields_of_effect",
    "give_back",
    "grant",
    "hands_in",
    "reevaluate",
    "review_of",
    "revoke",
    "rule_of",
    "signed_beforehand",
    "still_good",
    "supersede",
]
