"""The small declarations that fill an effect contract's fields: what is required, what around it, what after
it.

All of them are declared and checked now; each says in its docstring what the engine does with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from django.utils.functional import Promise as LazyText
from pydantic import BaseModel


class OnCancel(StrEnum):
    """What a cancel request means for this effect."""

    SETTLE = "settle"  # not sent: cancelled; sent: find out how it ended, by reading only
    COMPENSATE = (
        "compensate"  # the same; what then turns out to have happened must be mended before the run is cancelled
    )


class OnLate(StrEnum):
    """What an answer that comes after the end means."""

    KEEP_AS_EVIDENCE = (
        "keep_as_evidence"  # never revives the run; a contradiction opens a dispute, a success a draft plan
    )


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose authority this is done. ``of`` is "run": the run's principal."""

    of: str = "run"


@dataclass(frozen=True, slots=True)
class Target:
    """The params field that names what is changed; its value is the effect's target, part of the intent
    digest."""

    field: str

    def value(self, params: BaseModel) -> str:
        """The target of these params, as text."""
        return str(getattr(params, self.field))


@dataclass(frozen=True, slots=True)
class Precondition:
    """Something that must hold before the send. ``says`` is a translatable sentence for the approval page."""

    name: str
    says: Any


Requirement = Principal | Target | Precondition


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """Which system owns the truth about the target and which value of its answer is the version of that
    state."""

    name: str
    version_field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Checkpoints around the effect: with the intent (``before``) and with the outcome (``after``)."""

    before: bool
    after: bool


class Authorization(StrEnum):
    """Who must allow a compensation (R15)."""

    OWN = "own"  # it is a consequential effect of its own: the signatures that its own contract asks for
    PRE_APPROVED = "pre_approved"  # allowed with the original: its digest covers this field; without that, as OWN


class VerifiedBy(StrEnum):
    """What shows that a compensation worked."""

    READBACK = "readback"  # the authority is asked and shows it; its answer to the request alone is not enough
    ANSWER = "answer"  # its answer to the request; where nothing can be read back


@dataclass(frozen=True, slots=True, kw_only=True)
class Compensation:
    """How the world is brought to an acceptable state afterwards; a new effect, never a rollback.

    ``by``: the operation that does it. ``request(params, result)``: its params, from those of the original and from
    what it led to; None where there is nothing to mend. ``allowed(params, result)``: whether it may be done at all
    (None: always). ``key(params, result)``: its idempotency key (None: derived from the original's id, which is right
    unless the other side wants another). ``after``: operations of the same run whose compensations come first; without
    one, later effects are mended before earlier ones. ``preconditions``: what people are told must hold.
    ``authorization``: who must allow it. ``verified_by``: what shows that it worked. ``within``: how long after the
    original it may still be begun (None: no limit). ``deadline``: how long it may take (None: as long as its own
    contract says). ``residual``: a translatable sentence on what stays, over the original's params, or None.
    ``escalate_to``: the group that is asked when it does not work.
    """

    by: str
    request: Callable[[Any, Mapping[str, Any]], Mapping[str, Any] | None]
    allowed: Callable[[Any, Mapping[str, Any]], bool] | None
    key: Callable[[Any, Mapping[str, Any]], str] | None
    after: tuple[str, ...]
    preconditions: tuple[Precondition, ...]
    authorization: Authorization
    verified_by: VerifiedBy
    within: timedelta | None
    deadline: timedelta | None
    residual: Any
    escalate_to: str

    def problems(self) -> Iterator[str]:
        """What is wrong with this declaration, one sentence each."""
        for name in ("request", "allowed", "key"):
            value = getattr(self, name)
            if not callable(value) and (value is not None or name == "request"):
                yield f"{name} needs a function"
        for name, kind in (("authorization", Authorization), ("verified_by", VerifiedBy)):
            if not isinstance(getattr(self, name), kind):
                yield f"{name} must be one of {kind.__name__}"
        for name in ("within", "deadline"):
            value = getattr(self, name)
            if value is not None and value <= timedelta(0):
                yield f"{name} must be longer than nothing"
        if self.residual is not None and not isinstance(self.residual, LazyText):
            yield "residual is not translatable: wrap it in gettext_lazy"
