"""What authors import: everything a ``contracts.py`` needs.

Ports are imported beside it: ``from recovery.ports.http import HttpPort``.
"""

from recovery.contract.approval import AtLeast, Signatures
from recovery.contract.computes import ComputeContract, ComputeRequest, compute
from recovery.contract.effects import EffectContract, EffectRequest, effect
from recovery.contract.failures import Answer, FailureClass
from recovery.contract.fields import (
    Around,
    Authority,
    Authorization,
    Compensation,
    OnCancel,
    OnLate,
    Precondition,
    Principal,
    Target,
    VerifiedBy,
)
from recovery.contract.mending import StepPlan
from recovery.contract.money import Count, Money
from recovery.contract.outcomes import Http, Outcome, OutcomeKind
from recovery.contract.pins import Migration, OnChange, Pin, Pins, StateSchema
from recovery.contract.promises import Promise
from recovery.contract.readback import Fact, Listing, Readback
from recovery.contract.retry import Backoff, Retry
from recovery.contract.runs import (
    Checkpoints,
    Known,
    LeaseRules,
    Ownership,
    Proof,
    Quarantine,
    RunContract,
    RunType,
    StepChild,
    StepComputed,
    StepOutcome,
    StepRun,
    StepSignal,
    Targets,
    UnknownBeforeResume,
    step,
)
from recovery.contract.sealed import Sealed
from recovery.contract.transitions import Compensate, Compute, Fail, Finish, Perform, Start, Transition, Wait
from recovery.contract.units import days, hours, minutes, seconds
from runs.states import EffectState

__all__ = [
    "Answer",
    "Around",
    "AtLeast",
    "Authority",
    "Authorization",
    "Backoff",
    "Checkpoints",
    "Compensate",
    "Compensation",
    "Compute",
    "ComputeContract",
    "ComputeRequest",
    "Count",
    "EffectContract",
    "EffectRequest",
    "EffectState",
    "Fact",
    "Fail",
    "FailureClass",
    "Finish",
    "Http",
    "Known",
    "LeaseRules",
    "Migration",
    "Money",
    "OnCancel",
    "OnChange",
    "OnLate",
    "Outcome",
    "OutcomeKind",
    "Ownership",
    "Perform",
    "Pin",
    "Pins",
    "Precondition",
    "Principal",
    "Promise",
    "Proof",
    "Quarantine",
    "Listing",
    "Readback",
    "Retry",
    "RunContract",
    "RunType",
    "Sealed",
    "Signatures",
    "Start",
    "StateSchema",
    "StepChild",
    "StepComputed",
    "StepOutcome",
    "StepPlan",
    "StepRun",
    "StepSignal",
    "Target",
    "Targets",
    "Transition",
    "UnknownBeforeResume",
    "VerifiedBy",
    "Wait",
    "compute",
    "days",
    "effect",
    "hours",
    "minutes",
    "seconds",
    "step",
]
