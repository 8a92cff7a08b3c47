"""What the API says: one class a shape, to answer and to describe itself; no more than a screen shows."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self
from uuid import UUID

from django.urls import reverse
from pydantic import BaseModel, Field

from runs.checkpoints import tokens
from runs.models import Approval, Attempt, Effect, Evidence, Person, Run, Verdict
from runs.queries import EffectDetail, RunRow
from runs.states import EffectState


class Who(BaseModel):
    """A person."""

    id: UUID
    name: str

    @classmethod
    def of(cls, person: Person | None) -> Self | None:
        """None for the system itself."""
        return None if person is None else cls(id=person.pk, name=person.name)


class Reason(BaseModel):
    """Why: a stable code and the facts its sentence is made from."""

    code: str
    facts: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of(cls, stored: dict[str, Any] | None) -> Self | None:
        """From how the record stores it."""
        if not stored or "code" not in stored:
            return None
        return cls(code=stored["code"], facts=stored.get("facts") or {})


class Paged(BaseModel):
    """``next`` and ``previous`` are cursors; null at the ends."""

    next: str | None
    previous: str | None


class RunShort(BaseModel):
    """A run in a list."""

    id: UUID
    workspace: str = Field(description="Slug.")
    type: str
    type_version: int
    title: str
    state: str
    waiting_on: str = Field(description="Empty unless state is waiting.")
    version: int
    principal: str
    started_by: Who | None
    references: list[str]
    priority: int
    deadline: datetime | None
    accepted_at: datetime
    ended_at: datetime | None
    effects: dict[str, int] = Field(description="Number of effects by state.")
    url: str

    @classmethod
    def of(cls, row: RunRow) -> Self:
        """From a row of the list."""
        return cls(**_run(row.run, row.effects))


class RunWhole(RunShort):
    """A run."""

    goal: str
    contract_digest: str
    step: str = Field(description="Name of the next legal step.")
    wait_event: str = Field(description="The signal it waits for; empty without one.")
    wake_at: datetime | None
    gate: list[dict[str, Any]] = Field(description="The engine's stored decisions: reason code and facts.")
    cancel_asked_at: datetime | None
    ended_how: Reason | None
    last_event: int = Field(description="Sequence of the newest event.")
    events_url: str
    effects_url: str

    @classmethod
    def whole(cls, run: Run, effects: dict[EffectState, int]) -> Self:
        """From a run with its workspace and who started it."""
        return cls(
            **_run(run, effects),
            goal=run.goal,
            contract_digest=run.contract_digest,
            step=run.step,
            wait_event=run.wait_event,
            wake_at=run.wake_at,
            gate=run.gate if isinstance(run.gate, list) else [run.gate],
            cancel_asked_at=run.cancel_asked_at,
            ended_how=Reason.of(run.ended_how),
            last_event=run.head_seq,
            events_url=reverse("api:run-events", args=[run.pk]),
            effects_url=reverse("api:run-effects", args=[run.pk]),
        )


def _run(run: Run, effects: dict[EffectState, int]) -> dict[str, Any]:
    return {
        "id": run.pk,
        "workspace": run.workspace.slug,
        "type": run.type,
        "type_version": run.type_version,
        "title": run.title,
        "state": run.state,
        "waiting_on": run.waiting_on if run.state == "waiting" else "",
        "version": run.version,
        "principal": run.principal,
        "started_by": Who.of(run.started_by),
        "references": run.references,
        "priority": run.priority,
        "deadline": run.deadline,
        "accepted_at": run.accepted_at,
        "ended_at": run.ended_at,
        "effects": {str(state): n for state, n in effects.items()},
        "url": reverse("api:run", args=[run.pk]),
    }


class EffectShort(BaseModel):
    """An effect in a list: no payloads."""

    id: UUID
    run: UUID
    ordinal: int
    operation: str
    contract_version: int
    dependency: str
    target: str
    describe: str
    stake: dict[str, Any] | None
    irreversible: str = Field(description="Why it cannot be reversed; empty where it can.")
    key: str
    generation: int
    revision: int
    state: str
    version: int
    attempts: int
    checks: int
    deadline: datetime
    requested_at: datetime
    unknown_since: datetime | None
    next_check_at: datetime | None
    review_at: datetime | None
    settled_at: datetime | None
    reason: Reason | None
    url: str

    @classmethod
    def of(cls, effect: Effect) -> Self:
        """From an effect with its dependency."""
        return cls(**_effect(effect))


def _effect(effect: Effect) -> dict[str, Any]:
    same = set(EffectShort.model_fields) - {"run", "dependency", "reason", "url"}
    return {
        **{name: getattr(effect, name) for name in same},
        "run": effect.run_id,
        "dependency": effect.dependency.name,
        "reason": Reason.of(effect.reason),
        "url": reverse("api:effect", args=[effect.pk]),
    }


class AttemptShape(BaseModel):
    """One try to carry an effect out."""

    id: UUID
    n: int
    state: str
    committed_at: datetime
    claimed_at: datetime | None
    ended_at: datetime | None
    outcome: dict[str, Any] | None

    @classmethod
    def of(cls, attempt: Attempt) -> Self:
        """From the record's row."""
        return cls(**{name: getattr(attempt, name) for name in cls.model_fields})


class EvidenceShape(BaseModel):
    """What supports an outcome. ``strength``: proves, agrees, word, contradicts or none."""

    id: UUID
    kind: str
    strength: str
    claim: str
    facts: Any
    digest: str
    person: Who | None
    observed_at: datetime
    received_at: datetime

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """From the record's row with its person."""
        same = set(cls.model_fields) - {"person"}
        return cls(**{name: getattr(evidence, name) for name in same}, person=Who.of(evidence.person))


class ApprovalShape(BaseModel):
    """A request for signatures. Signing is done in the browser: a token never signs."""

    id: UUID
    revision: int
    state: str
    digest: str
    check_code: str
    needed: int
    signed: int
    group: str
    approve_by: datetime
    execute_by: datetime | None

    @classmethod
    def of(cls, approval: Approval) -> Self:
        """From the record's row with group and signatures."""
        same = set(cls.model_fields) - {"signed", "group"}
        signed = sum(signature.state == "signed" for signature in approval.signatures.all())
        return cls(**{name: getattr(approval, name) for name in same}, signed=signed, group=approval.group.slug)


class VerdictShape(BaseModel):
    """A person's decision about an unknown outcome."""

    id: UUID
    says: str
    state: str
    person: Who | None
    reason: str
    evidence: list[UUID]
    effect_version: int
    digest: str
    at: datetime
    confirmed_by: Who | None
    confirmed_at: datetime | None

    @classmethod
    def of(cls, verdict: Verdict) -> Self:
        """From the record's row with its people."""
        same = set(cls.model_fields) - {"person", "confirmed_by"}
        return cls(
            **{name: getattr(verdict, name) for name in same},
            person=Who.of(verdict.person),
            confirmed_by=Who.of(verdict.confirmed_by),
        )


class SentRequest(BaseModel):
    """What the port sends, byte for byte in ``body``. ``credential`` is an alias, never its value."""

    method: str
    url: str
    credential: str
    body: str


class EffectWhole(EffectShort):
    """An effect with everything said about it."""

    params: dict[str, Any]
    sent_key: str = Field(description="The key as the other side sees it.")
    intent_digest: str
    contract_digest: str
    request: SentRequest
    result: Any
    decision: dict[str, Any] | None = Field(description="The engine's last decision: verb, reason, facts.")
    tries: list[AttemptShape]
    evidence: list[EvidenceShape]
    approvals: list[ApprovalShape]
    verdicts: list[VerdictShape]

    @classmethod
    def whole(cls, detail: EffectDetail) -> Self:
        """From the effect's page."""
        effect = detail.effect
        request = effect.request if isinstance(effect.request, dict) else {}
        return cls(
            **_effect(effect),
            params=tokens.masked(effect.params),
            sent_key=effect.sent_key,
            intent_digest=effect.intent_digest,
            contract_digest=effect.contract_digest,
            request=SentRequest(
                method=str(request.get("method", "")),
                url=str(request.get("url", "")),
                credential=str(request.get("credential", "")),
                body=tokens.masked(effect.body),
            ),
            result=effect.result,
            decision=effect.decision,
            tries=[AttemptShape.of(attempt) for attempt in detail.attempts],
            evidence=[EvidenceShape.of(evidence) for evidence in detail.evidence],
            approvals=[ApprovalShape.of(approval) for approval in detail.approvals],
            verdicts=[VerdictShape.of(verdict) for verdict in detail.verdicts],
        )
