"""Claiming an item of the inbox and giving it back.

A claim is a notice, not a lock: others may act all the same.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from recovery.actions.common import Done, Locked, Plan, Subject, carry_out, who
from recovery.engine.endings import told_of
from recovery.engine.refusals import AlreadyDone, ClaimedByOther, NotClaimed
from runs.errors import NotFound
from runs.models import Person, Review
from runs.record import Act, Entry, move
from runs.states import EventKind, ReviewState


def _subject(review_id: UUID) -> Subject:
    found = Review.objects.filter(pk=review_id).values_list("workspace_id", "run_id").first()
    if found is None:
        raise NotFound
    return Subject("review", review_id, *found)


def claim(review_id: UUID, *, actor: Person, act: Act, take_over: bool = False) -> Done:
    """Say "I have this": everyone sees who and since when. Claiming one's own again starts the time anew.

    ``take_over``: knowingly take what somebody else has. Raises ClaimedByOther (who, since when), AlreadyDone
    when the item is closed, and what ``carry_out`` raises.
    """

    def plan(at: Locked) -> Plan:
        review = _open(review_id)
        before = review.claimed_by
        if before is not None and before.pk != actor.pk and not take_over:
            since = review.claimed_at.isoformat() if review.claimed_at else None
            raise ClaimedByOther(who=before.name, at=since, review=str(review.pk))
        facts = {**_told(review), "by": who(actor), "from": None if before is None else before.name}
        change = move("review", review.pk, (ReviewState.OPEN,), {"claimed_by_id": actor.pk}, times={"claimed_at": 0})
        return Plan([Entry(EventKind.REVIEW_CLAIMED, facts, [change])], facts)

    return carry_out(_subject(review_id), "claim", plan, actor=actor, act=act, reason=None)


def release(review_id: UUID, *, actor: Person, act: Act) -> Done:
    """Give one's own claim back. Raises NotClaimed, AlreadyDone when the item is closed."""

    def plan(at: Locked) -> Plan:
        review = _open(review_id)
        if review.claimed_by_id != actor.pk:
            raise NotClaimed(who=None if review.claimed_by is None else review.claimed_by.name)
        facts = {**_told(review), "by": who(actor)}
        given = {"claimed_by_id": None, "claimed_at": None}
        return Plan(
            [Entry(EventKind.REVIEW_RELEASED, facts, [move("review", review.pk, (ReviewState.OPEN,), given)])],
            facts,
        )

    return carry_out(_subject(review_id), "claim", plan, actor=actor, act=act, reason=None)


def _open(review_id: UUID) -> Review:
    review = Review.objects.select_related("claimed_by", "effect").get(pk=review_id)
    if review.state != ReviewState.OPEN:
        closed = review.closed_at.isoformat() if review.closed_at else None
        raise AlreadyDone(what="closed", at=closed, review=str(review.pk))
    return review


def _told(review: Review) -> dict[str, Any]:
    effect = {} if review.effect is None else told_of(review.effect)
    return {**effect, "review": str(review.pk), "kind": review.kind, "subject": str(review.subject)}
