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


Transition = Perform | Wait | Finish | Fail
