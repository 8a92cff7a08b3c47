"""Judging a request before each send, and what follows from the judgement (R5 to R7, R10, invariant 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from recovery.contract import registry
from recovery.engine.approvals.asking import OPEN, bytes_differ, current_epoch, review_of
from recovery.engine.approvals.beforehand import signed_beforehand
from recovery.engine.approvals.quorum import rule_of, standing
from recovery.engine.changes import is_high, open_review, reason
from recovery.engine.endings import told_of
from runs import clock, record
from runs.models import Approval, Effect
from runs.record import Change, Entry
from runs.states import ApprovalState, EffectState, EventKind, ReviewKind


@dataclass(frozen=True, slots=True)
class Refused:
    """Why an effect may not be sent: a stable code and its facts.

    ``approval``: the request judged, if there is one.
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    approval: Approval | None = None


def check_before_send(effect: Effect, now: datetime) -> Approval | Refused | None:
    """Whether ``effect`` may be sent at ``now`` (database time).

    None: its contract asks for no signatures. An Approval: good to be consumed, or consumed by this same
    effect before and good for it still (R10). Refused: what fails. For the strictest reading call it in the
    transaction that claims, after the run's lock; the guard of :func:`consume` catches a reject or a
    withdrawal in any case.
    """
    contract = registry.effect_contract(effect.operation, effect.contract_version)
    if contract.approval is None:
        return None
    approval = _of(effect)
    if approval is None:
        if effect.mends_id is not None and signed_beforehand(Effect.objects.get(pk=effect.mends_id)):
            return None
        # An amended effect may have fallen below the limit of the rule; then there is no request of its
        # revision.
        return Refused("approval_missing") if contract.load(effect.params).signatures() else None
    return _judge(effect, approval, now)


def _judge(effect: Effect, approval: Approval, now: datetime) -> Approval | Refused:
    if approval.state not in (ApprovalState.GRANTED, ApprovalState.CONSUMED):
        return Refused("not_granted", {"state": str(approval.state)}, approval)
    if approval.execute_by is None or now >= approval.execute_by:
        until = None if approval.execute_by is None else approval.execute_by.isoformat()
        return Refused("approval_expired", {"at": until}, approval)
    if approval.epoch != current_epoch():
        return Refused("approval_void", {"epoch": approval.epoch}, approval)
    if bytes_differ(effect, approval):
        return Refused("digest_differs", {"revision": approval.revision}, approval)
    if approval.overridden_at is not None:
        # Break-glass stands for the signatures, and for nothing else that was checked above (invariant 8, R13).
        return approval
    signed = standing(approval)
    good = rule_of(approval).good(signed)
    if len(good) < approval.needed:
        kept = {one.pk for one in good}
        lost = [one.person.name for one in signed if one.pk not in kept]
        facts = {"needed": approval.needed, "good": len(good), "lost": lost}
        return Refused("short_of_quorum", facts, approval)
    return approval


def consume(approval: Approval) -> list[Change]:
    """The changes that use the request up, for the commit that claims the send (R7).

    Guarded by ``granted``: a reject

    or a withdrawal that came first makes that commit a LostRace. Already consumed by this effect: no change.
    """
    if approval.state == ApprovalState.CONSUMED:
        return []
    used = {"state": ApprovalState.CONSUMED}
    return [
        record.move("approval", approval.pk, (ApprovalState.GRANTED,), used, times={"consumed_at": 0, "ended_at": 0})
    ]


def grant(approval: Approval, effect: Effect) -> list[Change]:
    """Enough have signed: the request is granted, its second clock starts, its effect may be sent."""
    times = {"granted_at": 0.0, "execute_by": float(approval.execute_within)}
    ready = {"state": EffectState.READY, "reason": reason("signed", approval=str(approval.pk))}
    granted = {"state": ApprovalState.GRANTED}
    return [
        record.move("approval", approval.pk, (ApprovalState.PENDING,), granted, times=times),
        record.move("effect", effect.pk, (EffectState.AWAITING_APPROVAL,), ready, times={"not_before": 0}),
        record.close_reviews(approval.pk),
        record.reckon(),
    ]


def give_back(effect: Effect, refused: Refused) -> list[Entry]:
    """A ready effect that may not be sent waits for signatures again, and a person sees it.

    Short of quorum: the request is pending again, for another signer. Otherwise it is expired; a consumed one
    stays consumed (R10) and only a renewal helps.
    """
    refused = _precisely(effect, refused)
    why = reason(refused.code, **dict(refused.facts))
    changes: list[Change] = [
        record.move("effect", effect.pk, (EffectState.READY,), {"state": EffectState.AWAITING_APPROVAL, "reason": why})
    ]
    approval = refused.approval
    told = reason(refused.code, describe=effect.describe, stake=effect.stake, **dict(refused.facts))
    if approval is None:
        changes.append(
            open_review(
                ReviewKind.SIGNATURES_NEEDED,
                effect.pk,
                workspace=effect.workspace_id,
                run=effect.run_id,
                effect=effect.pk,
                group=effect.group_id,
                high=True,
                why=told,
                due_in=0.0,
            )
        )
    else:
        changes += _after_refusal(approval, refused.code, why)
        changes.append(review_of(approval, told, high=is_high(effect), **_due(approval, refused.code, effect)))
    changes.append(record.reckon())
    data = {**told_of(effect), **why}
    if approval is not None:
        data |= {"approval": str(approval.pk), "revision": approval.revision}
    return [Entry(EventKind.EFFECT_HELD_BACK, data, changes)]


def _precisely(effect: Effect, refused: Refused) -> Refused:
    """The refusal with its request and its own code, where the caller knew only that nothing holds."""
    if refused.approval is not None:
        return refused
    approval = _of(effect)
    if approval is None:
        return refused
    judged = _judge(effect, approval, clock.now())
    return judged if isinstance(judged, Refused) else Refused(refused.code, refused.facts, approval)


def _of(effect: Effect) -> Approval | None:
    """The request for the effect's current revision."""
    rows = Approval.objects.filter(effect_id=effect.pk, revision=effect.revision)
    return rows.select_related("group", "run").first()


def _after_refusal(approval: Approval, code: str, why: Mapping[str, Any]) -> list[Change]:
    if approval.state != ApprovalState.GRANTED:
        return []
    if code == "short_of_quorum":
        again = {"state": ApprovalState.PENDING, "granted_at": None, "execute_by": None}
        return [record.move("approval", approval.pk, (ApprovalState.GRANTED,), again)]
    ended = {"state": ApprovalState.EXPIRED, "reason": why}
    return [record.move("approval", approval.pk, (ApprovalState.GRANTED,), ended, times={"ended_at": 0})]


def _due(approval: Approval, code: str, effect: Effect) -> dict[str, Any]:
    if code == "short_of_quorum":
        return {"due_at": approval.approve_by}
    return {"due_in": registry.effect_contract(effect.operation, effect.contract_version).due_in}


def revoke(effect: Effect) -> list[Change]:
    """The changes that end an effect's request because its run ended or dropped it."""
    changes: list[Change] = []
    for approval in Approval.objects.filter(effect_id=effect.pk).order_by("revision"):
        if approval.state in OPEN:
            ended = {"state": ApprovalState.REVOKED, "reason": reason("run_dropped_it")}
            changes.append(record.move("approval", approval.pk, OPEN, ended, times={"ended_at": 0}))
        changes.append(record.close_reviews(approval.pk))
    return changes


def still_good(effect: Effect, now: datetime) -> bool:
    """Whether the same bytes may be sent again under the same key: all that a first send needs (R10)."""
    return not isinstance(check_before_send(effect, now), Refused)
