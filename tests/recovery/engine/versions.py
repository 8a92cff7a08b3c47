"""Run types in several versions for the tests of migration and pins; made anew by each test and registered by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel

from recovery.actions import resumption
from recovery.contract import (
    Authority,
    Finish,
    Migration,
    Perform,
    Pin,
    Pins,
    RunContract,
    StateSchema,
    StepOutcome,
    StepRun,
    StepSignal,
    Transition,
    Wait,
    registry,
    step,
)
from recovery.contract.runs import Known, RunType
from runs.models import Review
from runs.states import ReviewKind, WaitingOn
from tests.recovery.engine import bases, contracts
from tests.recovery.engine.world import World
from tests.recovery.stage import act


class Old(BaseModel):
    """Data of version 1: one text."""

    note: str = ""
    heard: list[Any] = []


class New(BaseModel):
    """Data of version 2: the text became a list."""

    notes: list[str] = []
    heard: list[Any] = []


def contract(
    *,
    schema: StateSchema | None = None,
    pinned: tuple[str | Pin, ...] = ("type", "contract"),
    migrates_from: dict[int, Migration] | None = None,
) -> RunContract:
    """The ten points, with these two."""
    made = bases.rules()
    fields = {name: getattr(made, name) for name in RunContract.__dataclass_fields__ if name != "missing"}
    fields["state_schema"] = schema or StateSchema(version=1, migrates_from={})
    fields["pins"] = Pins(pinned=pinned, migrates_from=migrates_from or {})
    return RunContract(**fields)


def first(**given: Any) -> type[RunType]:
    """Version 1: waits for the event ``told``, then ends."""

    class First(bases.Base):
        name = "test.versions"
        version = 1
        Data = Old
        contract = globals()["contract"](**given)

        def references(self, data: Any) -> list[str]:
            return []

        @step(title=_("Wait"))
        def begin(self, run: StepRun) -> Transition:
            return Wait(event="told", then=self.over)

        @step(title=_("End"))
        def over(self, run: StepRun, signal: StepSignal) -> Transition:
            run.data.heard.append(["first", dict(run.config)])
            return Finish(verified=[])

    return First


def second(by: Any = None, **given: Any) -> type[RunType]:
    """Version 2: its data is another one and its last step has another name. ``by``: its migration from version 1."""
    schema = StateSchema(version=2, migrates_from={1: Migration(by=split, sample={"note": "a", "heard": []})})
    path = Migration(by=by or renamed, sample=("over", {"notes": ["a"], "heard": []}))

    class Second(bases.Base):
        name = "test.versions"
        version = 2
        Data = New
        contract = globals()["contract"](**{"schema": schema, "migrates_from": {1: path}, **given})

        def references(self, data: Any) -> list[str]:
            return []

        @step(title=_("Wait"))
        def begin(self, run: StepRun) -> Transition:
            return Wait(event="told", then=self.close)

        @step(title=_("Close"))
        def close(self, run: StepRun, signal: StepSignal) -> Transition:
            run.data.heard.append(["second", run.data.notes])
            return Finish(verified=[])

    return Second


def split(data: dict[str, Any]) -> dict[str, Any]:
    return {"notes": [data["note"]], "heard": data["heard"]}


def renamed(step: str, data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return {"over": "close"}.get(step, step), data


def use(*kinds: type[RunType]) -> None:
    """This code knows exactly these of them."""
    kept = registry._registry
    kept._effects[watched.operation, 1] = watched
    for name, version in [one for one in kept._run_types if one[0] == kinds[0].name]:
        del kept._run_types[name, version]
    for kind in kinds:
        kept._run_types[kind.name, kind.version] = kind()


watched = replace(contracts.pay, operation="test.watched", authority=Authority(name="payments", version_field="id"))
"""As pay; the other side's id of the refund stands for the version of its state."""


def watching(**body: Any) -> type[RunType]:
    """Refunds, waits for ``told``, refunds again; ``body``: replan, context, context_bytes."""

    class Watching(bases.Base):
        name = "test.watching"
        version = 1
        contract = bases.rules()

        @step(title=_("Do"))
        def begin(self, run: StepRun) -> Transition:
            ((_name, charge),) = run.data.what
            return Perform(watched(charge=charge, amount=8400, currency="EUR"), then=self.pause)

        @step(title=_("Wait"))
        def pause(self, run: StepRun, outcome: StepOutcome) -> Transition:
            return Wait(event="told", then=self.over)

        @step(title=_("End"))
        def over(self, run: StepRun, signal: StepSignal) -> Transition:
            run.data.heard.append(["over", run.context])
            return Finish(verified=[])

        @step(title=_("Look at it anew"))
        def anew(self, run: StepRun) -> Transition:
            run.data.heard.append("anew")
            return Finish(verified=[])

    for name, value in body.items():
        setattr(Watching, name, value)
    return Watching


def told(self: Any, data: Any, known: Known) -> Any:
    """A context: what is known, in a few words."""
    return {"settled": [[one.operation, str(one.state)] for one in known.settled], "signals": list(known.signals)}


def waiting(w: World, **data: Any) -> UUID:
    """A run of version 1 that waits for its event."""
    run = w.accept("test.versions", note="a", **data)
    w.drive()
    assert w.run(run).waiting_on == WaitingOn.EVENT
    return run


def go_on(w: World, run: UUID) -> None:
    """A person lets it go on over what is asked."""
    review = Review.objects.get(run_id=run, kind=ReviewKind.RESUMPTION, state="open")
    report = review.why["facts"]["report"]
    resumption.go_on(run, actor=w.s.oncall_g, act=act("resumption"), reason="looked at it", report=report)
