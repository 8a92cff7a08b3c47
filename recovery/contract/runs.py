"""``RunType`` and ``step``: a versioned, named machine of steps, with its run contract.

A step is a pure function of the run's data and the last outcome; it returns a transition. It calls nothing
and reads no clock but ``run.now``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Final, TypeVar, cast
from uuid import UUID

from pydantic import BaseModel, ValidationError

from recovery.contract import canonical
from recovery.contract.declared import bare_schema, declared
from recovery.contract.effects import MISSING, fields_of
from recovery.contract.errors import CanonicalError, ParamsInvalid, UnknownSignal, UnknownStep
from recovery.contract.failures import FailureClass
from recovery.contract.pins import Pins, StateSchema
from recovery.contract.transitions import Transition
from runs.states import CallState, EffectState, RunState

FIRST_STEP = "begin"


class UnknownBeforeResume(StrEnum):
    """What happens to effects in flight and unknown before a run that was away goes on."""

    SETTLE_FIRST = "settle_first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """``max_loss``: accepted steps that may have to be done again after a crash; 0 means none."""

    max_loss: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """Timers, subscriptions and who answers for the run.

    ``signals``: {name: Pydantic model of its payload}, those it understands. ``timers``: whether it waits for
    times. ``owner``: the group's slug. ``deadline``: of the run when the caller gives none, or None.
    ``cancel_needs``: the permission that may cancel.
    """

    signals: Mapping[str, type[BaseModel]]
    timers: bool
    owner: str
    deadline: timedelta | None
    cancel_needs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRules:
    """``fresh_for``: a longer wait counts as away. ``tries``: without progress, before quarantine.

    ``transitions`` and ``slice``: how far one worker goes before it hands the run back.
    """

    fresh_for: timedelta
    tries: int
    transitions: int
    slice: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """``recover_within``: from a crash to the next step. ``drain_within``: for a backlog of this type."""

    recover_within: timedelta
    drain_within: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """Who takes a quarantined run out (``group``) and the page of the runbook that says how."""

    group: str
    runbook: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A drill or test that shows the recovery, and the day of its last success (None: never)."""

    name: str
    last: date | None

    def declared(self) -> dict[str, Any]:
        """Its name: when it was last shown is no part of what is promised."""
        return {"is": "Proof", "name": self.name}


REVALIDATED: Final = ("identity", "permission", "policy", "approvals", "secrets", "data")
"""What check 5 can look at again; a run contract names those that stop its runs."""


@dataclass(frozen=True, slots=True, init=False)
class RunContract:
    """The ten points of a run type's recovery contract; none has a default, a missing one is named by a
    check."""

    state_schema: StateSchema
    checkpoints: Checkpoints
    ownership: Ownership
    lease: LeaseRules
    pins: Pins
    revalidation: tuple[str, ...]
    unknown_before_resume: UnknownBeforeResume
    targets: Targets
    quarantine: Quarantine
    proofs: tuple[Proof, ...]
    missing: tuple[str, ...] = field(default=(), repr=False)

    def __init__(self, **fields: Any) -> None:
        names = [name for name in type(self).__dataclass_fields__ if name != "missing"]
        for name in names:
            object.__setattr__(self, name, fields.get(name, MISSING))
        lost = [name for name in names if name not in fields]
        odd = [f"{name} (not a field)" for name in sorted(set(fields) - set(names))]
        object.__setattr__(self, "missing", tuple(lost + odd))


@dataclass(slots=True)
class StepRun:
    """What a step sees of its run. ``data`` is its own copy: what the step leaves in it is what the record
    keeps.

    ``now``: the database's time of this transition. ``principal``: on whose authority. All times carry a
    zone. ``config``: the versions of model, prompt, policy, interface, workflow and schema that this run keeps.
    ``context``: what the run type's ``context`` made of the record when the run went on after a gap, else None.
    """

    id: UUID
    data: Any
    now: datetime
    deadline: datetime | None
    principal: str
    goal: str = ""
    config: Mapping[str, str] = field(default_factory=dict)
    context: Any = None


@dataclass(frozen=True, slots=True)
class Known:
    """What the record knows of a run that goes on: ``context`` of a run type makes a bounded context of it.

    ``settled``: the outcomes, oldest first. ``open``: effects that are not settled, as operation, key and state.
    ``signals``: names of events that wait. ``done``: the steps that were taken.
    """

    settled: tuple[StepOutcome, ...]
    open: tuple[Mapping[str, str], ...]
    signals: tuple[str, ...]
    done: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """How one effect ended: ``state`` is its settled state or partial; ``evidence`` what shows it.

    ``failure``: which of the ten failure classes it is, None where it happened.
    """

    state: EffectState
    operation: str
    key: str
    result: dict[str, Any] | None = None
    reason: dict[str, Any] | None = None
    evidence: tuple[UUID, ...] = ()
    effect: UUID | None = None
    failure: FailureClass | None = None

    @property
    def succeeded(self) -> bool:
        """Whether it happened."""
        return self.state == EffectState.SUCCEEDED


@dataclass(frozen=True, slots=True)
class StepComputed:
    """What a computation came to: ``state`` is answered (with ``output``) or refused (with ``reason``)."""

    state: CallState
    operation: str
    call: UUID
    output: dict[str, Any] | None = None
    reason: dict[str, Any] | None = None

    @property
    def answered(self) -> bool:
        """Whether there is an output."""
        return self.state == CallState.ANSWERED


@dataclass(frozen=True, slots=True)
class StepSignal:
    """A signal that reached the run. ``reason``: of a person's correction; empty for a plain signal."""

    name: str
    payload: dict[str, Any]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StepChild:
    """How a run that this one started has ended: ``state`` is one of the ends, ``how`` its reason code and facts."""

    id: UUID
    run_type: str
    key: str
    state: RunState
    how: dict[str, Any]

    @property
    def completed(self) -> bool:
        """Whether it did what it was started for."""
        return self.state == RunState.COMPLETED


F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class StepInfo:
    """``takes``: whether the method takes a third argument (outcome, outcomes or signal)."""

    name: str
    title: Any
    takes: bool


def step(*, title: Any) -> Callable[[F], F]:
    """Mark a method as a step. ``title``: a lazily translated text."""

    def mark(method: F) -> F:
        takes = len(inspect.signature(method).parameters) > 2
        cast(Any, method).recourse_step = StepInfo(method.__name__, title, takes)
        return method

    return mark


class RunType:
    """Base of all run types. A subclass sets ``name``, ``version``, ``Data``, ``contract``, ``reasons`` and
    its steps.

    ``reasons``: {code: lazily translated sentence} for the ends that ``Finish`` and ``Fail`` give a reason
    for. ``replan``: the step that is called instead of the next one when the authority's state has moved on while the
    run was away, or None: then a person is asked. ``context_bytes``: how large ``context`` may be as canonical JSON.
    for. ``internal``: only Recourse itself starts it.
    """

    name: ClassVar[str] = MISSING
    version: ClassVar[int] = MISSING
    Data: ClassVar[type[BaseModel]] = MISSING
    contract: ClassVar[RunContract] = MISSING
    reasons: ClassVar[Mapping[str, Any]] = MISSING
    replan: ClassVar[str | None] = None
    context_bytes: ClassVar[int] = 32_000
    steps: ClassVar[dict[str, StepInfo]] = {}
    internal: ClassVar[bool] = False
    declared_in: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.declared_in = cls.__module__ or sys._getframe(1).f_globals.get("__name__", "")
        cls.steps = {
            name: method.recourse_step
            for name, method in inspect.getmembers(cls, inspect.isfunction)
            if hasattr(method, "recourse_step")
        }

    def describe(self, data: Any) -> Any:
        """The run's title: a lazily translated sentence over its data."""
        raise NotImplementedError(f"{type(self).__name__} needs describe(data)")

    def references(self, data: Any) -> list[str]:
        """Business references that search finds."""
        raise NotImplementedError(f"{type(self).__name__} needs references(data)")

    def context(self, data: Any, known: Known) -> Any:
        """What a model is shown when the run goes on after a gap: JSON values made of the record alone, within
        ``context_bytes``. None: this type needs none. A derived view; it never replaces the record."""
        return None

    @cached_property
    def config(self) -> dict[str, str]:
        """The versions of this code: what a run that is accepted now keeps."""
        fixed = {"workflow": str(self.version), "schema": str(self.contract.state_schema.version)}
        return {p.part: p.now for p in self.contract.pins.parts.values() if p.now is not None} | fixed

    def load(self, data: Mapping[str, Any]) -> BaseModel:
        """Validated data. Raises ParamsInvalid naming each field."""
        try:
            return self.Data.model_validate(dict(data))
        except ValidationError as error:
            raise ParamsInvalid(self.name, fields_of(error)) from error

    def load_signal(self, name: str, payload: Mapping[str, Any]) -> StepSignal:
        """A signal that this type understands, its payload validated. Raises UnknownSignal, ParamsInvalid."""
        model = self.contract.ownership.signals.get(name)
        if model is None:
            raise UnknownSignal(f"{self.name} v{self.version} knows no signal {name!r}", signal=name)
        try:
            return StepSignal(name, model.model_validate(dict(payload)).model_dump(mode="json"))
        except ValidationError as error:
            raise ParamsInvalid(f"{self.name} {name}", fields_of(error)) from error

    def dump(self, data: BaseModel) -> dict[str, Any]:
        """The data as JSON values. Raises CanonicalError with the path of what cannot be written."""
        told = data.model_dump(mode="python")
        plain = _plain(told, "$")
        canonical.check(plain)
        return cast("dict[str, Any]", plain)

    def call(self, step_name: str, run: StepRun, given: Any = None) -> Transition:
        """Call one step. ``given``: outcome, list of outcomes or signal. Raises UnknownStep, TypeError for
        nonsense."""
        info = self.steps.get(step_name)
        if info is None:
            raise UnknownStep(f"{self.name} v{self.version} has no step {step_name!r}", step=step_name)
        method = getattr(self, step_name)
        returned = method(run, given) if info.takes else method(run)
        if not isinstance(returned, Transition):
            raise TypeError(f"step {step_name!r} returned {type(returned).__name__}, not a transition")
        return returned

    def title_of(self, step_name: str) -> Any:
        """The step's lazily translated title."""
        return self.steps[step_name].title

    def reason_text(self, code: str, facts: Mapping[str, Any]) -> str:
        """The sentence of an end, in the active language."""
        return str(self.reasons[code]).format(**facts)

    @cached_property
    def declared(self) -> dict[str, Any]:
        """The declarative part: name, version, data schema, steps and the ten points."""
        return {
            "name": self.name,
            "version": self.version,
            "data": bare_schema(self.Data.model_json_schema()),
            "steps": sorted(self.steps),
            "contract": declared(self.contract),
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the declarative part, hex."""
        return canonical.digest(self.declared)


def _plain(value: Any, path: str) -> Any:
    """JSON values of what Pydantic gave; the path survives, which its own JSON mode would not tell."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _plain(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, StrEnum):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise CanonicalError(path, f"{type(value).__name__} cannot be written as JSON")
