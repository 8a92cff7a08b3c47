"""What a step may return: the next legal transition, as a value.

Steps are named by the method (``self.refunded``) or by its name; the record keeps the name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from recovery.contract.computes import ComputeRequest
    from recovery.contract.effects import EffectRequest

StepRef = str | Callable[..., Any]


def step_name(ref: StepRef) -> str:
    """The name of a step given as a method or as text. Raises TypeError for anything else."""
    if isinstance(ref, str):
        return ref
    name = getattr(ref, "__name__", None)
    if not isinstance(name, str):
        raise TypeError(f"a step is named by its method or its name, not by {type(ref).__name__}")
    return name


@dataclass(frozen=True, init=False)
class Perform:
    """Carry one or many effects out, then call ``then``.

    ``join`` "all": when all are settled, or at the first that did not succeed. ``on``: which step answers
    which signal while an effect has no attempt yet; that step may return a Perform of the same key, which
    amends the effect.
    """

    requests: tuple[EffectRequest, ...]
    then: str
    join: str
    on: dict[str, str]

    def __init__(
        self,
        *requests: EffectRequest,
        then: StepRef,
        join: str = "all",
        on: Mapping[str, StepRef] | None = None,
    ) -> None:
        if not requests:
            raise ValueError("Perform needs at least one effect")
        if join != "all":
            raise ValueError('join must be "all"')
        object.__setattr__(self, "requests", requests)
        object.__setattr__(self, "then", step_name(then))
        object.__setattr__(self, "join", join)
        object.__setattr__(self, "on", {name: step_name(ref) for name, ref in (on or {}).items()})


@dataclass(frozen=True, init=False)
class Wait:
    """Wait for a time (``until``) or for a signal (``event``), then call ``then``; holds no worker (invariant
    11).

    ``timeout``: only with ``event``; when it passes, ``then`` is called without a signal.
    """

    then: str
    until: datetime | None
    event: str | None
    timeout: timedelta | None

    def __init__(
        self,
        *,
        then: StepRef,
        until: datetime | None = None,
        event: str | None = None,
        timeout: timedelta | None = None,
    ) -> None:
        if (until is None) == (event is None):
            raise ValueError("Wait takes either until or event")
        if timeout is not None and event is None:
            raise ValueError("timeout belongs to a wait for an event")
        if until is not None and until.tzinfo is None:
            raise ValueError("until needs a time zone")
        object.__setattr__(self, "then", step_name(then))
        object.__setattr__(self, "until", until)
        object.__setattr__(self, "event", event)
        object.__setattr__(self, "timeout", timeout)


@dataclass(frozen=True, init=False)
class Finish:
    """End as completed. ``verified``: ids of the evidence the result rests on (invariant 7).

    ``reason``: a code of the run type's ``reasons`` when the end needs a sentence; ``facts`` fill it.
    """

    verified: tuple[UUID, ...]
    reason: str | None
    facts: dict[str, Any]

    def __init__(self, *, verified: Sequence[UUID], reason: str | None = None, **facts: Any) -> None:
        object.__setattr__(self, "verified", tuple(verified))
        object.__setattr__(self, "reason", reason)
        object.__setattr__(self, "facts", facts)


@dataclass(frozen=True, init=False)
class Fail:
    """End as failed. ``reason``: a code of the run type's ``reasons``; ``facts`` fill its sentence."""

    reason: str
    facts: dict[str, Any]

    def __init__(self, reason: str, **facts: Any) -> None:
        if not reason:
            raise ValueError("Fail says why")
        object.__setattr__(self, "reason", reason)
        object.__setattr__(self, "facts", facts)


@dataclass(frozen=True, init=False)
class Start:
    """Start a run of another type and wait for its end, then call ``then`` with a StepChild.

    ``run_type``: its name. ``input``: its data, validated there. ``key``: names the child within this run, so that
    the same step taken twice starts one.
    """

    run_type: str
    input: dict[str, Any]
    then: str
    key: str

    def __init__(self, run_type: str, *, input: Mapping[str, Any], then: StepRef, key: str) -> None:
        if not key:
            raise ValueError("Start needs a key that names the child within this run")
        object.__setattr__(self, "run_type", run_type)
        object.__setattr__(self, "input", dict(input))
        object.__setattr__(self, "then", step_name(then))
        object.__setattr__(self, "key", key)


@dataclass(frozen=True, init=False)
class Compensate:
    """Mend what this run has done so far by a plan, then call ``then`` with how the plan ended (None: end mended).

    ``effects``: which of its settled effects, by id; None means all that have a compensation.
    """

    effects: tuple[UUID, ...] | None
    then: str | None

    def __init__(self, *, effects: Sequence[UUID] | None = None, then: StepRef | None = None) -> None:
        object.__setattr__(self, "effects", None if effects is None else tuple(effects))
        object.__setattr__(self, "then", None if then is None else step_name(then))


@dataclass(frozen=True, init=False)
class Compute:
    """Ask for a recorded computation (a model call, a read), then call ``then`` with its output.

    ``request``: a ComputeRequest; its accepted output is used for ever, a lost one is asked again within the
    contract's ``samples``.
    """

    request: ComputeRequest
    then: str

    def __init__(self, request: ComputeRequest, *, then: StepRef) -> None:
        object.__setattr__(self, "request", request)
        object.__setattr__(self, "then", step_name(then))


Transition = Perform | Wait | Finish | Fail | Start | Compensate | Compute
