"""Contracts and snapshots for the pure tests: one whole contract, changed by what a test is about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

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
    Outcome,
    OutcomeKind,
    Promise,
    Readback,
    Retry,
    Signatures,
    Target,
    days,
    effect,
    hours,
    minutes,
    seconds,
)
from recovery.engine.snapshot import AttemptView, EvidenceView, Snapshot
from recovery.ports.http import HttpPort
from runs.states import AttemptState, Claim, EffectState, EvidenceKind, Strength

T0 = datetime(2026, 11, 30, 2, 41, tzinfo=UTC)
EFFECT = UUID("019adf00-0000-7000-8000-000000000001")


class Params(BaseModel):
    """A refund; amounts in minor units."""

    charge: str = Field(max_length=64)
    amount: int = Field(le=99_999_999)
    currency: str = Field(max_length=3)


RETRY = Retry(
    classes=frozenset({FailureClass.TRANSIENT, FailureClass.OVERLOAD, FailureClass.UNKNOWN}),
    attempts=3,
    total=minutes(30),
    backoff=Backoff(base=seconds(2), cap=seconds(60)),
    jitter="full",
    honour_retry_after=True,
    budget=None,
    owner="recourse",
)
KEYS = Promise(
    keys=True,
    window=hours(24),
    compares="body",
    mismatch_status=422,
    in_flight_status=409,
    lag=seconds(30),
    key_max_length=255,
    version=1,
    until=None,
    source="a test",
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
    transient=frozenset({503}),
    answers={},
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
    callback=lambda body: body["data"],
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
    lag=seconds(30),
    apart=seconds(30),
    backoff=Backoff(base=seconds(2), cap=minutes(5)),
    timeout=seconds(10),
)
BY_FACTS = replace(
    BY_REFERENCE, query=lambda p, key: {"charge": p.charge}, proof="facts", reference=None, callback=None
)

FIELDS: dict[str, Any] = {
    "version": 1,
    "params": Params,
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
    "deadline": days(2),
    "reserve": minutes(5),
    "retry": RETRY,
    "key": lambda run, p: f"refund:{p.charge}",
    "promise": KEYS,
    "reconcile": BY_REFERENCE,
    "checkpoint": Around(before=True, after=True),
    "on_cancel": OnCancel.SETTLE,
    "on_late": OnLate.KEEP_AS_EVIDENCE,
    "compensation": None,
    "irreversible": _("money leaves the account"),
    "approval": Signatures(
        2,
        group="payments-approvers",
        when=AtLeast("amount", 100_000),
        approve_within=hours(8),
        execute_within=hours(1),
    ),
    "stake": lambda p: Money("out", p.amount, p.currency),
    "escalate_to": "payments-oncall",
    "review_after": minutes(10),
    "due_in": minutes(20),
    "evidence": ["answer", "readback", "statement"],
}


def contract(**changes: Any) -> EffectContract:
    """The whole contract with ``changes``; without a readback its evidence says so too."""
    fields = {**FIELDS, **changes}
    if fields["reconcile"] is None and "evidence" not in changes:
        fields["evidence"] = ["answer", "statement"]
    return effect("payments.refund", **fields)


def keyed(**changes: Any) -> EffectContract:
    """Keys and readback by reference (payments)."""
    return contract(**changes)


def facts_only(**changes: Any) -> EffectContract:
    """No keys, readback by facts (cards-eu)."""
    return contract(**{"dependency": "cards-eu", "promise": NO_KEYS, "reconcile": BY_FACTS, **changes})


def keys_only(**changes: Any) -> EffectContract:
    """Keys, no readback (mail)."""
    return contract(**{"dependency": "mail", "promise": KEYS, "reconcile": None, **changes})


def neither(**changes: Any) -> EffectContract:
    """Neither keys nor readback (notices)."""
    return contract(**{"dependency": "notices", "promise": NO_KEYS, "reconcile": None, **changes})


def at(s: float) -> datetime:
    """``s`` seconds after T0."""
    return T0 + timedelta(seconds=s)


def attempt(n: int = 1, state: AttemptState = AttemptState.LOST, began: float = 0, **more: Any) -> AttemptView:
    """A try that began ``began`` seconds after T0, limit 15 s, ended after 10 s unless it is live."""
    live = state in (AttemptState.COMMITTED, AttemptState.CLAIMED)
    kind = more.pop("kind", None)
    outcome = None if kind is None else Outcome(kind, "told", retry_after_s=more.pop("retry_after", None))
    fields: dict[str, Any] = {
        "id": UUID(int=n),
        "n": n,
        "state": state,
        "committed_at": at(began),
        "expires_at": at(began + 15),
        "ended_at": None if live else at(began + 10),
        "outcome": outcome,
    }
    return AttemptView(**{**fields, **more})


def lost(n: int = 1, began: float = 0, **more: Any) -> AttemptView:
    """A try whose sender told that no answer came."""
    return attempt(n, AttemptState.LOST, began, kind=OutcomeKind.UNKNOWN, **more)


def answered(kind: OutcomeKind, n: int = 1, began: float = 0, **more: Any) -> AttemptView:
    """A try with an answer."""
    return attempt(n, AttemptState.ANSWERED, began, kind=kind, **more)


def evidence(
    s: float,
    claim: Claim,
    strength: Strength = Strength.AGREES,
    kind: EvidenceKind = EvidenceKind.READBACK,
    **more: Any,
) -> EvidenceView:
    """Evidence received ``s`` seconds after T0."""
    fields: dict[str, Any] = {"id": UUID(int=int(s * 1000) + 7), "observed_at": at(s), "received_at": at(s)}
    return EvidenceView(kind=kind, claim=claim, strength=strength, **{**fields, **more})


def not_found(s: float, **more: Any) -> EvidenceView:
    """A check that found nothing."""
    return evidence(s, Claim.NOT_FOUND, **more)


def silent(s: float) -> EvidenceView:
    """A check without an answer."""
    return evidence(s, Claim.UNAVAILABLE, Strength.NONE)


def snap(state: EffectState = EffectState.UNKNOWN, *attempts: AttemptView, **more: Any) -> Snapshot:
    """A snapshot; an unknown is unknown since the end of its first attempt."""
    fields: dict[str, Any] = {
        "effect": EFFECT,
        "state": state,
        "attempts": attempts,
        "evidence": tuple(more.pop("seen", ())),
        "deadline": T0 + days(2),
        "key": "refund:ch_3QK9",
        "what": "Refund EUR 84.00 on charge ch_3QK9",
        "unknown_since": at(10) if state == EffectState.UNKNOWN else None,
    }
    return Snapshot(**{**fields, **more})
