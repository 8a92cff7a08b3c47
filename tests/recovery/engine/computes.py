"""Computations of the tests' own: the sandbox's notices stand in for something that answers."""

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
    Finish,
    StepComputed,
    StepRun,
    Transition,
    compute,
    hours,
    seconds,
    step,
)
from recovery.ports.http import HttpPort
from tests.recovery.engine import bases
from tests.unit import samples


class Question(BaseModel):
    """What is asked."""

    text: str


class Output(BaseModel):
    """What an answer must look like; ``status`` other than posted is no output."""

    id: str
    status: str


def made(name: str, **changes: Any) -> ComputeContract:
    """A contract with ``changes``."""
    fields: dict[str, Any] = {
        "version": 1,
        "params": Question,
        "output": Output,
        "dependency": "notices",
        "port": HttpPort(method="POST", path="/v1/notices", body=lambda p: {"to": p.text, "text": "t"}),
        "describe": _("Ask about {text}"),
        "outcomes": replace(samples.HTTP, result=lambda body: {"id": body["id"], "status": body["status"]}),
        "timeout": seconds(5),
        "deadline": hours(1),
        "samples": 1,
        "backoff": Backoff(base=seconds(1), cap=seconds(4)),
        "pinned": {"model": "m-1", "seed": 7},
        "unit": "tokens",
        "reserve": lambda p: 100,
        "spent": lambda result: 40,
        "limit": None,
    }
    return compute(name, **{**fields, **changes})


once = made("test.once")
"""One sample; a lost one asks a person."""

twice = made("test.twice", samples=2)
"""Another sample may be taken."""

long = made("test.long", samples=2, timeout=seconds(60))
"""Too long for the run's owner: handed."""

dear = made("test.dear", limit=150)
"""A run may spend 150 on it."""

short = made("test.short", deadline=seconds(20))
"""Given up after 20 s."""

odd = made("test.odd", samples=2, output=Question)
"""Its answers never fit."""


class Thinker(bases.Base):
    """Asks ``mode`` once for each of ``what``, then ends."""

    name = "test.thinker"
    version = 1

    @step(title=_("Ask"))
    def begin(self, run: StepRun) -> Transition:
        contract = {"once": once, "twice": twice, "long": long, "dear": dear, "short": short, "odd": odd}[run.data.mode]
        return Compute(contract(text=f"q{run.data.at}"), then=self.told)

    @step(title=_("Use it"))
    def told(self, run: StepRun, computed: StepComputed) -> Transition:
        run.data.heard.append([str(computed.state), computed.output or computed.reason])
        if not computed.answered:
            return Fail("not_done")
        run.data.at += 1
        return self.begin(run) if run.data.at < run.data.again else Finish(verified=[])
