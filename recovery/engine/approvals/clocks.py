"""What the sweep does about requests: end what is over (R6), follow people who come and go (R14)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from recovery import failpoints
from recovery.contract import registry
from recovery.contract.errors import UnknownOperation
from recovery.engine.approvals.asking import review_of
from recovery.engine.approvals.quorum import Rule, rule_of, rules_of, standing
from recovery.engine.approvals.sending import grant
from recovery.engine.changes import is_high, reason
from recovery.engine.endings import told_of
from runs import record
from runs.errors import LostRace, RunsError
from runs.models import Approval, Effect, Run, Signature
from runs.record import Change, Commit, Entry
from runs.states import ApprovalState, EffectState, EventKind

log = logging.getLogger("recourse.approvals")

_CHUNK = 200


def expire_due(now: datetime, limit: int) -> int:
    """End requests whose time to sign or to send is over at ``now``; returns how many (at most ``limit``).

    ``now >= t`` is over. Their effects stay: they wait for a renewal, with a review. Each is judged again
    under its run's lock; what moved meanwhile is left alone.
    """
    over = Q(state__in=_SIGNING, approve_by__lte=now) | Q(state=ApprovalState.GRANTED, execute_by__lte=now)
    due = list(Approval.objects.filter(over).order_by("id").values_list("pk", "run_id")[:limit])
    return sum(_under_lock(pk, run, lambda a: _expire(a, now)) for pk, run in due)


_SIGNING = (ApprovalState.PENDING, ApprovalState.UNSATISFIABLE)


def _expire(approval: Approval, now: datetime) -> Entry | None:
    signing = approval.state in _SIGNING
    until = approval.approve_by if signing else approval.execute_by
    if until is None or until > now or not (signing or approval.state == ApprovalState.GRANTED):
        return None
    effect = approval.effect
    facts = {"at": until.isoformat(), "clock": "approve_by" if signing else "execute_by"}
    why = reason("approval_expired", **facts)
    ended = {"state": ApprovalState.EXPIRED, "reason": why}
    changes: list[Change] = [
        record.move("approval", approval.pk, (approval.state,), ended, times={"ended_at": 0}),
        record.close_reviews(approval.pk),
    ]
    if approval.state == ApprovalState.GRANTED:
        held = {"state": EffectState.AWAITING_APPROVAL, "reason": why}
        changes.append(record.move("effect", effect.pk, (EffectState.READY,), held))
    told = reason("approval_expired", describe=effect.describe, stake=effect.stake, **facts)
    changes.append(review_of(approval, told, high=is_high(effect), due_in=_due_in(effect)))
    changes.append(record.reckon())
    return Entry(EventKind.APPROVAL_EXPIRED, _told(approval, **facts), changes)


def reevaluate(now: datetime, limit: int) -> int:
    """Follow changes of people: a request that nobody can meet any more says so, one that can be met again
    asks again, and one whose standing signatures are enough again is granted (R5).

    Reads all open requests in pages, a few queries each; changes at most ``limit``, returns how many.
    """
    changed, last = 0, None
    while changed < limit:
        page = Approval.objects.filter(state__in=_SIGNING, approve_by__gt=now).select_related("group", "run")
        if last is not None:
            page = page.filter(pk__gt=last)
        rows = list(page.order_by("pk").prefetch_related("signatures")[:_CHUNK])
        for approval, rule in zip(rows, rules_of(rows), strict=True):
            if changed < limit and _other_state(approval, rule, approval.signatures.all()) is not None:
                changed += _under_lock(approval.pk, approval.run_id, _reevaluate)
        if len(rows) < _CHUNK:
            break
        last = rows[-1].pk
    return changed


def _other_state(approval: Approval, rule: Rule, signed: Iterable[Signature]) -> ApprovalState | None:
    """The state this request should be in, if it is another one. ``signed``: all its signatures.

    Enough standing signatures whose signers may sign now grant it: a right that was taken and given back makes nobody
    sign twice. One that nobody could meet goes to pending first: the next look grants it.
    """
    if approval.state not in _SIGNING:
        return None
    if approval.state == ApprovalState.PENDING and len(rule.good(signed)) >= approval.needed:
        return ApprovalState.GRANTED
    should = ApprovalState.PENDING if rule.can_be_met() else ApprovalState.UNSATISFIABLE
    return None if should == approval.state else should


def _reevaluate(approval: Approval) -> Entry | None:
    rule = rule_of(approval)
    should = _other_state(approval, rule, standing(approval))
    if should is None:
        return None
    if should == ApprovalState.GRANTED:
        good = len(rule.good(standing(approval)))
        facts = {"needed": approval.needed, "signed": good, "code": "standing_signatures"}
        return Entry(EventKind.APPROVAL_GRANTED, _told(approval, **facts), grant(approval, approval.effect))
    effect, unmet = approval.effect, should == ApprovalState.UNSATISFIABLE
    facts = {
        "needed": approval.needed,
        "eligible": rule.how_many(),
        "group": approval.group.slug,
    }
    why = reason("no_quorum", **facts) if unmet else None
    told = reason(
        "no_quorum" if unmet else "signatures_needed",
        describe=effect.describe,
        stake=effect.stake,
        revision=approval.revision,
        **facts,
    )
    changes = [
        record.move("approval", approval.pk, _SIGNING, {"state": should, "reason": why}),
        record.close_reviews(approval.pk),
        review_of(approval, told, high=unmet or is_high(effect), due_at=approval.approve_by),
    ]
    kind = EventKind.APPROVAL_VOIDED if unmet else EventKind.APPROVAL_ASKED
    return Entry(kind, _told(approval, code="no_quorum" if unmet else "can_be_met_again", **facts), changes)


def _under_lock(pk: UUID, run: UUID, judge: Callable[[Approval], Entry | None]) -> int:
    """Judge one request again under its run's lock and commit what comes of it; 1 if something did."""
    try:
        with transaction.atomic():
            Run.objects.select_for_update(no_key=True).get(pk=run)
            approval = Approval.objects.select_related("effect", "group", "run").get(pk=pk)
            entry = judge(approval)
            if entry is None:
                return 0
            failpoints.hit("request.before_write")
            record.commit(Commit(approval.workspace_id, approval.run_id, [entry]))
            failpoints.hit("request.before_commit")
    except LostRace:
        # The effect is not where this request left it: its own commit says what follows.
        return 0
    except RunsError:
        # One request that cannot be ended must not keep those behind it open.
        log.exception("request %s cannot be judged", pk)
        return 0
    failpoints.hit("request.after_commit")
    return 1


def _told(approval: Approval, **facts: Any) -> dict[str, Any]:
    return {**told_of(approval.effect), "approval": str(approval.pk), "revision": approval.revision, **facts}


def _due_in(effect: Effect) -> timedelta:
    try:
        return registry.effect_contract(effect.operation, effect.contract_version).due_in
    except UnknownOperation:
        # Its contract is not in this code: nothing says how long a person has, so it is due at once.
        return timedelta(0)
