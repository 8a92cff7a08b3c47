"""Computations of simulated runs: one that may be asked again, one that may not. The board stands in for a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel

from recovery.contract import (
    Backoff,
    Compute,
    ComputeContract,
    Fail,
    StepComputed,
    StepRun,
    Transition,
    compute,
    hours,
    seconds,
    step,
)
from recovery.ports.http import HttpPort
from recovery.simulation import contracts
from recovery.simulation.run_types import Chain


class Question(BaseModel):
    """What is asked."""

    text: str


class Output(BaseModel):
    """What an answer must look like."""

    id: str
    status: str


def _made(name: str, **changes: Any) -> ComputeContract:
    fields: dict[str, Any] = {
        "version": 1,
        "params": Question,
        "output": Output,
        "dependency": "notices",
        "port": HttpPort(method="POST", path="/v1/notices", body=lambda p: {"to": p.text, "text": "t"}),
        "describe": _("Ask about {text}"),
        "outcomes": replace(contracts.HTTP, result=lambda body: {"id": body["id"], "status": body["status"]}),
        "timeout": seconds(5),
        "deadline": hours(4),
        "samples": 3,
        "backoff": Backoff(base=seconds(1), cap=seconds(4)),
        "pinned": {"model": "m-1", "seed": 7},
        "unit": "tokens",
        "reserve": lambda p: 100,
        "spent": lambda result: 40,
        "limit": None,
    }
    return compute(name, **{**fields, **changes})


guess = _made("simulated.guess")
"""Asked by the run's owner; three samples are borne."""

ponder = _made("simulated.ponder", samples=1, timeout=seconds(30))
"""Too long for the owner; a lost one is a person's to decide about."""

ALL = (guess, ponder)


class Thinker(Chain):
    """Asks as ``mode`` says (``guess``, ``ponder``), ``again`` and one times, then does the effects of the plan."""

    name = "simulated.thinker"
    version = 1

    @step(title=_("Ask"))
    def begin(self, run: StepRun) -> Transition:
        if not run.data.mode:
            return super().begin(run)
        contract = {"guess": guess, "ponder": ponder}[run.data.mode]
        return Compute(contract(text=f"q{run.data.again}"), then=self.told)

    @step(title=_("Use the answer"))
    def told(self, run: StepRun, computed: StepComputed) -> Transition:
        if not computed.answered:
            return Fail("not_done", states=[str(computed.state)])
        if run.data.again:
            run.data.again -= 1
        else:
            run.data.mode = ""
        return self.begin(run)
