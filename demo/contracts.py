"""The two run types of the demonstration. Everything an author writes is here and in ``effects.py``."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, ConfigDict, Field

from demo.effects import (
    correct_by_mail,
    correct_notice,
    post_notice,
    refund_by_cards,
    refund_by_payments,
    tell_by_mail,
)
from recovery.contract import (
    Checkpoints,
    EffectState,
    Fail,
    Finish,
    LeaseRules,
    Ownership,
    Perform,
    Pins,
    Proof,
    Quarantine,
    RunContract,
    RunType,
    StateSchema,
    StepOutcome,
    StepRun,
    StepSignal,
    Targets,
    Transition,
    UnknownBeforeResume,
    days,
    minutes,
    seconds,
    step,
)

__all__ = [
    "CancelOrder",
    "SendNotice",
    "correct_by_mail",
    "correct_notice",
    "post_notice",
    "refund_by_cards",
    "refund_by_payments",
    "tell_by_mail",
]


def _contract(signals: dict[str, type[BaseModel]], proofs: tuple[Proof, ...]) -> RunContract:
    return RunContract(
        state_schema=StateSchema(version=1, migrates_from={}),
        checkpoints=Checkpoints(max_loss=0),
        ownership=Ownership(
            signals=signals, timers=False, owner="payments-oncall", deadline=days(2), cancel_needs="cancel"
        ),
        lease=LeaseRules(fresh_for=seconds(60), tries=3, transitions=50, slice=seconds(5)),
        pins=Pins(pinned=("type", "contract"), migrates_from={}),
        revalidation=("identity", "permission", "policy", "approvals", "secrets"),
        unknown_before_resume=UnknownBeforeResume.SETTLE_FIRST,
        targets=Targets(recover_within=seconds(20), drain_within=minutes(60)),
        quarantine=Quarantine(group="payments-oncall", runbook="quarantined"),
        proofs=proofs,
    )


class OrderData(BaseModel):
    """``amount`` in minor units. The last two fields are the run's own."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    order: str = Field(min_length=1, max_length=64, pattern=r"^[!-~]+$")
    charge: str = Field(min_length=1, max_length=64, pattern=r"^[!-~]+$")
    amount: int = Field(gt=0, le=99_999_999)
    currency: str = Field(pattern=r"^[A-Z]{3}$", max_length=3)
    email: str = Field(min_length=3, max_length=254, pattern=r"^[^@\s]+@[^@\s]+$")
    provider: Literal["payments", "cards-eu"]
    asked_again: bool = False
    refund_evidence: list[UUID] = []


class OrderChanged(BaseModel):
    """The order's new amount in minor units, while nothing has been sent."""

    model_config = ConfigDict(extra="forbid")

    amount: int = Field(gt=0, le=99_999_999)


class CancelOrder(RunType):
    """Refund the charge of a cancelled order, then tell the customer."""

    name = "orders.cancel"
    version = 1
    Data = OrderData
    contract = _contract({"order.changed": OrderChanged}, (Proof(name="kill between send and record", last=None),))
    reasons = {
        "refund_declined": _("The refund was not signed. Nothing was sent."),
        "refund_refused": _("{provider} refused the refund. Nothing was paid."),
        "refund_not_made": _("The refund did not happen, after it was asked for twice."),
        "refund_not_sent": _("The refund was not sent in time."),
        "refund_in_part": _("The refund happened in part."),
        "customer_not_told": _("The refund happened. The e-mail to the customer did not."),
    }

    def describe(self, data: OrderData) -> Any:
        return format_lazy(_("Cancel order {order}"), order=data.order)

    def references(self, data: OrderData) -> list[str]:
        return [data.order, data.charge]

    @step(title=_("Refund the charge"))
    def begin(self, run: StepRun) -> Transition:
        """Ask the provider that took the payment for the refund; an amended order amends the request."""
        data = run.data
        refund = refund_by_cards if data.provider == "cards-eu" else refund_by_payments
        request = refund(charge=data.charge, amount=data.amount, currency=data.currency)
        return Perform(request, then=self.refunded, on={"order.changed": self.changed})

    @step(title=_("Take over the new amount"))
    def changed(self, run: StepRun, signal: StepSignal) -> Transition:
        """The same refund, same key, with the new amount."""
        run.data.amount = signal.payload["amount"]
        return self.begin(run)

    @step(title=_("Tell the customer"))
    def refunded(self, run: StepRun, outcome: StepOutcome) -> Transition:
        """Tell the customer once the refund is certain; otherwise end and say why."""
        if outcome.succeeded:
            run.data.refund_evidence = list(outcome.evidence)
            mail = tell_by_mail(to=run.data.email, template="order_cancelled", order=run.data.order)
            return Perform(mail, then=self.told)
        if outcome.state == EffectState.NOT_APPLIED and not run.data.asked_again:
            run.data.asked_again = True
            return self.begin(run)
        return self._without_refund(run, outcome)

    def _without_refund(self, run: StepRun, outcome: StepOutcome) -> Transition:
        if outcome.state == EffectState.DECLINED:
            return Finish(verified=outcome.evidence, reason="refund_declined")
        if outcome.state == EffectState.REJECTED:
            return Finish(verified=outcome.evidence, reason="refund_refused", provider=run.data.provider)
        if outcome.state == EffectState.NOT_APPLIED:
            return Fail("refund_not_made")
        if outcome.state == EffectState.PARTIAL:
            return Fail("refund_in_part")
        return Fail("refund_not_sent")

    @step(title=_("Finish"))
    def told(self, run: StepRun, outcome: StepOutcome) -> Transition:
        """Both effects are settled."""
        if outcome.succeeded:
            return Finish(verified=[*run.data.refund_evidence, *outcome.evidence])
        return Fail("customer_not_told")


class NoticeData(BaseModel):
    """A short text for somebody's board."""

    model_config = ConfigDict(extra="forbid")

    to: str = Field(min_length=1, max_length=100)
    text: str = Field(min_length=1, max_length=500)


class SendNotice(RunType):
    """Post one notice. The dependency offers neither keys nor a way to check: on doubt a person decides."""

    name = "notices.send"
    version = 1
    Data = NoticeData
    contract = _contract({}, (Proof(name="kill between send and record", last=None),))
    reasons = {
        "notice_refused": _("The notice was refused."),
        "notice_not_posted": _("The notice was not posted."),
    }

    def describe(self, data: NoticeData) -> Any:
        return format_lazy(_("Post a notice to {to}"), to=data.to)

    def references(self, data: NoticeData) -> list[str]:
        return [data.to]

    @step(title=_("Post the notice"))
    def begin(self, run: StepRun) -> Transition:
        """Post it once."""
        return Perform(post_notice(to=run.data.to, text=run.data.text), then=self.posted)

    @step(title=_("Finish"))
    def posted(self, run: StepRun, outcome: StepOutcome) -> Transition:
        """It was posted, or it is known that it was not."""
        if outcome.succeeded:
            return Finish(verified=outcome.evidence)
        if outcome.state == EffectState.REJECTED:
            return Finish(verified=outcome.evidence, reason="notice_refused")
        return Fail("notice_not_posted")
