"""A run type with sealed fields: a message that holds a pin, sent after a wait if ``wait`` says so."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel

from recovery.contract import (
    Finish,
    Perform,
    Sealed,
    StepOutcome,
    StepRun,
    StepSignal,
    Target,
    Transition,
    Wait,
    effect,
    step,
)
from recovery.ports.http import HttpPort
from tests.recovery.engine import bases, contracts
from tests.unit import samples


class Secretive(BaseModel):
    """``pin`` goes out as text, ``limit`` as a number."""

    charge: str
    pin: Sealed[str]
    limit: Sealed[int]


tell_pin = effect(
    "sealed.tell",
    **{
        **samples.FIELDS,
        "params": Secretive,
        "retry": contracts.RETRY,
        "approval": None,
        "reconcile": None,
        "stake": None,
        "describe": _("Tell {charge} the pin {pin}"),
        "requires": [Target("charge")],
        "evidence": ["answer", "statement"],
        "dependency": "mail",
        "key": lambda run, p: f"pin:{p.charge}",
        "port": HttpPort(
            method="POST",
            path="/v1/messages",
            body=lambda p: {
                "to": "a@b.example",
                "template": "t",
                "data": {"order": p.charge, "pin": p.pin, "limit": p.limit},
            },
        ),
    },
)


class Card(BaseModel):
    """What lies deeper."""

    number: Sealed[str]


class Data(BaseModel):
    """The run's data."""

    charge: str
    pin: Sealed[str]
    limit: Sealed[int]
    cards: list[Card] = []
    note: Sealed[str] | None = None
    wait: bool = False


class NewPin(BaseModel):
    """Payload of ``pin.changed``."""

    pin: Sealed[str]


class Tells(bases.Base):
    """Sends the pin, or first waits for another one."""

    name = "test.sealed"
    version = 1
    Data = Data
    contract = bases.rules(signals={"pin.changed": NewPin})

    def describe(self, data: Data) -> Any:
        return f"Tell {data.charge} the pin {data.pin}"

    def references(self, data: Data) -> list[str]:
        return [data.charge]

    @step(title=_("Do"))
    def begin(self, run: StepRun) -> Transition:
        if run.data.wait:
            return Wait(event="pin.changed", then=self.changed)
        return self.tell(run)

    @step(title=_("Take the other one"))
    def changed(self, run: StepRun, signal: StepSignal) -> Transition:
        run.data.pin = Sealed(signal.payload["pin"])
        return self.tell(run)

    @step(title=_("End"))
    def told(self, run: StepRun, outcome: StepOutcome) -> Transition:
        return Finish(verified=outcome.evidence)

    def tell(self, run: StepRun) -> Transition:
        asked = tell_pin(charge=run.data.charge, pin=run.data.pin, limit=run.data.limit)
        return Perform(asked, then=self.told)
