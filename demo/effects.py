"""The operations of the demonstration, each against one dependency of the sandbox.

A refund has no compensation: nobody takes money back from a customer without asking them, so it comes after its
signatures. A message that was read cannot be unread; what mends it is another one that corrects it.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, ConfigDict, Field

from recovery.contract import (
    Around,
    AtLeast,
    Authorization,
    Backoff,
    Compensation,
    Count,
    Fact,
    FailureClass,
    Http,
    Listing,
    Money,
    OnCancel,
    OnLate,
    Principal,
    Promise,
    Readback,
    Retry,
    Signatures,
    Target,
    VerifiedBy,
    days,
    effect,
    hours,
    minutes,
    seconds,
)
from recovery.ports.http import HttpPort

MANY_EYES_FROM = 100_000
"""1,000.00 in minor units: from here on two people sign."""


class RefundParams(BaseModel):
    """``amount`` in minor units of ``currency``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    charge: str = Field(min_length=1, max_length=64, pattern=r"^[!-~]+$")
    amount: int = Field(gt=0, le=99_999_999)
    currency: str = Field(pattern=r"^[A-Z]{3}$", max_length=3)


class MailParams(BaseModel):
    """An e-mail made from a template; ``order`` is the business reference in it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    to: str = Field(min_length=3, max_length=254)
    template: str = Field(min_length=1, max_length=64)
    order: str = Field(min_length=1, max_length=64, pattern=r"^[!-~]+$")


class NoticeParams(BaseModel):
    """A short text on somebody's board."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    to: str = Field(min_length=1, max_length=100)
    text: str = Field(min_length=1, max_length=500)


def _refund_body(p: RefundParams) -> dict[str, Any]:
    return {"charge": p.charge, "amount": p.amount, "currency": p.currency}


def _answer(body: dict[str, Any]) -> dict[str, Any]:
    return {"id": body["id"], "status": body["status"]}


def _error_code(body: dict[str, Any]) -> str:
    return str(body["error"]["code"])


def _http(*, keys: bool, **special: Any) -> Http:
    """What the sandbox's providers answer. A 503 comes before anything is applied; a 500 proves nothing.

    With keys a 422 says that the key is known with another body; without, that a field is wrong.
    """
    malformed = {400, 404, 405, 411, 413}
    usual: dict[str, Any] = {
        "success": frozenset({201}),
        "accepted": frozenset({202}),
        "rejected": frozenset({402}),
        "refused": frozenset({401, 403}),
        "invalid": frozenset(malformed if keys else malformed | {422}),
        "overload": frozenset({429}),
        "in_flight": frozenset({409} if keys else ()),
        "mismatch": frozenset({422} if keys else ()),
        "conflict": frozenset({412}),
        "transient": frozenset({503}),
        "answers": {},
        "in_part": None,
        "reference": None,
        "result": _answer,
        "code_of": _error_code,
    }
    return Http(**{**usual, **special})


def _retry(*, keys: bool) -> Retry:
    """Six sends in half an hour. Without keys an unknown is never sent again."""
    again = {FailureClass.TRANSIENT, FailureClass.OVERLOAD} | ({FailureClass.UNKNOWN} if keys else set())
    return Retry(
        classes=frozenset(again),
        attempts=6,
        total=minutes(30),
        backoff=Backoff(base=seconds(1), cap=minutes(1)),
        jitter="full",
        honour_retry_after=True,
        budget=0.1,
        owner="recourse",
    )


def _promise(*, keys: bool, lag: float | None) -> Promise:
    return Promise(
        keys=keys,
        window=hours(24) if keys else None,
        compares="body" if keys else None,
        mismatch_status=422 if keys else None,
        in_flight_status=409 if keys else None,
        lag=None if lag is None else seconds(lag),
        key_max_length=255 if keys else None,
        version=1,
        until=date(2035, 12, 31),
        source="the sandbox's own description of its providers",
    )


_FACTS = (
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
)


_REFUNDS = Listing(
    path="/v1/refunds",
    prefix="refund:",
    query=lambda prefix, since, cursor: {
        "prefix": prefix,
        "since": since.isoformat(),
        **({} if cursor is None else {"after": cursor}),
    },
    cursor=lambda body: body["next"],
)
"""Refunds under keys of ours since a moment: read after a restore."""


def _readback(*, by_reference: bool) -> Readback:
    """Refunds by our reference where the provider keeps it, else all refunds on the charge."""
    return Readback(
        path="/v1/refunds",
        query=lambda p, key: {"reference": key} if by_reference else {"charge": p.charge},
        items=lambda body: body["data"],
        proof="reference" if by_reference else "facts",
        reference=(lambda item: item["reference"]) if by_reference else None,
        status=lambda item: item["status"],
        pending=frozenset({"pending"}),
        rejected=frozenset({"failed"}),
        made_at=lambda item: item["created"],
        as_of=lambda body: body["as_of"],
        complete=lambda body: not body["has_more"],
        callback=(lambda body: body["data"]) if by_reference else None,
        result=_answer,
        facts=_FACTS,
        lag=seconds(30),
        apart=seconds(30),
        backoff=Backoff(base=seconds(2), cap=minutes(5)),
        timeout=seconds(10),
        listing=_REFUNDS if by_reference else None,
    )


def _corrected_by(operation: str, request: Any, residual: Any) -> Compensation:
    """A correction, allowed for a week; its answer is all that shows it, for nothing can be read back."""
    return Compensation(
        by=operation,
        request=request,
        allowed=None,
        key=None,
        after=(),
        preconditions=(),
        authorization=Authorization.OWN,
        verified_by=VerifiedBy.ANSWER,
        within=days(7),
        deadline=days(1),
        residual=residual,
        escalate_to="payments-oncall",
    )


_COMMON: dict[str, Any] = {
    "version": 1,
    "scope": "workspace",
    "authority": None,
    "timeout": seconds(10),
    "checkpoint": Around(before=True, after=True),
    "on_cancel": OnCancel.SETTLE,
    "on_late": OnLate.KEEP_AS_EVIDENCE,
    "compensation": None,
    "review_after": minutes(10),
    "due_in": minutes(20),
}

_REFUND: dict[str, Any] = {
    **_COMMON,
    "params": RefundParams,
    "port": HttpPort(method="POST", path="/v1/refunds", body=_refund_body),
    "describe": _("Refund {amount} on charge {charge}"),
    "requires": [Principal(), Target("charge")],
    "deadline": days(2),
    "reserve": minutes(5),
    "key": lambda run, p: f"refund:{p.charge}",
    "irreversible": _("money leaves the account"),
    "approval": Signatures(
        2,
        group="payments-approvers",
        when=AtLeast("amount", MANY_EYES_FROM),
        approve_within=hours(8),
        execute_within=hours(1),
    ),
    "stake": lambda p: Money("out", p.amount, p.currency),
    "escalate_to": "payments-oncall",
    "evidence": ["answer", "readback", "statement"],
}

refund_by_payments = effect(
    "payments.refund",
    **_REFUND,
    dependency="payments",
    outcomes=_http(keys=True, reference=lambda body: body["reference"]),
    retry=_retry(keys=True),
    promise=_promise(keys=True, lag=30),
    reconcile=_readback(by_reference=True),
)

refund_by_cards = effect(
    "cards.refund",
    **_REFUND,
    dependency="cards-eu",
    outcomes=_http(keys=False),
    retry=_retry(keys=False),
    promise=_promise(keys=False, lag=30),
    reconcile=_readback(by_reference=False),
)

_MAIL: dict[str, Any] = {
    **_COMMON,
    "params": MailParams,
    "dependency": "mail",
    "port": HttpPort(
        method="POST",
        path="/v1/messages",
        body=lambda p: {"to": p.to, "template": p.template, "data": {"order": p.order}},
    ),
    "requires": [Principal(), Target("to")],
    "outcomes": _http(keys=True),
    "deadline": days(1),
    "reserve": minutes(1),
    "retry": _retry(keys=True),
    "key": lambda run, p: f"mail:{p.template}:{p.order}",
    "promise": _promise(keys=True, lag=None),
    "reconcile": None,
    "irreversible": _("an e-mail is read and cannot be taken back"),
    "approval": None,
    "stake": lambda p: Count(1, "e-mail"),
    "escalate_to": "payments-oncall",
    "evidence": ["answer", "statement"],
}

tell_by_mail = effect(
    "mail.send",
    **{
        **_MAIL,
        "describe": _("Tell {to} about order {order} by e-mail"),
        "compensation": _corrected_by(
            "mail.correct",
            lambda p, result: {"to": p.to, "template": "correction", "order": p.order},
            _("the first e-mail to {to} was read"),
        ),
    },
)

correct_by_mail = effect("mail.correct", **_MAIL, describe=_("Correct what {to} was told about order {order}"))

_NOTICE: dict[str, Any] = {
    **_COMMON,
    "params": NoticeParams,
    "dependency": "notices",
    "port": HttpPort(method="POST", path="/v1/notices", body=lambda p: {"to": p.to, "text": p.text}),
    "requires": [Principal(), Target("to")],
    "outcomes": _http(keys=False),
    "deadline": days(1),
    "reserve": minutes(1),
    "retry": _retry(keys=False),
    "key": lambda run, p: f"notice:{run.id}",
    "promise": _promise(keys=False, lag=None),
    "reconcile": None,
    "irreversible": _("a notice is read and cannot be taken back"),
    "approval": None,
    "stake": lambda p: Count(1, "notice"),
    "escalate_to": "payments-oncall",
    "evidence": ["answer", "statement"],
}

post_notice = effect(
    "notices.notify",
    **{
        **_NOTICE,
        "describe": _("Post a notice to {to}"),
        "compensation": _corrected_by(
            "notices.correct",
            lambda p, result: {"to": p.to, "text": f"Please disregard: {p.text}"[:500]},
            _("the first notice to {to} was read"),
        ),
    },
)

correct_notice = effect("notices.correct", **_NOTICE, describe=_("Correct a notice to {to}"))
