"""How an attempt ended and what that makes of its effect: entries for the record, values for the step."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from recovery.contract import EffectContract
from recovery.contract.outcomes import Outcome, OutcomeKind
from recovery.contract.runs import StepOutcome
from recovery.engine import classes, verdicts
from recovery.engine.changes import is_high, open_review, settle_effect
from recovery.engine.snapshot import Decision, EvidenceView, Verb
from recovery.ports.base import Answer, AnswerKind
from runs import record
from runs.models import Effect, Evidence
from runs.models.base import new_id
from runs.record import Change, Entry
from runs.states import (
    EFFECT_SETTLED,
    AttemptState,
    Claim,
    EffectState,
    EventKind,
    EvidenceKind,
    ReviewKind,
    Strength,
)

RAW_KEPT: Final = 64_000
"""Characters of an answer that evidence keeps; its digest covers the whole."""

_SAYS: Final[dict[OutcomeKind, tuple[Claim, Strength]]] = {
    OutcomeKind.SUCCEEDED: (Claim.HAPPENED, Strength.PROVES),
    OutcomeKind.PARTIAL: (Claim.IN_PART, Strength.PROVES),
    OutcomeKind.REJECTED: (Claim.REJECTED, Strength.PROVES),
    OutcomeKind.ACCEPTED: (Claim.PENDING, Strength.PROVES),
}
"""401, 429 and the like are answered in front of the operation: they say nothing about an earlier send."""

_ATTEMPT: Final = {
    AnswerKind.ANSWERED: AttemptState.ANSWERED,
    AnswerKind.LOST: AttemptState.LOST,
    AnswerKind.NOT_SENT: AttemptState.NOT_SENT,
}


@dataclass(frozen=True, slots=True)
class Ended:
    """An entry to commit, and the effect as it will then be."""

    entry: Entry
    effect: Effect
    evidence: tuple[UUID, ...] = ()


def told(row: Mapping[str, Any]) -> dict[str, Any]:
    """What an event says of an effect, without its payload."""
    return {
        "effect": str(row["id"]),
        "operation": row["operation"],
        "describe": row["describe"],
        "stake": row["stake"],
        "key": row["sent_key"],
        "intent": row["intent_digest"],
    }


def told_of(effect: Effect) -> dict[str, Any]:
    """The same for a stored effect."""
    return {
        "effect": str(effect.pk),
        "operation": effect.operation,
        "describe": effect.describe,
        "stake": effect.stake,
        "key": effect.sent_key,
        "intent": effect.intent_digest,
    }


def attempt_state(answer: Answer) -> AttemptState:
    """The attempt's state after ``answer``."""
    return _ATTEMPT[answer.kind]


def answer_evidence(effect: Effect, attempt: UUID, answer: Answer, outcome: Outcome) -> dict[str, Any]:
    """The row that keeps an answer; the database stamps when it was received."""
    claim, strength = _SAYS.get(outcome.kind, (Claim.UNAVAILABLE, Strength.NONE))
    raw = answer.body.decode("utf-8", "replace")
    return {
        "id": new_id(),
        "workspace_id": effect.workspace_id,
        "run_id": effect.run_id,
        "effect_id": effect.pk,
        "attempt_id": attempt,
        "kind": EvidenceKind.ANSWER,
        "claim": claim,
        "strength": strength,
        "detail": {
            "status": answer.status,
            "code": outcome.code,
            "result": outcome.result,
            "reference": outcome.reference,
            "elapsed_ms": round(answer.elapsed_ms, 1),
        },
        "raw": raw[:RAW_KEPT].replace("\x00", "\ufffd"),
        "digest": hashlib.sha256(answer.body).hexdigest(),
    }


def evidence_view(row: Mapping[str, Any], now: datetime) -> EvidenceView:
    """An evidence row not yet stored, as decide sees it."""
    return EvidenceView(
        id=row["id"],
        kind=EvidenceKind(row["kind"]),
        claim=Claim(row["claim"]),
        strength=Strength(row["strength"]),
        observed_at=row.get("observed_at") or now,
        received_at=now,
        attempt=row.get("attempt_id"),
        result=_result(row.get("detail") or {}),
    )


def stored_view(evidence: Evidence) -> EvidenceView:
    """A stored evidence, as decide sees it."""
    return EvidenceView(
        id=evidence.pk,
        kind=EvidenceKind(evidence.kind),
        claim=Claim(evidence.claim),
        strength=Strength(evidence.strength),
        observed_at=evidence.observed_at,
        received_at=evidence.received_at,
        attempt=evidence.attempt_id,
        result=_result(evidence.detail),
    )


def _result(detail: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the step will receive: an answer's result, or the item that a readback found."""
    return detail.get("result") or detail.get("item")


def twin(effect: Effect) -> Effect:
    """A second instance with the same columns, to say what will be once a commit is through."""
    other = Effect.__new__(Effect)
    other.__dict__ |= effect.__dict__
    other._state = copy(effect._state)
    return other


def conclude(
    effect: Effect,
    decision: Decision,
    contract: EffectContract,
    *,
    now: datetime,
    before: Sequence[Change] = (),
    data: Mapping[str, Any] | None = None,
    bump: bool = False,
    extra: Mapping[str, Any] | None = None,
    version: int | None = None,
) -> Ended:
    """The entry that carries ``decision`` out (but for a send), with ``before`` in the same event.

    ``bump``: new evidence came with it, the effect's version rises also where its state stays. ``version``: refuse it
    if the effect has another one by then (evidence or a proposal that the decision has not seen).
    """
    state = decision.becomes or EffectState(effect.state)
    why = {"code": decision.reason, "facts": dict(decision.facts)}
    change: dict[str, Any] = {"decision": decision.as_json(), **(extra or {})}
    facts = {**told_of(effect), "decision": decision.as_json(), **(data or {})}
    after = twin(effect)
    after.state, after.reason = state, why
    if state != effect.state or bump:
        after.version += 1
    if state == effect.state and (state in EFFECT_SETTLED or state == EffectState.PARTIAL):
        # Looked at again, and nothing new: what ended stays as it ended, with its reason and its time.
        after.reason = effect.reason
        stays = {"next_check_at": None, **(extra or {})}
        looked = record.move("effect", effect.pk, [effect.state], stays, version=version, bump=bump)
        return Ended(Entry(EventKind.EFFECT_CHECKED, facts, [*before, looked]), after)
    if state in EFFECT_SETTLED or state == EffectState.PARTIAL:
        after.result = decision.result
        after.settled_at = now if state in EFFECT_SETTLED else None
        changes = settle_effect(effect, state, why, result=decision.result, version=version, extra=change)
        if effect.unknown_since is not None:
            changes += verdicts.drop_proposed(effect.pk)
        return Ended(Entry(EventKind.EFFECT_SETTLED, {**facts, "state": state}, [*before, *changes]), after)
    if state in (EffectState.UNKNOWN, EffectState.ACCEPTED):
        change["next_check_at"] = decision.not_before if decision.verb in (Verb.WAIT, Verb.ASK) else now
        if effect.unknown_since is None and state == EffectState.UNKNOWN:
            change["unknown_since"] = now
            change["review_at"] = now + contract.review_after
    elif state == EffectState.READY:
        change["not_before"] = decision.not_before or now
        change["next_check_at"] = effect.deadline
    elif state == EffectState.DISPUTED:
        change["next_check_at"] = None
        change["settled_at"] = None
    else:
        change["next_check_at"] = decision.not_before
    if state != effect.state:
        change["state"] = state
        change["reason"] = why
    changes = [record.move("effect", effect.pk, [effect.state], change, version=version, bump=bump)]
    if state == EffectState.DISPUTED and effect.state != state:
        # Another question now: not what happened, but which of two words is true.
        changes.append(record.close_reviews(effect.pk, [ReviewKind.OUTCOME_UNKNOWN]))
    if decision.verb == Verb.ASK and decision.review and decision.review != ReviewKind.SIGNATURES_NEEDED:
        changes.append(
            open_review(
                ReviewKind(decision.review),
                effect.pk,
                workspace=effect.workspace_id,
                run=effect.run_id,
                effect=effect.pk,
                group=effect.group_id,
                high=is_high(effect),
                why=why,
                due_in=contract.due_in.total_seconds(),
            )
        )
    changes.append(record.reckon())
    kind = _KIND.get(state, EventKind.EFFECT_CHECKED) if state != effect.state else EventKind.EFFECT_CHECKED
    return Ended(Entry(kind, facts, [*before, *changes]), after)


_KIND: Final = {
    EffectState.UNKNOWN: EventKind.EFFECT_UNKNOWN,
    EffectState.ACCEPTED: EventKind.EFFECT_DELAYED,
    EffectState.READY: EventKind.EFFECT_DELAYED,
    EffectState.DISPUTED: EventKind.EFFECT_DISPUTED,
    EffectState.AWAITING_APPROVAL: EventKind.EFFECT_HELD_BACK,
}


def step_outcomes(effects: Sequence[Effect], known: Mapping[UUID, Sequence[UUID]] | None = None) -> list[StepOutcome]:
    """What a step receives, in the order it asked. One query for the evidence of all that is not ``known``."""
    shown: dict[UUID, list[UUID]] = {id: list(evidence) for id, evidence in (known or {}).items()}
    if any(e.pk not in shown for e in effects):
        _read_evidence(effects, shown)
    return [
        StepOutcome(
            state=EffectState(e.state),
            operation=e.operation,
            key=e.key,
            result=e.result,
            reason=e.reason,
            evidence=tuple(shown.get(e.pk, ())),
            effect=e.pk,
            failure=classes.failure_of(e),
        )
        for e in effects
    ]


def _read_evidence(effects: Sequence[Effect], shown: dict[UUID, list[UUID]]) -> None:
    rows = Evidence.objects.filter(effect__in=[e.pk for e in effects]).exclude(strength=Strength.NONE)
    for effect_id, evidence_id in rows.order_by("id").values_list("effect_id", "id"):
        shown.setdefault(effect_id, []).append(evidence_id)
