"""Runs that can be mended: bookings with a compensation, and a run type that mends what it did, or is mended."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from recovery.contract import (
    Authorization,
    Compensate,
    Compensation,
    Fail,
    Finish,
    OnCancel,
    Perform,
    StepOutcome,
    StepPlan,
    StepRun,
    StepSignal,
    Transition,
    VerifiedBy,
    Wait,
    step,
)
from recovery.simulation import contracts
from recovery.simulation.run_types import Base, Plan


def _by(**changes: Any) -> Compensation:
    fields: dict[str, Any] = {
        "by": "simulated.unbook",
        "request": lambda p, result: {"charge": f"{p.charge}_un", "amount": p.amount, "currency": p.currency},
        "allowed": None,
        "key": None,
        "after": (),
        "preconditions": (),
        "authorization": Authorization.OWN,
        "verified_by": VerifiedBy.READBACK,
        "within": None,
        "deadline": None,
        "residual": None,
        "escalate_to": "on-call",
    }
    return Compensation(**{**fields, **changes})


unbook = contracts.made("simulated.unbook", describe=_("Give {amount} back for {charge}"), irreversible=None)
"""What mends the others; signed for from SIGNED_FROM on, as a payment is."""

book = contracts.made(
    "simulated.book",
    describe=_("Book {charge}"),
    key=lambda run, p: f"book:{p.charge}",
    approval=None,
    irreversible=None,
    on_cancel=OnCancel.COMPENSATE,
    compensation=_by(),
)
"""A cancellation mends it."""

seat = contracts.made(
    "simulated.seat",
    describe=_("Seat {charge}"),
    key=lambda run, p: f"seat:{p.charge}",
    approval=None,
    irreversible=None,
    compensation=_by(after=("simulated.book",), verified_by=VerifiedBy.ANSWER),
)
"""Mended after the booking, and believed on its answer."""

BY_NAME = {"book": book, "seat": seat}
ALL = (unbook, book, seat)


class TripPlan(Plan):
    """``seen``: evidence of what was booked."""

    seen: list[UUID] = []


class Trip(Base):
    """Books in a row, then does as ``mode`` says: ends, waits for a word, mends all and ends, mends and goes on.

    Where a booking does not work, what was booked is mended.
    """

    name = "simulated.trip"
    version = 1
    Data = TripPlan

    @step(title=_("Book"))
    def begin(self, run: StepRun) -> Transition:
        if run.data.at == len(run.data.what):
            return self.over(run, None)
        name, charge = run.data.what[run.data.at]
        return Perform(BY_NAME[name](charge=charge, amount=run.data.amount), then=self.booked)

    @step(title=_("Book the next"))
    def booked(self, run: StepRun, outcome: StepOutcome) -> Transition:
        if not outcome.succeeded:
            return Compensate()
        run.data.seen += outcome.evidence
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
        return Finish(verified=run.data.seen)

    @step(title=_("Hear of it"))
    def mended(self, run: StepRun, plan: StepPlan) -> Transition:
        return Finish(verified=run.data.seen) if plan.whole else Fail("not_done", states=[str(plan.state)])
