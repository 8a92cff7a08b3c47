"""The built-in run type that carries a compensation plan out. The registry knows it without an app's contracts.

Its effects are ordinary ones: each with its own key, signatures, tries, unknown outcome. The engine holds each back
until its turn and looks at what it mends first (``recovery/engine/mending.py``); the steps here only decide what is
next. It never asks twice by itself: what did not work ends it, and people decide (no silent loop).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel

from recovery.contract import registry
from recovery.contract.mending import MendingRequest, PlanItem
from recovery.contract.pins import Pins, StateSchema
from recovery.contract.runs import (
    Checkpoints,
    LeaseRules,
    Ownership,
    Quarantine,
    RunContract,
    RunType,
    StepOutcome,
    StepRun,
    Targets,
    UnknownBeforeResume,
    step,
)
from recovery.contract.transitions import Fail, Finish, Perform, Transition
from recovery.contract.units import minutes, seconds
from runs.states import EffectState

BLOCKED = "blocked"
"""What an item ended as whose turn never came, because what comes before it did not work."""


class PlanData(BaseModel):
    """``items``: what is mended, in order; ``at``: the one under way; ``ended``: how each ended, by the original."""

    plan: UUID
    mended: UUID
    title: str
    items: list[PlanItem]
    at: UUID | None = None
    ended: dict[str, str] = {}
    evidence: list[UUID] = []


def request_of(item: PlanItem) -> MendingRequest:
    """The request of an item that the plan mends. Raises UnknownOperation, ParamsInvalid."""
    assert item.by is not None and item.params is not None and item.key is not None, "an item that is left out"
    request = registry.effect_contract(item.by, item.version).load(item.params)
    return MendingRequest(
        request.contract, request.params, mends=item.effect, given_key=item.key, approved=item.approved
    )


class CompensationRun(RunType):
    """Mends the effects of another run, one after the other."""

    name = "recourse.compensation"
    version = 1
    internal = True
    Data = PlanData
    contract = RunContract(
        state_schema=StateSchema(version=1, migrates_from={}),
        checkpoints=Checkpoints(max_loss=0),
        ownership=Ownership(signals={}, timers=True, owner="on-call", deadline=None, cancel_needs="cancel"),
        lease=LeaseRules(fresh_for=seconds(60), tries=3, transitions=50, slice=seconds(5)),
        pins=Pins(pinned=("type", "contract"), migrates_from={}),
        revalidation=("identity", "permission", "policy", "approvals", "secrets"),
        unknown_before_resume=UnknownBeforeResume.SETTLE_FIRST,
        targets=Targets(recover_within=seconds(20), drain_within=minutes(60)),
        quarantine=Quarantine(group="on-call", runbook="quarantined"),
        proofs=(),
    )
    reasons = {"not_all_mended": _("{mended} of {of} were mended.")}

    def describe(self, data: PlanData) -> Any:
        return format_lazy(_("Mend: {title}"), title=data.title)

    def references(self, data: PlanData) -> list[str]:
        return []

    @step(title=_("Mend what happened"))
    def begin(self, run: StepRun) -> Transition:
        """The first item."""
        return self._next(run)

    @step(title=_("Mend what comes next"))
    def settled(self, run: StepRun, outcome: StepOutcome) -> Transition:
        """One item has ended; a success has been verified as its contract wants."""
        run.data.ended[str(run.data.at)] = str(outcome.state)
        if outcome.succeeded:
            run.data.evidence.extend(outcome.evidence)
        return self._next(run)

    def _next(self, run: StepRun) -> Transition:
        data: PlanData = run.data
        for item in data.items:
            if str(item.effect) in data.ended:
                continue
            if any(data.ended.get(str(other), EffectState.SUCCEEDED) != EffectState.SUCCEEDED for other in item.after):
                data.ended[str(item.effect)] = BLOCKED
                continue
            data.at = item.effect
            return Perform(request_of(item), then=self.settled)
        good = sum(1 for state in data.ended.values() if state == EffectState.SUCCEEDED)
        if good == len(data.items):
            return Finish(verified=data.evidence)
        return Fail("not_all_mended", mended=good, of=len(data.items))
