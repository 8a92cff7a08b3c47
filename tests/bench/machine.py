"""The run type that is measured: n e-mails in a row, each a declared effect with a key."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel

from demo.contracts import CancelOrder
from demo.effects import tell_by_mail
from recovery.contract import Fail, Finish, Perform, RunType, StepOutcome, StepRun, Transition, step


class InARowData(BaseModel):
    """``n`` effects in a row, keys made from ``prefix``; what is done so far."""

    prefix: str
    n: int
    done: int = 0
    evidence: list[UUID] = []


class InARow(RunType):
    """n effects in a row; each needs the outcome of the one before."""

    name = "bench.in_a_row"
    version = 1
    Data = InARowData
    contract = CancelOrder.contract
    reasons = {"not_told": _("One of the e-mails was not sent.")}

    def describe(self, data: InARowData) -> Any:
        return f"{data.n} in a row"

    def references(self, data: InARowData) -> list[str]:
        return [data.prefix]

    @step(title=_("Send the next"))
    def begin(self, run: StepRun) -> Transition:
        order = f"{run.data.prefix}-{run.data.done}"
        return Perform(tell_by_mail(to="bench@acme.example", template="done", order=order), then=self.told)

    @step(title=_("It was sent"))
    def told(self, run: StepRun, outcome: StepOutcome) -> Transition:
        if not outcome.succeeded:
            return Fail("not_told")
        run.data.done += 1
        run.data.evidence = [*run.data.evidence[-1:], *outcome.evidence]
        return self.begin(run) if run.data.done < run.data.n else Finish(verified=run.data.evidence)
