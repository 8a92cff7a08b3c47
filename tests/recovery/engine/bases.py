"""What the tests' run types share, in a module of its own: the registry takes every run type of a module."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel

from recovery.contract import (
    Checkpoints,
    LeaseRules,
    Ownership,
    Pins,
    Quarantine,
    RunContract,
    RunType,
    StateSchema,
    Targets,
    UnknownBeforeResume,
    minutes,
    seconds,
)


class Amount(BaseModel):
    """Payload of ``order.changed``."""

    amount: int


class Word(BaseModel):
    """Payload of ``told``."""

    text: str = ""


def rules(**changes: Any) -> RunContract:
    """The ten points, with ``changes``."""
    ownership = {
        "signals": {"order.changed": Amount, "told": Word},
        "timers": True,
        "owner": "payments-oncall",
        "deadline": None,
        "cancel_needs": "cancel",
    }
    lease = {"fresh_for": seconds(60), "tries": 3, "transitions": 50, "slice": seconds(5)}
    ownership |= {name: changes.pop(name) for name in list(changes) if name in ownership}
    lease |= {name: changes.pop(name) for name in list(changes) if name in lease}
    return RunContract(
        state_schema=StateSchema(version=1, migrates_from={}),
        checkpoints=Checkpoints(max_loss=0),
        ownership=Ownership(**ownership),  # type: ignore[arg-type]
        lease=LeaseRules(**lease),  # type: ignore[arg-type]
        pins=Pins(pinned=("type", "contract"), migrates_from={}),
        revalidation=("identity", "permission"),
        unknown_before_resume=UnknownBeforeResume.SETTLE_FIRST,
        targets=Targets(recover_within=seconds(20), drain_within=minutes(60)),
        quarantine=Quarantine(group="payments-oncall", runbook="quarantined"),
        proofs=(),
    )


class Plan(BaseModel):
    """``what``: the contracts asked for, each with its charge. ``again``: how often to ask anew after
    ``not_applied``. ``heard``: what the steps were told, for the test to read.
    """

    what: list[tuple[str, str]] = []
    amount: int = 8400
    again: int = 0
    mode: str = ""
    at: int = 0
    heard: list[Any] = []
    strange: Any = None


class Base(RunType):
    """What the run types here share. Abstract: it has no version, so nothing registers it."""

    Data = Plan
    contract = rules()
    reasons = {"not_done": _("It was not done."), "no_word": _("No word came.")}

    def describe(self, data: Plan) -> Any:
        return f"Test {self.name}"

    def references(self, data: Plan) -> list[str]:
        return [charge for _name, charge in data.what]
