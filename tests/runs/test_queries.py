"""The lists: order, pages, search, counts, and what one workspace never sees of another (invariant 14)."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import FieldFetchBlocked
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs import access, clock, queries
from runs.errors import NotFound
from runs.models import Attempt, Run
from runs.states import EffectState, RunState
from tests.runs import make
from tests.runs.lists import asked, sign, walk
from tests.runs.make import World


def neighbour(world: World) -> World:
    """The same world seen from the other workspace."""
    return World(
        workspace=world.other,
        other=world.workspace,
        person=world.second,
        second=world.person,
        group=world.group,
        dependency=world.other_dependency,
        other_dependency=world.dependency,
        worker=world.worker,
    )


@pytest.fixture
def seen(world: World) -> World:
    """``person`` is on call here, ``second`` only in the other workspace."""
    access.grant(world.person, world.workspace, ["on-call"])
    access.grant(world.second, world.other, ["on-call", "approver"])
    return world


def ids(page: Any) -> list[UUID]:
    return [row.run.pk for row in page.items]


def test_runs_come_newest_first_and_pages_meet_without_gap_or_repeat(world: World) -> None:
    made = [make.run_in(world, RunState.RUNNING).pk for _ in range(7)]
    rows = walk(lambda cursor: queries.runs_page(world.ws, cursor=cursor, limit=3))
    assert [row.run.pk for row in rows] == made[::-1]


def test_a_run_that_starts_while_paging_moves_no_row(world: World) -> None:
    made = [make.run_in(world, RunState.RUNNING).pk for _ in range(4)]
    first = queries.runs_page(world.ws, limit=2)
    make.run_in(world, RunState.RUNNING)
    second = queries.runs_page(world.ws, cursor=first.next, limit=2)
    assert ids(first) + ids(second) == made[::-1]


def test_the_list_takes_two_queries_whatever_it_holds_and_counts_effects_by_state(world: World) -> None:
    for _ in range(5):
        run = make.run_in(world, RunState.WAITING)
        make.effect_in(world, run.pk, EffectState.UNKNOWN)
        make.effect_in(world, run.pk, EffectState.READY)
        make.effect_in(world, run.pk, EffectState.READY)
    with CaptureQueriesContext(connection) as seen:
        page = queries.runs_page(world.ws)
        assert [row.run.workspace.slug for row in page.items] == ["acme-pay"] * 5
    assert len(seen) == 2
    assert page.items[0].effects == {EffectState.READY: 2, EffectState.UNKNOWN: 1}


def test_what_the_list_did_not_load_raises_instead_of_querying(world: World) -> None:
    make.run_in(world, RunState.CANCELLING, cancel_by=world.person)
    (row,) = queries.runs_page(world.ws).items
    with pytest.raises(FieldFetchBlocked):
        _ = row.run.cancel_by


def test_runs_are_filtered_by_state_type_and_what_they_wait_on(world: World) -> None:
    running = make.run_in(world, RunState.RUNNING)
    waiting = make.run_in(world, RunState.WAITING)
    Run.objects.filter(pk=waiting.pk).update(type="notices.send")
    assert ids(queries.runs_page(world.ws, states=["running"])) == [running.pk]
    assert ids(queries.runs_page(world.ws, types=["notices.send"])) == [waiting.pk]
    assert ids(queries.runs_page(world.ws, waiting_on=["timer"])) == [waiting.pk]
    assert ids(queries.runs_page(world.ws, waiting_on=["approval"])) == []
    assert queries.runs_count(world.ws, states=["running", "waiting"]).n == 2
    assert queries.run_types(world.ws) == ["notices.send", "orders.cancel"]


@pytest.mark.parametrize(
    "written",
    [
        lambda pk: str(pk),
        lambda pk: pk.hex.upper(),
        lambda pk: pk.hex[-8:],
        lambda pk: f" {pk.hex[-8:-4]}-{pk.hex[-4:]} ",
        lambda pk: "A-10427",
    ],
)
def test_search_finds_whole_ids_last_digits_and_references(world: World, written: Callable[[UUID], str]) -> None:
    run = make.run_in(world, RunState.RUNNING, references=["A-10427", "ch_3QK9"])
    make.run_in(world, RunState.RUNNING, references=["A-10428"])
    there = neighbour(world)
    make.run_in(there, RunState.RUNNING, references=["A-10427"])
    assert ids(queries.runs_page(world.ws, q=written(run.pk))) == [run.pk]
    assert queries.runs_count(world.ws, q=written(run.pk)).n == 1


@pytest.mark.parametrize("q", ["A-1042", "nothing", "x" * 500, "a\x00b", "8f3c", str(uuid4())])
def test_search_that_matches_nothing_says_so(world: World, q: str) -> None:
    make.run_in(world, RunState.RUNNING, references=["A-10427"])
    assert ids(queries.runs_page(world.ws, q=q)) == []


def test_counting_stops_at_its_bound_and_says_when_it_was(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from runs.queries import lists, paging

    monkeypatch.setattr(lists, "MOST_COUNTED", 2)
    monkeypatch.setattr(paging, "MOST_COUNTED", 2)
    for _ in range(2):
        make.run_in(world, RunState.RUNNING)
    assert (queries.runs_count(world.ws).n, queries.runs_count(world.ws).capped) == (2, False)
    make.run_in(world, RunState.RUNNING)
    found = queries.runs_count(world.ws)
    assert (found.n, found.capped) == (2, True)
    assert clock.now() - found.at < timedelta(seconds=5)


@pytest.mark.parametrize(
    "text", ["x", "!!!", "bnVsbA", queries.encode("inbox", queries.Cursor((1,))), "A" * 900, "W10"]
)
def test_a_cursor_of_another_list_or_of_nobody_is_refused(world: World, text: str) -> None:
    with pytest.raises(queries.BadCursor):
        queries.runs_page(world.ws, cursor=text)


def test_nothing_of_the_neighbour_is_seen_foreign_and_missing_alike(seen: World) -> None:
    """Invariant 14."""
    there = neighbour(seen)
    run = make.run_in(there, RunState.WAITING)
    effect = make.effect_in(there, run.pk, EffectState.UNKNOWN)
    assert ids(queries.runs_page(seen.ws)) == []
    assert queries.runs_count(seen.ws).n == 0
    assert queries.run_types(seen.ws) == []
    assert queries.effect_counts(seen.ws, [run.pk]) == {}
    assert queries.being_checked(seen.ws).count.n == 0
    looks: list[Callable[[UUID], Any]] = [
        lambda id: queries.visible_run(seen.person, id),
        lambda id: queries.visible_effect(seen.person, id),
        lambda id: queries.visible_approval(seen.person, id),
        lambda id: queries.visible_verdict(seen.person, id),
        lambda id: queries.visible_review(seen.person, id),
        lambda id: queries.run_detail(seen.person, id),
        lambda id: queries.effect_detail(seen.person, id),
        lambda id: queries.approval_detail(seen.person, id),
    ]
    for look in looks:
        told = []
        for id in (run.pk, effect.pk, uuid4()):
            with CaptureQueriesContext(connection) as asked, pytest.raises(NotFound) as refused:
                look(id)
            told.append((str(refused.value), len(asked)))
        assert len(set(told)) == 1, "foreign and missing differ"
    assert queries.visible_run(seen.second, run.pk) == run
    with pytest.raises(NotFound):
        queries.visible_run(seen.second, run.pk, within=seen.ws)
    with pytest.raises(NotFound):
        queries.visible_workspace(seen.person, "other-pay")


def test_an_account_that_is_not_active_sees_nothing(seen: World) -> None:
    run = make.run_in(seen, RunState.RUNNING)
    assert queries.visible_run(seen.person, run.pk) == run
    seen.person.is_active = False
    seen.person.save()
    with pytest.raises(NotFound):
        queries.visible_run(seen.person, run.pk)


def test_the_approval_page_brings_signatures_and_the_revision_before(seen: World) -> None:
    old = asked(seen, state="superseded")
    new = asked(seen, revision=2, effect=old.effect)
    sign(new, seen.second)
    detail = queries.approval_detail(seen.person, new.pk)
    assert (detail.previous, detail.newest) == (old, new)
    assert [signature.person.name for signature in detail.standing] == ["Approver B"]
    before = queries.approval_detail(seen.person, old.pk)
    assert (before.previous, before.newest) == (None, new)


def test_the_run_page_costs_the_same_for_one_effect_and_for_ten(seen: World) -> None:
    run = make.accept(seen)
    make.leased(seen, run)

    def cost() -> int:
        with CaptureQueriesContext(connection) as asked:
            detail = queries.run_detail(seen.person, run)
            for effect in detail.effects:
                assert effect.dependency.name and effect.run == detail.run
                assert len(effect.attempt_set.all()) == 1
                assert list(effect.evidence.all()) == []
                assert [approval.signatures.all() for approval in effect.approvals.all()] == []
        return len(asked)

    def one_more() -> None:
        effect = make.effect_in(seen, run, EffectState.IN_FLIGHT)
        Attempt.objects.create(**make.attempt_row(seen, run, effect.pk))

    one_more()
    one = cost()
    for _ in range(9):
        one_more()
    assert cost() == one
    detail = queries.run_detail(seen.person, run)
    assert len(detail.effects) == 10 and not detail.more_effects
    assert [c.seq for c in detail.checkpoints] == [1]
    assert "sealed" in detail.checkpoints[0].get_deferred_fields()


def test_events_page_by_sequence_both_ways(seen: World) -> None:
    run = make.accept(seen)
    make.leased(seen, run)
    for _ in range(6):
        make.write(seen, run)
    row = Run.objects.get(pk=run)
    last = queries.events_page(row, limit=3)
    assert [event.seq for event in last.items] == [6, 7, 8]
    assert (last.earlier, last.later) == (6, None)
    before = queries.events_page(row, before=last.earlier, limit=3)
    assert [event.seq for event in before.items] == [3, 4, 5]
    assert (before.earlier, before.later) == (3, 5)
    first = queries.events_page(row, after=0, limit=5)
    assert [event.seq for event in first.items] == [1, 2, 3, 4, 5]
    assert (first.earlier, first.later) == (None, 5)
    rest = queries.events_page(row, after=5, limit=5)
    assert [event.seq for event in rest.items] == [6, 7, 8]
    assert (rest.earlier, rest.later) == (6, None)
    assert rest.items[0].body["seq"] == 6


def test_effects_of_a_run_page_in_the_order_they_were_asked_for(world: World) -> None:
    run = make.run_in(world, RunState.RUNNING)
    made = [make.effect_in(world, run.pk, EffectState.READY).pk for _ in range(5)]
    make.effect_in(world, make.run_in(world, RunState.RUNNING).pk, EffectState.READY)
    rows = walk(lambda cursor: queries.effects_page(run, cursor=cursor, limit=2))
    assert [effect.pk for effect in rows] == made


def test_a_cursor_with_a_number_without_end_is_refused(world: World) -> None:
    """``1e400`` is JSON and no whole number."""
    text = base64.urlsafe_b64encode(b'["effects","n","",1e400]').decode()
    with pytest.raises(queries.BadCursor):
        queries.effects_page(make.run_in(world, "accepted"), cursor=text)


@pytest.mark.parametrize(
    "text", ["2026-12-01T10:00:00", "2026", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"]
)
def test_an_instant_from_outside_has_its_offset_and_lies_within_the_calendar(text: str) -> None:
    """What every zone can show; anything else breaks the query or the page that reads it."""
    with pytest.raises(ValueError, match="."):
        queries.moment(text)
    assert queries.moment("2026-12-01T18:00:00+08:00").isoformat() == "2026-12-01T10:00:00+00:00"
