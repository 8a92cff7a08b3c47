"""A simulated run that starts others, one after the other."""

from __future__ import annotations

from datetime import timedelta

from django.utils.translation import gettext_lazy as _

from recovery.contract import Fail, Finish, Start, StepChild, StepRun, Transition, step
from recovery.simulation.run_types import Base, Plan, rules


class Family(Plan):
    """Plus ``child``: the type of the runs that it starts, one for each of ``what``."""

    child: str = "simulated.chain"


class Parent(Base):
    """Starts a run for each of its plan in turn, and ends as they did."""

    name = "simulated.parent"
    version = 1
    Data = Family
    contract = rules(deadline=timedelta(days=2))

    @step(title=_("Start"))
    def begin(self, run: StepRun) -> Transition:
        data = {"what": [run.data.what[run.data.at]], "amount": run.data.amount}
        return Start(run.data.child, input=data, key=f"child {run.data.at}", then=self.ended)

    @step(title=_("Go on"))
    def ended(self, run: StepRun, child: StepChild) -> Transition:
        if not child.completed:
            return Fail("not_done", states=[str(child.state)])
        run.data.at += 1
        return self.begin(run) if run.data.at < len(run.data.what) else Finish(verified=[])
