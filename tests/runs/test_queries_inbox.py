"""The inbox: its order, its tabs, its counts, and what Recourse still checks by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import FieldFetchBlocked
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs import access, clock, queries
from runs.models import Approval, Effect, Review, Run
from runs.states import EffectState, ReviewKind, RunState
from tests.runs import make
from tests.runs.lists import asked, sign, walk
from tests.runs.make import World


def review(world: World, effect: Effect, due: float, **fields: Any) -> Review:
    """An open review, due in ``due`` seconds."""
    now = clock.now()
    given = {"kind": ReviewKind.OUTCOME_UNKNOWN, "severity": "normal", "subject": effect.pk} | fields
    return Review.objects.create(
        workspace=world.workspace,
        run_id=effect.run_id,
        effect=effect,
        state="open",
        opened_at=now,
        due_at=now + timedelta(seconds=due),
        **given,
    )


def unknown(world: World) -> Effect:
    run = make.run_in(world, RunState.WAITING)
    return make.effect_in(world, run.pk, EffectState.UNKNOWN)


def test_the_inbox_shows_late_first_then_irreversible_then_by_due_time(world: World) -> None:
    later = review(world, unknown(world), 500)
    soon = review(world, unknown(world), 100)
    high = review(world, unknown(world), 900, severity="high")
    late = review(world, unknown(world), -10)
    late_high = review(world, unknown(world), -5, severity="high")
    rows = walk(lambda cursor: queries.inbox_page(world.ws, world.person, cursor=cursor, limit=2))
    assert [row.review.pk for row in rows] == [r.pk for r in (late_high, late, high, soon, later)]
    assert [row.late for row in rows] == [True, True, False, False, False]


def test_the_inbox_keeps_its_order_while_time_passes_between_pages(world: World) -> None:
    rows = [review(world, unknown(world), due) for due in (100, 200, 300)]
    first = queries.inbox_page(world.ws, world.person, limit=1)
    clock.shift(timedelta(seconds=250))
    second = queries.inbox_page(world.ws, world.person, cursor=first.next, limit=5)
    assert [row.review.pk for row in (*first.items, *second.items)] == [r.pk for r in rows]
    assert second.as_of == first.as_of


def test_the_inbox_is_filtered_by_view_kind_and_dependency(world: World) -> None:
    mine = review(world, unknown(world), 100, claimed_by=world.person, claimed_at=clock.now())
    free = review(world, unknown(world), 100, kind=ReviewKind.EVIDENCE_DISAGREES)

    def found(**asked: Any) -> set[UUID]:
        return {row.review.pk for row in queries.inbox_page(world.ws, world.person, **asked).items}

    assert found(view="mine") == {mine.pk}
    assert found(view="unclaimed") == {free.pk}
    assert found(view="everyone") == {mine.pk, free.pk}
    assert found(kind=["evidence_disagrees"]) == {free.pk}
    assert found(dependency=["payments"]) == {mine.pk, free.pk}
    assert found(dependency=["mail"]) == set()
    counts = queries.inbox_counts(world.ws, world.person)
    assert (counts.mine, counts.unclaimed, counts.everyone, counts.late, counts.high) == (1, 1, 2, 0, 0)
    assert queries.inbox_counts(world.other.pk, world.person).everyone == 0


def test_the_inbox_takes_a_fixed_number_of_queries_and_loads_no_payload(world: World) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as asked:
            for row in queries.inbox_page(world.ws, world.person).items:
                assert row.review.effect is not None and row.review.effect.dependency.name == "payments"
                assert row.review.run is not None and row.review.run.title
        return len(asked)

    review(world, unknown(world), 1)
    one = cost()
    for _ in range(5):
        review(world, unknown(world), 1)
    assert cost() == one
    effect = queries.inbox_page(world.ws, world.person).items[0].review.effect
    assert effect is not None
    with pytest.raises(FieldFetchBlocked):
        _ = effect.body


def test_being_checked_leaves_out_what_a_person_has_been_asked_about(world: World) -> None:
    quiet = unknown(world)
    soon = clock.now() + timedelta(minutes=10)
    Effect.objects.filter(pk=quiet.pk).update(review_at=soon, next_check_at=clock.now())
    review(world, unknown(world), 100)
    make.effect_in(world, make.run_in(world, RunState.WAITING).pk, EffectState.SUCCEEDED)
    checking = queries.being_checked(world.ws)
    assert (checking.count.n, checking.count.capped) == (1, False)
    assert checking.next_at is not None and checking.next_at > clock.now()
    rows = walk(lambda cursor: queries.being_checked_page(world.ws, cursor=cursor))
    assert [effect.pk for effect in rows] == [quiet.pk]


def test_a_request_for_signatures_counts_them_and_hints_who_can(world: World) -> None:
    """R4 as far as the row knows it: not the requester, not twice, only members who may sign."""
    access.grant(world.person, world.workspace, ["approver"])
    access.grant(world.second, world.workspace, ["approver"])
    world.group.members.add(world.person, world.second)
    approval = asked(world)
    review(world, approval.effect, 100, kind=ReviewKind.SIGNATURES_NEEDED, subject=approval.pk, approval=approval)

    def row(person: Any) -> queries.InboxRow:
        return queries.inbox_page(world.ws, person).items[0]

    assert (row(world.person).needed, row(world.person).signed) == (2, 0)
    assert not row(world.person).can_sign, "the requester"
    assert row(world.second).can_sign
    sign(approval, world.second)
    assert (row(world.second).signed, row(world.second).you_signed, row(world.second).can_sign) == (
        1,
        True,
        False,
    )


def test_whoever_started_the_run_is_not_told_that_they_can_sign(world: World) -> None:
    """R4: also where somebody else asked again."""
    access.grant(world.person, world.workspace, ["approver"])
    world.group.members.add(world.person)
    approval = asked(world)
    Approval.objects.filter(pk=approval.pk).update(requester=world.second)
    review(world, approval.effect, 100, kind=ReviewKind.SIGNATURES_NEEDED, subject=approval.pk, approval=approval)

    def can_sign() -> bool:
        return queries.inbox_page(world.ws, world.person).items[0].can_sign

    Run.objects.filter(pk=approval.run_id).update(started_by=world.second)
    assert can_sign()
    Run.objects.filter(pk=approval.run_id).update(started_by=world.person)
    assert not can_sign()


@pytest.mark.parametrize("moment", ["2026-12-01T10:00:00", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_cursor_beyond_the_calendar_is_refused(world: World, moment: str) -> None:
    """As the time of the list and as a row's due time."""
    good = "2026-12-01T10:00:00+00:00"
    for kept, due in ((moment, good), (good, moment)):
        cursor = queries.encode("inbox", queries.Cursor((1, due, uuid4()), kept=kept))
        with pytest.raises(queries.BadCursor):
            queries.inbox_page(world.ws, world.person, cursor=cursor)
