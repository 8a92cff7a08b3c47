"""What is wrong with one declaration: each finding names its field. The registry adds the app, the check the
id.

Ids: E001 import, E002 missing, E003 not a field, E004 wrong, E005 declared twice, E006 dependency, E007 key,
E008 not serialisable, E009 run type incomplete, E010 steps, E011 not translatable, E012 unknown reference, E013 a path
from an older version that does not work.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

from annotated_types import Le, MaxLen
from django.utils.functional import Promise as LazyText
from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError

from recovery.contract.approval import Signatures
from recovery.contract.effects import GENERATION_ROOM, MISSING, EffectContract, Missing
from recovery.contract.fields import (
    Around,
    Authority,
    Compensation,
    OnCancel,
    OnLate,
    Precondition,
    Principal,
    Target,
)
from recovery.contract.outcomes import Http
from recovery.contract.paths import path_findings
from recovery.contract.pins import Pins, StateSchema
from recovery.contract.promises import Promise
from recovery.contract.readback import Readback
from recovery.contract.retry import Retry
from recovery.contract.runs import (
    FIRST_STEP,
    Checkpoints,
    LeaseRules,
    Ownership,
    Quarantine,
    RunContract,
    RunType,
    Targets,
    UnknownBeforeResume,
)
from recovery.ports.base import Port
from runs.states import EvidenceKind


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    id: str
    subject: str
    field: str
    text: str


NAME: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
SLUG: Final = re.compile(r"[a-z][a-z0-9-]*")

_OPTIONAL: Final = frozenset({"authority", "reconcile", "compensation", "irreversible", "approval", "stake"})
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "version": (int,),
    "promise": (Promise,),
    "requires": (list,),
    "authority": (Authority,),
    "outcomes": (Http,),
    "timeout": (timedelta,),
    "deadline": (timedelta,),
    "reserve": (timedelta,),
    "retry": (Retry,),
    "reconcile": (Readback,),
    "checkpoint": (Around,),
    "on_cancel": (OnCancel,),
    "on_late": (OnLate,),
    "compensation": (Compensation,),
    "approval": (Signatures,),
    "review_after": (timedelta,),
    "due_in": (timedelta,),
    "evidence": (list,),
    "port": (Port,),
}


def effect_findings(contract: EffectContract) -> Iterator[Finding]:
    """Everything that is wrong with one effect contract."""
    version = "" if isinstance(contract.version, Missing) else f" v{contract.version}"
    subject = f"{contract.operation}{version}"

    def found(code: str, field: str, text: str) -> Finding:
        return Finding(code, subject, field, text)

    for name in contract.missing:
        yield found("E002", name, "missing; write None if it does not apply")
    for name in contract.unknown:
        yield found("E003", name, "no field of an effect contract")
    if not NAME.fullmatch(contract.operation):
        yield found("E004", "operation", 'needs the form "area.verb" in lower case')
    sound = set()
    for name, kinds in _TYPES.items():
        value = getattr(contract, name)
        if value is MISSING or (value is None and name in _OPTIONAL):
            continue
        if not isinstance(value, kinds):
            told = " or ".join(kind.__name__ for kind in kinds)
            yield found("E004", name, f"is {type(value).__name__}, needs {told}")
        else:
            sound.add(name)
    for name in ("promise", "retry", "outcomes", "reconcile", "approval"):
        if name in sound:
            for text in getattr(contract, name).problems():
                yield found("E004", name, text)
    yield from _limits(contract, sound, found)
    yield from _names(contract, found)
    yield from _texts(contract, found)
    yield from _requires(contract, sound, found)
    if "compensation" in sound and contract.compensation is not None:
        yield from (found("E004", "compensation", text) for text in contract.compensation.problems())
    if contract.params is not MISSING:
        yield from (found("E008", f"params.{path}", text) for path, text in model_findings(contract.params))
        if "promise" in sound:
            yield from (found("E007", "key", text) for text in _key(contract))


Found = Callable[[str, str, str], Finding]


def _limits(contract: EffectContract, sound: set[str], found: Found) -> Iterator[Finding]:
    if "version" in sound and contract.version < 1:
        yield found("E004", "version", "starts at 1")
    for name in ("timeout", "deadline", "review_after", "due_in"):
        if name in sound and getattr(contract, name) <= timedelta(0):
            yield found("E004", name, "must be longer than nothing")
    if {
        "timeout",
        "deadline",
        "reserve",
    } <= sound and contract.timeout + contract.reserve >= contract.deadline:
        yield found("E004", "deadline", "leaves no time: timeout and reserve together reach it")
    if {"deadline", "reserve", "approval"} <= sound and contract.approval is not None:
        signing = contract.approval.approve_within + contract.approval.execute_within
        if signing + contract.reserve >= contract.deadline:
            yield found("E004", "deadline", "leaves no time for the signatures, the send and the reserve")
    if {"promise", "retry"} <= sound:
        window = contract.promise.window
        if window is not None and contract.retry.total >= window:
            yield found("E004", "retry", "total must be shorter than the promise's window")


def _names(contract: EffectContract, found: Found) -> Iterator[Finding]:
    dependency: Any = contract.dependency
    if dependency is not MISSING:
        if not isinstance(dependency, str):
            yield found("E006", "dependency", f"is {type(dependency).__name__}, needs the dependency's name as text")
        elif not SLUG.fullmatch(dependency):
            yield found("E006", "dependency", f"{dependency!r} is no dependency's name")
    if contract.escalate_to is not MISSING and not (
        isinstance(contract.escalate_to, str) and SLUG.fullmatch(contract.escalate_to)
    ):
        yield found("E004", "escalate_to", "needs a group's slug")
    if contract.scope is not MISSING and contract.scope != "workspace":
        yield found("E004", "scope", 'must be "workspace"')
    for name in ("key", "stake"):
        value = getattr(contract, name)
        if value is not MISSING and not callable(value) and not (name == "stake" and value is None):
            yield found("E004", name, "needs a function")


def _texts(contract: EffectContract, found: Found) -> Iterator[Finding]:
    for name in ("describe", "irreversible"):
        value = getattr(contract, name)
        if value is MISSING or (value is None and name == "irreversible"):
            continue
        if not isinstance(value, LazyText):
            yield found("E011", name, "is not translatable: wrap it in gettext_lazy")
    if isinstance(contract.describe, LazyText | str) and isinstance(contract.params, type):
        known = {*getattr(contract.params, "model_fields", {}), "stake", "amount"}
        for used in placeholders(str(contract.describe)):
            if used not in known:
                yield found("E004", "describe", f"{{{used}}} is neither a param nor stake")


def _requires(contract: EffectContract, sound: set[str], found: Found) -> Iterator[Finding]:
    if "requires" in sound:
        targets = [item for item in contract.requires if isinstance(item, Target)]
        if len(targets) != 1:
            yield found("E004", "requires", f"names {len(targets)} Target, needs exactly one")
        listed: list[Any] = list(contract.requires)
        for item in listed:
            if not isinstance(item, Target | Principal | Precondition):
                yield found("E004", "requires", f"{type(item).__name__} is no requirement")
        fields = getattr(contract.params, "model_fields", {})
        for target in targets:
            if fields and target.field not in fields:
                yield found("E004", "requires", f"Target({target.field!r}) is no param")
    if "evidence" in sound:
        for kind in contract.evidence:
            if kind not in EvidenceKind.values:
                yield found("E004", "evidence", f"{kind!r} is no kind of evidence")
        if contract.reconcile is not MISSING and (contract.reconcile is None) == ("readback" in contract.evidence):
            yield found("E004", "evidence", "lists readback exactly when reconcile is a Readback")


def placeholders(template: str) -> list[str]:
    """Names in a ``{}`` template, without attributes or indexes."""
    return [re.split(r"[.\[]", name)[0] for _text, name, _spec, _conv in string.Formatter().parse(template) if name]


def model_findings(model: Any) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of each field that JSON cannot carry; model must be a Pydantic model."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        yield "", "needs a Pydantic model"
        return
    for name, info in model.model_fields.items():
        try:
            annotation: Any = info.annotation
            config = None if _has_own_config(annotation) else model.model_config
            TypeAdapter[Any](annotation, config=config).json_schema(mode="serialization")
        except (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError) as error:
            yield name, f"cannot be written as JSON: {str(error).splitlines()[0]}"


def _has_own_config(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _key(contract: EffectContract) -> Iterator[str]:
    """The longest key that the declared lengths allow, against the promise. Fields without a length are left
    out."""
    limit = contract.promise.key_max_length
    if limit is None or not callable(contract.key) or not hasattr(contract.params, "model_fields"):
        return
    sample = SimpleNamespace(**{name: _longest(info) for name, info in contract.params.model_fields.items()})
    run = SimpleNamespace(id=UUID(int=2**128 - 1), data={}, now=datetime.now(UTC), deadline=None, principal="", goal="")
    try:
        key: Any = contract.key(run, sample)
    except (AttributeError, LookupError, TypeError, ValueError):
        # A key that needs the run's own data has no sample; it is checked when it is made.
        return
    if not isinstance(key, str):
        yield "does not give text"
    elif len(key) + GENERATION_ROOM > limit:
        yield f"can be {len(key)} characters, and /n; the promise allows {limit}"


def _longest(info: Any) -> Any:
    for rule in info.metadata:
        if isinstance(rule, MaxLen):
            return "x" * rule.max_length
        if isinstance(rule, Le):
            return rule.le
    return 2**53 - 1 if info.annotation is int else ""


_RUN_FIELDS: Final[dict[str, type]] = {
    "state_schema": StateSchema,
    "checkpoints": Checkpoints,
    "ownership": Ownership,
    "lease": LeaseRules,
    "pins": Pins,
    "revalidation": tuple,
    "unknown_before_resume": UnknownBeforeResume,
    "targets": Targets,
    "quarantine": Quarantine,
    "proofs": tuple,
}


def run_type_findings(cls: type[RunType]) -> Iterator[Finding]:
    """Everything that is wrong with one run type."""
    version = f" v{cls.version}" if isinstance(cls.version, int) else ""
    subject = f"{cls.name}{version}" if isinstance(cls.name, str) else cls.__name__
    for name in ("name", "version", "Data", "contract", "reasons"):
        if getattr(cls, name) is MISSING:
            yield Finding("E009", subject, name, "missing")
    for name in ("describe", "references"):
        if getattr(cls, name) is getattr(RunType, name):
            yield Finding("E009", subject, name, "missing")
    if cls.contract is not MISSING:
        yield from _run_contract(cls.contract, subject)
        if isinstance(cls.contract, RunContract) and cls.Data is not MISSING and isinstance(cls.version, int):
            for code, field, text in path_findings(cls, cls.contract):
                yield Finding(code, subject, field, text)
    if cls.Data is not MISSING:
        for path, text in model_findings(cls.Data):
            yield Finding("E008", subject, f"Data.{path}", text)
    if FIRST_STEP not in cls.steps:
        yield Finding("E010", subject, FIRST_STEP, "missing: the first step is a method begin marked with @step")
    for name, info in cls.steps.items():
        if not isinstance(info.title, LazyText):
            yield Finding("E011", subject, f"step {name}", "title is not translatable: wrap it in gettext_lazy")
    if isinstance(cls.reasons, dict):
        for code, text in cls.reasons.items():
            if not isinstance(text, LazyText):
                yield Finding("E011", subject, f"reason {code}", "is not translatable: wrap it in gettext_lazy")


def _run_contract(contract: Any, subject: str) -> Iterator[Finding]:
    if not isinstance(contract, RunContract):
        yield Finding("E009", subject, "contract", f"is {type(contract).__name__}, needs RunContract")
        return
    for name in contract.missing:
        yield Finding("E002", subject, f"contract.{name}", "missing; no field of a run contract has a default")
    for name, kind in _RUN_FIELDS.items():
        value = getattr(contract, name)
        if value is not MISSING and not isinstance(value, kind):
            text = f"is {type(value).__name__}, needs {kind.__name__}"
            yield Finding("E004", subject, f"contract.{name}", text)
