"""The simulated run types: effects at once, in a row, after a wait; with a deadline, with many hand-overs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel

from recovery.contract import (
    Checkpoints,
    Fail,
    Finish,
    LeaseRules,
    Ownership,
    Perform,
    Pins,
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
    Wait,
    minutes,
    seconds,
    step,
)
from recovery.simulation import contracts
from runs.states import EffectState


class Amount(BaseModel):
    """Payload of ``order.changed``."""

    amount: int


class Word(BaseModel):
    """Payload of ``told``."""

    text: str = ""


def rules(*, deadline: timedelta | None = None, transitions: int = 50) -> RunContract:
    """The contract of a simulated run type."""
    return RunContract(
        state_schema=StateSchema(version=1, migrates_from={}),
        checkpoints=Checkpoints(max_loss=0),
        ownership=Ownership(
            signals={"order.changed": Amount, "told": Word},
            timers=True,
            owner="on-call",
            deadline=deadline,
            cancel_needs="cancel",
        ),
        lease=LeaseRules(fresh_for=seconds(60), tries=3, transitions=transitions, slice=seconds(5)),
        pins=Pins(pinned=("type", "contract"), migrates_from={}),
        revalidation=("identity", "permission"),
        unknown_before_resume=UnknownBeforeResume.SETTLE_FIRST,
        targets=Targets(recover_within=seconds(20), drain_within=minutes(60)),
        quarantine=Quarantine(group="on-call", runbook="quarantined"),
        proofs=(),
    )


class Plan(BaseModel):
    """``what``: operations, each with its charge. ``again``: how often to ask anew after ``not_applied``."""

    what: list[tuple[str, str]] = []
    amount: int = 8400
    again: int = 0
    mode: str = ""
    at: int = 0


class Base(RunType):
    """Abstract: it has no version, so nothing registers it."""

    Data = Plan
    contract = rules()
    reasons = {"not_done": _("It was not done."), "no_word": _("No word came.")}

    def describe(self, data: Plan) -> Any:
        return f"Simulated {self.name}"

    def references(self, data: Plan) -> list[str]:
        return [charge for _name, charge in data.what]


class Many(Base):
    """All effects of the plan at once; ``order.changed`` amends them while nothing was tried."""

    name = "simulated.many"
    version = 1

    @step(title=_("Do"))
    def begin(self, run: StepRun) -> Transition:
        asked = [contracts.ask(name, charge, run.data.amount) for name, charge in run.data.what]
        return Perform(*asked, then=self.done, on={"order.changed": self.changed})

    @step(title=_("Change"))
    def changed(self, run: StepRun, signal: StepSignal) -> Transition:
        run.data.amount = signal.payload["amount"]
        return self.begin(run)

    @step(title=_("End"))
    def done(self, run: StepRun, outcome: StepOutcome | list[StepOutcome]) -> Transition:
        outcomes = outcome if isinstance(outcome, list) else [outcome]
        states = {one.state for one in outcomes}
        if states == {EffectState.NOT_APPLIED} and run.data.again:
            run.data.again -= 1
            return self.begin(run)
        if all(one.succeeded for one in outcomes):
            return Finish(verified=[id for one in outcomes for id in one.evidence])
        return Fail("not_done", states=sorted(map(str, states)))


class Bounded(Many):
    """As Many, with a deadline of the run itself."""

    name = "simulated.bounded"
    version = 1
    contract = rules(deadline=contracts.RUN_DEADLINE)


class Chain(Base):
    """The effects of the plan in a row."""

    name = "simulated.chain"
    version = 1

    @step(title=_("Do"))
    def begin(self, run: StepRun) -> Transition:
        name, charge = run.data.what[run.data.at]
        return Perform(contracts.ask(name, charge, run.data.amount), then=self.next)

    @step(title=_("Go on"))
    def next(self, run: StepRun, outcome: StepOutcome) -> Transition:
        if outcome.state == EffectState.NOT_APPLIED and run.data.again:
            run.data.again -= 1
            return self.begin(run)
        if not outcome.succeeded:
            return Fail("not_done", states=[str(outcome.state)])
        run.data.at += 1
        if run.data.at == len(run.data.what):
            return Finish(verified=outcome.evidence)
        return self.begin(run)


class Short(Chain):
    """As Chain, but a worker goes on for two transitions only."""

    name = "simulated.short"
    version = 1
    contract = rules(transitions=2)


class Waiter(Chain):
    """Waits as ``mode`` says (``timer``, ``event``, ``timeout``) before its effects."""

    name = "simulated.waiter"
    version = 1

    @step(title=_("Wait"))
    def begin(self, run: StepRun) -> Transition:
        if run.data.mode == "":
            return super().begin(run)
        if run.data.mode == "timer":
            return Wait(until=run.now + timedelta(minutes=10), then=self.over)
        timeout = timedelta(minutes=10) if run.data.mode == "timeout" else None
        return Wait(event="told", timeout=timeout, then=self.over)

    @step(title=_("Go on after the wait"))
    def over(self, run: StepRun, signal: StepSignal | None) -> Transition:
        missed = run.data.mode == "timeout" and signal is None
        run.data.mode = ""
        return Fail("no_word") if missed else self.begin(run)
