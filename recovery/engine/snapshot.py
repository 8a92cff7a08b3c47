"""What decide looks at and what it concludes: frozen values, no database, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from recovery.contract.outcomes import Outcome
from runs.states import AttemptState, Claim, EffectState, EvidenceKind, Strength


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One try.

    ``committed_at``: its commit, the earliest moment a byte could leave. ``expires_at``: after it nothing of
    it can still leave. ``ended_at``: when its end was recorded. ``sender_alive``: its worker still beats.
    """

    id: UUID
    n: int
    state: AttemptState
    committed_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None
    outcome: Outcome | None = None
    sender_alive: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView:
    """One piece of evidence. ``observed_at``: the time it speaks of; ``received_at``: the database's time of
    it."""

    id: UUID
    kind: EvidenceKind
    claim: Claim
    strength: Strength
    observed_at: datetime
    received_at: datetime
    attempt: UUID | None = None
    result: dict[str, Any] | None = None

    @property
    def speaks_of(self) -> datetime:
        """The moment that counts against a lag: never later than we received it, earlier if they say so."""
        return min(self.observed_at, self.received_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One effect as the record has it. All times are the database's and carry a zone.

    ``deadline``: the effect's. ``needs_approval`` with ``execute_by`` (None: not granted) and
    ``approval_good``: every signer still allowed and the digest equal. ``cancelling``: its run is being
    cancelled, or has ended; ``paused``: a person holds its run, nothing of it is sent. ``not_before``: an
    earlier decision's pause. ``budget_left``: whether the dependency's retry budget has room. ``held``:
    somebody holds the dependency or its breaker is open; ``shed``: new work is refused meanwhile.
    ``settled_at``: of a settled effect. ``what``: the describing sentence.
    """

    effect: UUID
    state: EffectState
    attempts: tuple[AttemptView, ...]
    evidence: tuple[EvidenceView, ...]
    deadline: datetime
    key: str
    what: str = ""
    needs_approval: bool = False
    execute_by: datetime | None = None
    approve_by: datetime | None = None
    approval_good: bool = True
    cancelling: bool = False
    paused: bool = False
    not_before: datetime | None = None
    unknown_since: datetime | None = None
    settled_at: datetime | None = None
    run_deadline: datetime | None = None
    budget_left: bool = True
    held: bool = False
    shed: bool = False


class Verb(StrEnum):
    """What is done next."""

    SEND = "send"
    RESEND = "resend"
    READ_BACK = "read_back"
    WAIT = "wait"
    ASK = "ask"
    SETTLE = "settle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What decide concludes.

    ``becomes``: the state the effect takes with this decision (None: it stays). ``settle_as``: the same, when
    the verb is settle (partial included). ``not_before``: when to decide again; with ``ask`` the next check
    made meanwhile. ``evidence``: the ids it rests on. ``result``: what the step receives. ``review``: kind of
    review to open with ask.
    """

    verb: Verb
    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    not_before: datetime | None = None
    settle_as: EffectState | None = None
    becomes: EffectState | None = None
    evidence: tuple[UUID, ...] = ()
    result: dict[str, Any] | None = None
    review: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As an effect's ``decision`` column and a run's ``gate`` keep it."""
        return {
            "verb": str(self.verb),
            "reason": self.reason,
            "facts": dict(self.facts),
            "not_before": None if self.not_before is None else self.not_before.isoformat(),
            "evidence": [str(one) for one in self.evidence],
        }
