"""What compensating adds to requests and to what steps receive: a request that mends an effect, how a plan ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from recovery.contract.approval import Signatures
from recovery.contract.effects import EffectRequest, key_problem
from recovery.contract.errors import KeyInvalid
from recovery.contract.fields import VerifiedBy
from runs.states import EffectState, PlanState


def derived_key(effect: UUID | str) -> str:
    """The key of the compensation of ``effect`` where its contract names none: one for each original."""
    return f"compensate:{effect}"


class LeftOut(BaseModel):
    """Why an effect that happened is not mended: a code of ``recovery.engine.compensate.LEFT_OUT`` and its facts."""

    model_config = ConfigDict(frozen=True)

    code: str
    facts: dict[str, Any] = {}


class PlanItem(BaseModel):
    """One effect that happened, and what mends it. JSON values: the plan keeps it, its run takes it as its data.

    ``n``: its place. ``effect``: the original's id, ``state`` its state when the plan was made, ``happened`` its
    sentence. ``by``, ``version``, ``params``, ``key``: the compensation's request; None where there is none, then
    ``left_out`` says why. ``says``: its sentence. ``after``: originals whose compensations come first. ``approved``:
    allowed with the original; ``signatures``: how many its own contract asks for. ``knew``: the version of the
    authority's state that the original led to; None where no version is known. ``deadline_s``: seconds.
    """

    model_config = ConfigDict(frozen=True)

    n: int
    effect: UUID
    state: EffectState
    happened: str
    by: str | None = None
    version: int | None = None
    params: dict[str, Any] | None = None
    key: str | None = None
    says: str = ""
    stake: dict[str, Any] | None = None
    after: list[UUID] = []
    approved: bool = False
    signatures: int = 0
    verified_by: VerifiedBy | None = None
    preconditions: list[str] = []
    residual: str = ""
    knew: str | int | None = None
    escalate_to: str = ""
    irreversible: str = ""
    deadline_s: int | None = None
    left_out: LeftOut | None = None

    @property
    def active(self) -> bool:
        """Whether the plan mends it."""
        return self.left_out is None


@dataclass(frozen=True)
class MendingRequest(EffectRequest):
    """A request that mends the effect ``mends``.

    ``given_key``: its key, which its own contract does not choose. ``approved``: allowed with the original, so that no
    signatures of its own are asked for (R15).
    """

    mends: UUID
    given_key: str
    approved: bool

    def key(self, run: Any) -> str:
        """The key that was given. Raises KeyInvalid."""
        problem = key_problem(self.given_key, self.contract.promise.key_max_length)
        if problem is not None:
            raise KeyInvalid(f"{self.contract.operation}: {problem}", operation=self.contract.operation)
        return self.given_key

    def signatures(self) -> Signatures | None:
        """The signatures that this request needs, or None."""
        return None if self.approved else super().signatures()


@dataclass(frozen=True, slots=True)
class StepPlan:
    """How a plan ended, for the step that asked for it: compensated, or ended by people who accept what stays.

    ``mended`` of ``of`` items; ``stays``: what was not mended, and what mending leaves behind.
    """

    plan: UUID | None
    state: PlanState
    mended: int
    of: int
    stays: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether everything that could be mended was."""
        return self.state == PlanState.COMPENSATED
