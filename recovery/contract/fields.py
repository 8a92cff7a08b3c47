"""The small declarations that fill an effect contract's fields: what is required, what around it, what after
it.

All of them are declared and checked now; each says in its docstring what the engine does with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel


class OnCancel(StrEnum):
    """What a cancel request means for this effect."""

    SETTLE = "settle"  # not sent: cancelled; sent: find out how it ended, by reading only


class OnLate(StrEnum):
    """What an answer that comes after the end means."""

    KEEP_AS_EVIDENCE = "keep_as_evidence"  # never revives the run; a contradiction opens a dispute


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Compensation:
    """How the world is brought to an acceptable state afterwards; a new effect, never a rollback.

    ``by``: the operation that does it. ``authorization``: who must allow it. ``after``: operations that come
    first. ``verified_by``: what shows that it worked. ``residual``: a translatable sentence on what stays, or
    None.
    """

    by: str
    authorization: str
    after: tuple[str, ...]
    verified_by: str
    residual: Any
