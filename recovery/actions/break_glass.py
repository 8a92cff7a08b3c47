"""Break-glass for signatures: what was asked for is sent without them, and a second person confirms it (R13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from recovery.actions.approvals import approval_of, subject_of
from recovery.actions.common import Done, Locked, Plan, carry_out, require_run, who
from recovery.actions.seconds import require_second
from recovery.actions.signing import approval_told, refuse_unless_current, refuse_unless_open
from recovery.engine import forced
from recovery.engine.changes import reason as why_of
from recovery.engine.refusals import NothingToConfirm
from runs.errors import ApprovalEnded, ApprovalExpired, RunEnded
from runs.models import Person, Review
from runs.record import Act, Change, Entry, close_reviews, move, reckon
from runs.states import ApprovalState, EffectState, EventKind, ReviewKind, ReviewState, RunState


def override(approval_id: UUID, *, actor: Person, act: Act, reason: str, digest: str, saw: Mapping[str, Any]) -> Done:
    """Let the effect be sent without the signatures that its request still lacks.

    Needs ``override``; the only thing it stands for is the quorum: digest, deadlines and epoch hold as ever, and one
    that ran out is asked for again first. ``saw``: what was shown. Raises Superseded, StaleVersion, ApprovalExpired,
    ApprovalEnded, TooLate, RunEnded, ReasonNeeded, NotAllowed.
    """

    def plan(at: Locked) -> Plan:
        approval, run = approval_of(approval_id), require_run(at)
        refuse_unless_current(approval, digest)
        lacks = approval.state == ApprovalState.UNSATISFIABLE
        if not lacks:
            refuse_unless_open(approval, run, at.now, to="sign")
        if run.ended:
            raise RunEnded(at=run.ended_at.isoformat() if run.ended_at else None)
        if run.state == RunState.CANCELLING:
            raise ApprovalEnded(state=str(approval.state), **approval_told(approval))
        if at.now >= approval.approve_by:
            raise ApprovalExpired(at=approval.approve_by.isoformat(), clock="approve_by")
        effect, by = approval.effect, who(actor)
        changes: list[Change] = []
        if lacks:
            changes.append(move("approval", approval.pk, [approval.state], {"state": ApprovalState.PENDING}))
        granted = {"state": ApprovalState.GRANTED, "overridden_by_id": actor.pk}
        times = {"granted_at": 0.0, "overridden_at": 0.0, "execute_by": float(approval.execute_within)}
        ready = {"state": EffectState.READY, "reason": why_of("overridden", by=actor.name, approval=str(approval.pk))}
        changes += [
            move("approval", approval.pk, [ApprovalState.PENDING], granted, times=times),
            move("effect", effect.pk, [EffectState.AWAITING_APPROVAL], ready, times={"not_before": 0}),
            close_reviews(approval.pk),
            forced.broken_glass(
                run, "overridden", by, reason, subject=approval.pk, approval=approval.pk, effect=effect.pk
            ),
            reckon(),
        ]
        facts = {**approval_told(approval), "by": by, "needed": approval.needed}
        shown = {**saw, "digest": approval.digest, "body": approval.body, "revision": approval.revision}
        return Plan(
            [Entry(EventKind.APPROVAL_OVERRIDDEN, {**facts, "saw": shown}, changes)],
            facts,
            before=approval.approve_by,
            over=ApprovalExpired(at=approval.approve_by.isoformat(), clock="approve_by"),
        )

    return carry_out(subject_of(approval_id), "override", plan, actor=actor, act=act, reason=reason)


def confirm_override(approval_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """A second person confirms that sending without signatures was right; whoever broke the glass cannot.

    Another person of another owner, with ``confirm``, ``sign`` or ``override``. Raises NothingToConfirm, SamePerson,
    NotAllowed, ReasonNeeded. Late is recorded as late.
    """

    def plan(at: Locked) -> Plan:
        approval, person = approval_of(approval_id), Person.objects.get(pk=actor.pk)
        open_one = Review.objects.filter(
            subject=approval.pk, run_id=approval.run_id, kind=ReviewKind.BREAK_GLASS, state=ReviewState.OPEN
        )
        review = open_one.first()
        if review is None:
            raise NothingToConfirm
        first = Person.objects.get(pk=review.why["facts"]["person"])
        require_second(approval.workspace_id, person, first, ("confirm", "sign", "override"))
        late = at.now > review.due_at
        facts = {**approval_told(approval), "by": who(person), "broken_by": who(first), "late": late}
        closing = close_reviews(approval.pk, [ReviewKind.BREAK_GLASS])
        return Plan([Entry(EventKind.APPROVAL_OVERRIDE_CONFIRMED, facts, [closing])], facts)

    return carry_out(subject_of(approval_id), "see", plan, actor=actor, act=act, reason=reason)
