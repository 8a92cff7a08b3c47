"""Claiming is a notice, not a lock: it changes no version and counts once (invariant 15)."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import transaction

from recovery.actions import reviews as actions
from recovery.actions import verdicts
from recovery.engine.refusals import AlreadyDone, ClaimedByOther, NotClaimed
from runs import errors, record
from runs.models import Effect, Event, Review, Run
from runs.record import Act
from runs.states import EventKind
from tests.recovery.stage import Stage, act, later, stage


@pytest.fixture
def s(db: None) -> Stage:
    return stage()


@pytest.fixture
def review(s: Stage) -> Review:
    return Review.objects.get(effect=s.unknown())


def test_a_claim_says_who_and_since_when(s: Stage, review: Review) -> None:
    versions = (Run.objects.get().version, Effect.objects.get().version)
    done = actions.claim(review.pk, actor=s.oncall_a, act=act())
    review.refresh_from_db()
    assert (review.claimed_by, review.claimed_at) == (s.oncall_a, done.at)
    event = Event.objects.get(run_id=review.run_id, seq=done.event)
    assert (event.kind, event.actor, event.data["by"]["name"]) == (
        EventKind.REVIEW_CLAIMED,
        s.oncall_a,
        "Oncall A",
    )
    assert event.data["stake"]["amount"] == 8400
    assert (Run.objects.get().version, Effect.objects.get().version) == versions
    s.sound(review.run_id)


def test_a_claim_stops_nobody(s: Stage, review: Review) -> None:
    actions.claim(review.pk, actor=s.oncall_a, act=act())
    effect = Effect.objects.get()
    ticked = s.evidence(effect, "happened")
    effect.refresh_from_db()
    verdicts.record(
        effect.pk,
        actor=s.oncall_g,
        act=act(),
        says="happened",
        reason="seen",
        evidence=[ticked],
        version=effect.version,
    )
    assert Review.objects.get(pk=review.pk).state == "closed"


def test_what_somebody_has_is_taken_over_knowingly(s: Stage, review: Review) -> None:
    first = actions.claim(review.pk, actor=s.oncall_a, act=act())
    with pytest.raises(ClaimedByOther) as refused:
        actions.claim(review.pk, actor=s.oncall_g, act=act())
    assert (refused.value.facts["who"], refused.value.facts["at"]) == ("Oncall A", first.at.isoformat())
    done = actions.claim(review.pk, actor=s.oncall_g, act=act(), take_over=True)
    assert done.facts["from"] == "Oncall A"
    assert Review.objects.get(pk=review.pk).claimed_by == s.oncall_g


def test_claiming_ones_own_again_starts_the_time_anew(s: Stage, review: Review) -> None:
    first = actions.claim(review.pk, actor=s.oncall_a, act=act())
    later(minutes=30)
    assert actions.claim(review.pk, actor=s.oncall_a, act=act()).at > first.at
    review.refresh_from_db()
    assert review.claimed_at is not None
    assert review.claimed_at > first.at


def test_release_is_for_who_has_it(s: Stage, review: Review) -> None:
    with pytest.raises(NotClaimed):
        actions.release(review.pk, actor=s.oncall_a, act=act())
    actions.claim(review.pk, actor=s.oncall_a, act=act())
    with pytest.raises(NotClaimed) as refused:
        actions.release(review.pk, actor=s.oncall_g, act=act())
    assert refused.value.facts["who"] == "Oncall A"
    done = actions.release(review.pk, actor=s.oncall_a, act=act())
    review.refresh_from_db()
    assert (review.claimed_by, review.claimed_at) == (None, None)
    assert Event.objects.get(run_id=review.run_id, seq=done.event).kind == EventKind.REVIEW_RELEASED


def test_who_may_claim(s: Stage, review: Review) -> None:
    before = s.counts()
    with pytest.raises(errors.NotAllowed):
        actions.claim(review.pk, actor=s.auditor_d, act=act())
    with pytest.raises(errors.NotFound):
        actions.claim(review.pk, actor=s.outsider_e, act=act())
    with pytest.raises(errors.NotFound):
        actions.claim(uuid4(), actor=s.oncall_a, act=act())
    assert s.counts() == before
    assert [line["code"] for line in s.refusals()] == ["not_allowed"]


def test_what_is_closed_is_not_claimed(s: Stage, review: Review) -> None:
    s.write(review.run_id, record.close_reviews(review.subject))
    for what in (actions.claim, actions.release):
        with pytest.raises(AlreadyDone):
            what(review.pk, actor=s.oncall_a, act=act())


def test_the_same_act_twice_counts_once(s: Stage, review: Review) -> None:
    how: Act = act("claim")
    first = actions.claim(review.pk, actor=s.oncall_a, act=how)
    after = s.counts()
    again = actions.claim(review.pk, actor=s.oncall_a, act=how)
    assert (again.replayed, again.event) == (True, first.event)
    assert s.counts() == after


def test_a_rollback_leaves_nothing(s: Stage, review: Review) -> None:
    before = s.counts()

    class Later(Exception):
        pass

    with pytest.raises(Later), transaction.atomic():
        actions.claim(review.pk, actor=s.oncall_a, act=act())
        raise Later
    assert s.counts() == before
    assert Review.objects.get(pk=review.pk).claimed_by is None
