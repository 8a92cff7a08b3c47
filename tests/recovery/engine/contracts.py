"""Contracts and run types of the engine's own tests: one operation a provider, one run type a behaviour.

They are registered by a fixture and taken out again. What decides the path of a run stands in its data, so
that a test reads as one scenario. Readbacks give no ``as_of``: the sandbox's clock is the real one, and the
tests move the record's.
"""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel

from recovery.contract import (
    Backoff,
    EffectContract,
    Fail,
    FailureClass,
    Finish,
    Listing,
    Perform,
    StepOutcome,
    StepRun,
    StepSignal,
    Target,
    Transition,
    Wait,
    effect,
    seconds,
    step,
)
from recovery.ports.http import HttpPort
from runs.states import EffectState
from tests.recovery.engine import bases
from tests.unit import samples

RETRY = replace(samples.RETRY, attempts=4, backoff=Backoff(base=seconds(1), cap=seconds(4)))
NO_REPEAT = replace(RETRY, classes=frozenset({FailureClass.TRANSIENT, FailureClass.OVERLOAD}))
LISTING = Listing(
    path="/v1/refunds",
    prefix="refund:",
    query=lambda prefix, since, cursor: {
        "prefix": prefix,
        "since": since.isoformat(),
        **({} if cursor is None else {"after": cursor}),
    },
    cursor=lambda body: body["next"],
)
BY_REFERENCE = replace(samples.BY_REFERENCE, as_of=None, made_at=None)
BY_FACTS = replace(samples.BY_FACTS, as_of=None, made_at=None)


class Params(samples.Params):
    """A refund, as the payments and cards providers of the sandbox take it."""


class Letter(BaseModel):
    """A message or a notice about ``charge``."""

    charge: str


def _made(operation: str, **changes: Any) -> EffectContract:
    return effect(operation, **{**samples.FIELDS, "params": Params, "retry": RETRY, **changes})


pay = _made("test.pay", reconcile=replace(BY_REFERENCE, listing=LISTING))
"""Keys and readback by our reference."""

slow = _made("test.slow", reconcile=BY_REFERENCE, timeout=seconds(11), approval=None)
"""As pay, but too long a call for the run's owner: always handed."""

soft = _made("test.soft", reconcile=BY_REFERENCE, timeout=seconds(11), approval=None, irreversible=None)
"""As slow, and nothing about it is final: what may be refused or go elsewhere."""

brief = _made("test.brief", reconcile=BY_REFERENCE, timeout=timedelta(milliseconds=200), approval=None)
"""As pay; gives up after 0.2 s."""

card = _made("test.card", dependency="cards-eu", promise=samples.NO_KEYS, reconcile=BY_FACTS, retry=NO_REPEAT)
"""No keys, readback by facts."""

_LETTER: dict[str, Any] = {
    "params": Letter,
    "approval": None,
    "reconcile": None,
    "stake": None,
    "describe": _("Write about {charge}"),
    "requires": [Target("charge")],
    "evidence": ["answer", "statement"],
}
mail = _made(
    "test.mail",
    **_LETTER,
    dependency="mail",
    key=lambda run, p: f"mail:{p.charge}",
    port=HttpPort(
        method="POST",
        path="/v1/messages",
        body=lambda p: {"to": "a@b.example", "template": "t", "data": {"order": p.charge}},
    ),
)
"""Keys, no readback."""

notice = _made(
    "test.notice",
    **_LETTER,
    dependency="notices",
    promise=samples.NO_KEYS,
    retry=NO_REPEAT,
    key=lambda run, p: f"notice:{p.charge}",
    port=HttpPort(method="POST", path="/v1/notices", body=lambda p: {"to": p.charge, "text": "t"}),
)
"""Neither key nor readback."""

homeless = _made("test.homeless", dependency="nowhere")
"""Of a dependency that no workspace has."""


def _explodes(run: Any, p: Any) -> str:
    if p.charge == "ch_keyless":
        raise KeyError("its own words")
    return f"refund:{p.charge}"


keyless = _made("test.keyless", key=_explodes)
"""An author's function of the contract raises."""

_by_name: dict[str, EffectContract] = {
    "pay": pay,
    "slow": slow,
    "soft": soft,
    "brief": brief,
    "card": card,
    "mail": mail,
    "notice": notice,
    "homeless": homeless,
    "keyless": keyless,
}


def ask(name: str, charge: str, amount: int = 8400) -> Any:
    """A request of the contract ``name`` about ``charge``."""
    contract = _by_name[name]
    if contract.params is Letter:
        return contract(charge=charge)
    return contract(charge=charge, amount=amount, currency="EUR")


class Many(bases.Base):
    """All effects of the plan at once."""

    name = "test.many"
    version = 1

    @step(title=_("Do"))
    def begin(self, run: StepRun) -> Transition:
        asked = [ask(name, charge, run.data.amount) for name, charge in run.data.what]
        return Perform(*asked, then=self.done, on={"order.changed": self.changed})

    @step(title=_("Change"))
    def changed(self, run: StepRun, signal: StepSignal) -> Transition:
        run.data.amount = signal.payload["amount"]
        return self.begin(run)

    @step(title=_("End"))
    def done(self, run: StepRun, outcome: StepOutcome | list[StepOutcome]) -> Transition:
        outcomes = outcome if isinstance(outcome, list) else [outcome]
        run.data.heard.append([str(one.state) for one in outcomes])
        states = {one.state for one in outcomes}
        if states == {EffectState.NOT_APPLIED} and run.data.again:
            run.data.again -= 1
            return self.begin(run)
        if all(one.succeeded for one in outcomes):
            return Finish(verified=[id for one in outcomes for id in one.evidence])
        return Fail("not_done", states=sorted(map(str, states)))


class Chain(bases.Base):
    """The effects of the plan in a row."""

    name = "test.chain"
    version = 1

    @step(title=_("Do"))
    def begin(self, run: StepRun) -> Transition:
        name, charge = run.data.what[run.data.at]
        return Perform(ask(name, charge, run.data.amount), then=self.next)

    @step(title=_("Go on"))
    def next(self, run: StepRun, outcome: StepOutcome) -> Transition:
        run.data.heard.append(str(outcome.state))
        if not outcome.succeeded:
            return Fail("not_done")
        run.data.at += 1
        if run.data.at == len(run.data.what):
            return Finish(verified=outcome.evidence)
        return self.begin(run)


class Waiter(bases.Base):
    """Waits as ``mode`` says: ``timer`` for ten minutes, ``event``, or ``timeout`` for an event for ten
    minutes."""

    name = "test.waiter"
    version = 1

    @step(title=_("Wait"))
    def begin(self, run: StepRun) -> Transition:
        if run.data.mode == "timer":
            return Wait(until=run.now + timedelta(minutes=10), then=self.over)
        timeout = timedelta(minutes=10) if run.data.mode == "timeout" else None
        return Wait(event="told", timeout=timeout, then=self.over)

    @step(title=_("End"))
    def over(self, run: StepRun, signal: StepSignal | None) -> Transition:
        run.data.heard.append(None if signal is None else signal.payload["text"])
        if run.data.mode == "timeout" and signal is None:
            return Fail("no_word")
        return Finish(verified=[])


class Bounded(Many):
    """As Many, with a deadline of the run itself: two hours."""

    name = "test.bounded"
    version = 1
    contract = bases.rules(deadline=timedelta(hours=2))


class Short(Chain):
    """As Chain, but a worker goes on for two transitions only."""

    name = "test.short"
    version = 1
    contract = bases.rules(transitions=2)


class Broken(bases.Base):
    """Does one effect (if the plan has one), then what ``mode`` says."""

    name = "test.broken"
    version = 1

    @step(title=_("Do"))
    def begin(self, run: StepRun) -> Transition:
        if run.data.what:
            ((name, charge),) = run.data.what
            return Perform(ask(name, charge), then=self.wrong)
        return self.wrong(run, None)

    @step(title=_("Go wrong"))
    def wrong(self, run: StepRun, outcome: StepOutcome | None) -> Transition:
        mode = run.data.mode
        if mode == "raises":
            raise RuntimeError("the author's own words")
        if mode == "exits":
            raise SystemExit("out of here")
        if mode == "kills":
            os.kill(os.getpid(), signal.SIGKILL)
        if mode == "nonsense":
            return "done"  # type: ignore[return-value]
        if mode == "homeless":
            return Perform(ask("homeless", "ch_home"), then=self.wrong)
        if mode == "keyless":
            return Perform(ask("keyless", "ch_keyless"), then=self.wrong)
        if mode == "no_such_step":
            return Perform(ask("pay", "ch_never"), then="nowhere")
        if mode == "no_such_signal":
            return Wait(event="never.declared", then=self.wrong)
        if mode == "unserialisable":
            run.data.strange = {"deep": [1, {"inside": object()}]}
        if mode == "huge":
            return Finish(verified=[], count=2**70)
        return Finish(verified=[])
