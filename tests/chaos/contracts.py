"""What the chaos adds to the demo: refunds that need no signatures, at once or as a long call, one effect a run."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, ConfigDict

from demo import effects
from recovery.contract import (
    Fail,
    Finish,
    Perform,
    RunType,
    StepOutcome,
    StepRun,
    Transition,
    effect,
    minutes,
    seconds,
    step,
)
from tests.recovery.engine.bases import rules

_LIKE: dict[str, Any] = {
    **effects._REFUND,
    "approval": None,
    "irreversible": None,
    "reserve": seconds(30),
    "dependency": "payments",
    "outcomes": effects._http(keys=True, reference=lambda body: body["reference"]),
    "retry": effects._retry(keys=True),
    "promise": effects._promise(keys=True, lag=30),
    "reconcile": effects._readback(by_reference=True),
}

pay = effect("chaos.pay", **_LIKE)
"""A short call: inline where it may."""

pay_long = effect("chaos.pay_long", **{**_LIKE, "timeout": minutes(2), "key": lambda run, p: f"long:{p.charge}"})
"""A call that may take long: always handed."""


class Data(BaseModel):
    model_config = ConfigDict(extra="forbid")

    charge: str
    long: bool = False


class Once(RunType):
    """One refund, and the end."""

    name = "chaos.once"
    version = 1
    Data = Data
    contract = rules()
    reasons = {"not_paid": _("The refund did not happen.")}  # noqa: RUF012

    def describe(self, data: Data) -> Any:
        return data.charge

    def references(self, data: Data) -> list[str]:
        return [data.charge]

    @step(title=_("Refund"))
    def begin(self, run: StepRun) -> Transition:
        call = pay_long if run.data.long else pay
        return Perform(call(charge=run.data.charge, amount=100, currency="EUR"), then=self.done)

    @step(title=_("End"))
    def done(self, run: StepRun, outcome: StepOutcome) -> Transition:
        return Finish(verified=outcome.evidence) if outcome.succeeded else Fail("not_paid")
