"""Run types that start runs, for the tests of children, pauses and cancellations."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils.translation import gettext_lazy as _

from recovery.contract import (
    Fail,
    Finish,
    Perform,
    Start,
    StepChild,
    StepOutcome,
    StepRun,
    StepSignal,
    Transition,
    Wait,
    step,
)
from tests.recovery.engine import bases
from tests.recovery.engine.contracts import Waiter as _Waiter
from tests.recovery.engine.contracts import ask


class ParentPlan(bases.Plan):
    """``child``: the type it starts; ``input``: that run's data; ``keys``: one child a key, one after the other."""

    child: str = "test.many"
    input: dict[str, Any] = {}
    keys: list[str] = ["one"]


class Parent(bases.Base):
    """Starts a run for each key in turn, and ends as they did."""

    name = "test.parent"
    version = 1
    Data = ParentPlan
    contract = bases.rules(deadline=timedelta(days=2))

    @step(title=_("Start"))
    def begin(self, run: StepRun) -> Transition:
        return Start(run.data.child, input=run.data.input, key=run.data.keys[run.data.at], then=self.ended)

    @step(title=_("Go on"))
    def ended(self, run: StepRun, child: StepChild) -> Transition:
        run.data.heard.append([child.key, str(child.state), child.how["code"]])
        run.data.at += 1
        if not child.completed:
            return Fail("not_done")
        if run.data.at < len(run.data.keys):
            return self.begin(run)
        return Finish(verified=[])


class Nested(bases.Base):
    """Starts itself, ``amount`` times deep."""

    name = "test.nested"
    version = 1

    @step(title=_("Start"))
    def begin(self, run: StepRun) -> Transition:
        if run.data.amount == 0:
            return Wait(event="told", then=self.told)
        return Start("test.nested", input={"amount": run.data.amount - 1}, key="deeper", then=self.ended)

    @step(title=_("Told"))
    def told(self, run: StepRun, signal: StepSignal) -> Transition:
        run.data.heard.append([signal.payload["text"], signal.reason])
        return Finish(verified=[])

    @step(title=_("Go on"))
    def ended(self, run: StepRun, child: StepChild) -> Transition:
        run.data.heard.append(str(child.state))
        return Finish(verified=[]) if child.completed else Fail("not_done")


class Late(bases.Base):
    """Waits for ten minutes, then does what the plan says."""

    name = "test.late"
    version = 1

    @step(title=_("Wait"))
    def begin(self, run: StepRun) -> Transition:
        return Wait(until=run.now + timedelta(minutes=10), then=self.do)

    @step(title=_("Do"))
    def do(self, run: StepRun, signal: StepSignal | None) -> Transition:
        return Perform(*[ask(name, charge) for name, charge in run.data.what], then=self.done)

    @step(title=_("End"))
    def done(self, run: StepRun, outcome: StepOutcome | list[StepOutcome]) -> Transition:
        outcomes = outcome if isinstance(outcome, list) else [outcome]
        run.data.heard.append([str(one.state) for one in outcomes])
        return Finish(verified=[]) if all(one.succeeded for one in outcomes) else Fail("not_done")


class Guarded(_Waiter):
    """As Waiter, but only who may audit cancels it."""

    name = "test.guarded"
    version = 1
    contract = bases.rules(cancel_needs="audit")
