"""What the simulated runs do: five operations, each with another promise of the other side, and five run types.

What decides a run's path stands in its data, so that the scheduler chooses it by the seed.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, Field

from recovery.contract import (
    Around,
    AtLeast,
    Backoff,
    EffectContract,
    Fact,
    FailureClass,
    Http,
    Money,
    OnCancel,
    OnLate,
    Promise,
    Readback,
    Retry,
    Signatures,
    Target,
    effect,
    hours,
    minutes,
    seconds,
)
from recovery.ports.http import HttpPort

LAG = seconds(30)
"""How far a readback may be behind; nothing that was given up arrives later than this, either."""

SIGNED_FROM = 100_000
"""Amounts from which two people sign."""


class Refund(BaseModel):
    """Amounts in minor units."""

    charge: str = Field(max_length=64)
    amount: int = Field(le=99_999_999)
    currency: str = Field(max_length=3, default="EUR")


class Letter(BaseModel):
    """A message about ``charge``."""

    charge: str


RETRY = Retry(
    classes=frozenset({FailureClass.TRANSIENT, FailureClass.OVERLOAD, FailureClass.UNKNOWN}),
    attempts=4,
    total=minutes(30),
    backoff=Backoff(base=seconds(2), cap=seconds(60)),
    jitter="full",
    honour_retry_after=True,
    budget=None,
    owner="recourse",
)
NO_REPEAT = replace(RETRY, classes=frozenset({FailureClass.TRANSIENT, FailureClass.OVERLOAD}))
KEYS = Promise(
    keys=True,
    window=hours(24),
    compares="body",
    mismatch_status=422,
    in_flight_status=409,
    lag=LAG,
    key_max_length=255,
    version=1,
    until=None,
    source="the sandbox",
)
NO_KEYS = replace(
    KEYS,
    keys=False,
    window=None,
    compares=None,
    mismatch_status=None,
    in_flight_status=None,
    key_max_length=None,
)
HTTP = Http(
    success=frozenset({200, 201}),
    accepted=frozenset({202}),
    rejected=frozenset({402}),
    refused=frozenset({401, 403}),
    invalid=frozenset({400}),
    overload=frozenset({429}),
    in_flight=frozenset({409}),
    mismatch=frozenset({422}),
    conflict=frozenset({412}),
    answers={},
    transient=frozenset({503}),
    in_part=None,
    reference=None,
    result=lambda body: {"id": body["id"]},
    code_of=lambda body: body["error"]["code"],
)
BY_REFERENCE = Readback(
    path="/v1/refunds",
    query=lambda p, key: {"reference": key},
    items=lambda body: body["data"],
    proof="reference",
    reference=lambda item: item.get("reference"),
    status=lambda item: item["status"],
    pending=frozenset({"pending"}),
    rejected=frozenset({"failed"}),
    made_at=lambda item: item["created"],
    as_of=lambda body: body.get("as_of"),
    complete=lambda body: not body.get("has_more", False),
    result=lambda item: {"id": item["id"]},
    facts=(
        Fact(
            name="amount",
            meant=lambda p: (p.amount, p.currency),
            sent=lambda body: f"{body['amount']} {body['currency']}",
            theirs=lambda item: (item["amount"], item["currency"]),
            show=lambda p: str(Money("out", p.amount, p.currency)),
        ),
        Fact(
            name="charge",
            meant=lambda p: p.charge,
            sent=lambda body: body["charge"],
            theirs=lambda item: item["charge"],
            show=None,
        ),
    ),
    lag=LAG,
    apart=seconds(30),
    backoff=Backoff(base=seconds(2), cap=minutes(5)),
    callback=lambda body: body["data"],
    timeout=seconds(10),
)
BY_FACTS = replace(
    BY_REFERENCE, query=lambda p, key: {"charge": p.charge}, proof="facts", reference=None, callback=None
)

_FIELDS: dict[str, Any] = {
    "version": 1,
    "params": Refund,
    "dependency": "payments",
    "port": HttpPort(
        method="POST",
        path="/v1/refunds",
        body=lambda p: {"charge": p.charge, "amount": p.amount, "currency": p.currency},
    ),
    "describe": _("Refund {amount} on charge {charge}"),
    "scope": "workspace",
    "requires": [Target("charge")],
    "authority": None,
    "outcomes": HTTP,
    "timeout": seconds(10),
    "deadline": hours(6),
    "reserve": minutes(5),
    "retry": RETRY,
    "key": lambda run, p: f"pay:{p.charge}",
    "promise": KEYS,
    "reconcile": BY_REFERENCE,
    "checkpoint": Around(before=True, after=True),
    "on_cancel": OnCancel.SETTLE,
    "on_late": OnLate.KEEP_AS_EVIDENCE,
    "compensation": None,
    "irreversible": _("money leaves the account"),
    "approval": Signatures(
        2,
        group="signers",
        when=AtLeast("amount", SIGNED_FROM),
        approve_within=hours(2),
        execute_within=minutes(30),
    ),
    "stake": lambda p: Money("out", p.amount, p.currency),
    "escalate_to": "on-call",
    "review_after": minutes(10),
    "due_in": minutes(20),
    "evidence": ["answer", "readback", "statement"],
}
_LETTER: dict[str, Any] = {
    "params": Letter,
    "approval": None,
    "reconcile": None,
    "stake": None,
    "describe": _("Write about {charge}"),
    "evidence": ["answer", "statement"],
}


def made(operation: str, **changes: Any) -> EffectContract:
    """The usual fields under ``operation``, with ``changes``."""
    return effect(operation, **{**_FIELDS, **changes})


pay = made("simulated.pay")
"""Keys, and a readback by our reference; signatures from SIGNED_FROM on."""

slow = made("simulated.slow", timeout=seconds(11), approval=None, key=lambda run, p: f"slow:{p.charge}")
"""As pay, but too long a call for the run's owner: always handed to the senders."""

card = made(
    "simulated.card",
    dependency="cards-eu",
    key=lambda run, p: f"card:{p.charge}",
    promise=NO_KEYS,
    reconcile=BY_FACTS,
    retry=NO_REPEAT,
    approval=None,
)
"""No keys, a readback that only agrees."""

mail = made(
    "simulated.mail",
    **_LETTER,
    dependency="mail",
    key=lambda run, p: f"mail:{p.charge}",
    port=HttpPort(
        method="POST",
        path="/v1/messages",
        body=lambda p: {"to": "a@b.example", "template": "t", "data": {"order": p.charge}},
    ),
)
"""Keys, nothing to read back."""

notice = made(
    "simulated.notice",
    **_LETTER,
    dependency="notices",
    promise=NO_KEYS,
    retry=NO_REPEAT,
    key=lambda run, p: f"notice:{p.charge}",
    port=HttpPort(method="POST", path="/v1/notices", body=lambda p: {"to": p.charge, "text": "t"}),
)
"""Neither key nor readback: claimed right before the send, and on doubt a person says."""

BY_NAME: dict[str, EffectContract] = {"pay": pay, "slow": slow, "card": card, "mail": mail, "notice": notice}


def ask(name: str, charge: str, amount: int) -> Any:
    """A request of the operation ``name`` about ``charge``."""
    contract = BY_NAME[name]
    return contract(charge=charge) if contract.params is Letter else contract(charge=charge, amount=amount)


RUN_DEADLINE = timedelta(hours=1)
