"""Contracts with a compensation, and a run type that uses them: a hotel and a flight are booked, a card is charged.

Bookings and charges are the sandbox's refunds under other names; what a test needs is that each has a ledger.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext_lazy as _

from recovery.contract import (
    Authority,
    Authorization,
    Compensate,
    Compensation,
    EffectContract,
    Fail,
    Finish,
    OnCancel,
    Perform,
    Precondition,
    Signatures,
    StepOutcome,
    StepPlan,
    StepRun,
    StepSignal,
    Transition,
    VerifiedBy,
    Wait,
    effect,
    hours,
    step,
)
from recovery.ports.http import HttpPort
from tests.recovery.engine import bases, contracts
from tests.unit import samples

TWO = Signatures(2, group="payments-approvers", when=None, approve_within=hours(8), execute_within=hours(1))


def _seen(body: Any) -> dict[str, Any]:
    return {"id": body["id"], "version": body.get("version", 1)}


VERSIONED = replace(contracts.BY_REFERENCE, result=_seen)


def _made(operation: str, **changes: Any) -> EffectContract:
    usual = {
        **samples.FIELDS,
        "params": contracts.Params,
        "retry": contracts.RETRY,
        "reconcile": contracts.BY_REFERENCE,
        "approval": None,
        "irreversible": None,
        "key": lambda run, p: f"{operation}:{p.charge}",
        "describe": _("{charge} for {amount}"),
    }
    return effect(operation, **{**usual, **changes})


def by(operation: str, **changes: Any) -> Compensation:
    """A whole declaration: ``operation`` mends it, with the same amount, under the original's charge with ``un-``."""
    usual: dict[str, Any] = {
        "by": operation,
        "request": lambda p, result: {"charge": f"un-{p.charge}", "amount": p.amount, "currency": p.currency},
        "allowed": None,
        "key": None,
        "after": (),
        "preconditions": (),
        "authorization": Authorization.OWN,
        "verified_by": VerifiedBy.READBACK,
        "within": None,
        "deadline": None,
        "residual": None,
        "escalate_to": "payments-oncall",
    }
    return Compensation(**{**usual, **changes})


unbook = _made("trip.unbook", describe=_("Cancel booking {charge}"))
give_back = _made("trip.give_back", approval=TWO, describe=_("Give back {amount} for {charge}"))
unpost = _made(
    "trip.unpost",
    dependency="notices",
    promise=samples.NO_KEYS,
    retry=contracts.NO_REPEAT,
    reconcile=None,
    evidence=["answer", "statement"],
    port=HttpPort(method="POST", path="/v1/notices", body=lambda p: {"to": p.charge, "text": "t"}),
)

hotel = _made(
    "trip.hotel",
    describe=_("Hotel {charge}"),
    on_cancel=OnCancel.COMPENSATE,
    authority=Authority(name="hotel", version_field="version"),
    outcomes=replace(samples.HTTP, result=_seen),
    reconcile=VERSIONED,
    compensation=by(
        "trip.unbook",
        preconditions=(Precondition("not_begun", _("the stay has not begun")),),
        residual=_("a fee for {charge}"),
    ),
)
flight = _made("trip.flight", describe=_("Flight {charge}"), compensation=by("trip.unbook"))
charge = _made(
    "trip.charge",
    describe=_("Charge {charge}"),
    compensation=by("trip.give_back", after=("trip.hotel", "trip.flight")),
)
signed = _made(
    "trip.signed",
    approval=TWO,
    describe=_("Signed {charge}"),
    compensation=by("trip.give_back", authorization=Authorization.PRE_APPROVED),
)
posted = _made("trip.posted", compensation=by("trip.unpost", verified_by=VerifiedBy.ANSWER))
brief = _made(
    "trip.brief",
    describe=_("Brief {charge}"),
    compensation=by("trip.unbook", within=timedelta(hours=1), allowed=lambda p, result: p.amount < 9000),
)
quick = _made(
    "trip.quick",
    describe=_("Quick {charge}"),
    compensation=by("trip.give_back", deadline=timedelta(minutes=20)),
)
letter = replace(contracts.mail, operation="trip.letter", irreversible=_("it was read"))

_by_name = {
    "hotel": hotel,
    "flight": flight,
    "charge": charge,
    "signed": signed,
    "posted": posted,
    "brief": brief,
    "quick": quick,
}


def ask(name: str, subject: str, amount: int = 8400) -> Any:
    """A request of the contract ``name`` about ``subject``."""
    if name == "letter":
        return letter(charge=subject)
    return _by_name[name](charge=subject, amount=amount, currency="EUR")


class Trip(bases.Base):
    """Its effects in a row, then what ``mode`` says: ``mend`` and end, ``mend_then`` and go on, ``wait``, or end."""

    name = "trip.book"
    version = 1

    @step(title=_("Book"))
    def begin(self, run: StepRun) -> Transition:
        if run.data.at == len(run.data.what):
            return self.over(run, None)
        name, subject = run.data.what[run.data.at]
        return Perform(ask(name, subject, run.data.amount), then=self.booked)

    @step(title=_("Book the next"))
    def booked(self, run: StepRun, outcome: StepOutcome) -> Transition:
        run.data.heard.append(str(outcome.state))
        if not outcome.succeeded:
            return Compensate()
        run.data.at += 1
        return self.begin(run)

    @step(title=_("Decide"))
    def over(self, run: StepRun, signal: StepSignal | None) -> Transition:
        mode = "mend" if signal is not None else run.data.mode
        if mode == "wait":
            return Wait(event="told", then=self.over)
        if mode == "mend":
            return Compensate()
        if mode == "mend_then":
            return Compensate(then=self.mended)
        return Finish(verified=[])

    @step(title=_("Hear of it"))
    def mended(self, run: StepRun, plan: StepPlan) -> Transition:
        run.data.heard.append([str(plan.state), plan.mended, plan.of, len(plan.stays)])
        return Finish(verified=[]) if plan.whole else Fail("not_done")
