"""The record's tables. Reading is the ORM's; every write of state goes through ``runs.record``."""

from runs.models.approval import Approval, Signature
from runs.models.call import Call
from runs.models.contract import ContractVersion
from runs.models.dependency import Capacity, ClockShift, Degraded, Dependency, Drain, Transition, Worker
from runs.models.drill import Drill
from runs.models.effect import Attempt, Effect, EffectLink, Evidence, Verdict
from runs.models.epoch import Epoch, Recovered, Restore
from runs.models.event import Action, Event
from runs.models.message import Callback, Channel, Notice, NoticeTarget
from runs.models.plan import Plan
from runs.models.review import Review, Severity
from runs.models.run import Checkpoint, Run, Signal
from runs.models.workspace import (
    ApiToken,
    Environment,
    FieldKey,
    Group,
    Person,
    Workspace,
    WorkspaceGroupPermission,
    WorkspaceUserPermission,
)

__all__ = [
    "Action",
    "ApiToken",
    "Approval",
    "Attempt",
    "Call",
    "Callback",
    "Capacity",
    "Channel",
    "Checkpoint",
    "ClockShift",
    "Degraded",
    "ContractVersion",
    "Dependency",
    "Drain",
    "Drill",
    "Effect",
    "EffectLink",
    "Environment",
    "Epoch",
    "Event",
    "Evidence",
    "FieldKey",
    "Group",
    "Notice",
    "NoticeTarget",
    "Person",
    "Recovered",
    "Restore",
    "Plan",
    "Review",
    "Run",
    "Severity",
    "Signal",
    "Signature",
    "Transition",
    "Verdict",
    "Worker",
    "Workspace",
    "WorkspaceGroupPermission",
    "WorkspaceUserPermission",
]
