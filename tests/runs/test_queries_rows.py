"""Rows read again by id, unsettled effects of a list, checkpoints with their digest: one workspace each."""

from __future__ import annotations

from typing import Any

from runs import queries, record
from runs.models import Checkpoint, Run
from runs.states import EffectState, EventKind, ReviewKind
from tests.runs import make


def _review(w: make.World, run: Any) -> Any:
    row = {
        "id": record.new_id(),
        "workspace_id": w.ws,
        "kind": ReviewKind.QUARANTINED,
        "subject": run,
        "run_id": run,
        "state": "open",
        "severity": "normal",
        "why": {},
    }
    make.write(w, run, record.new("review", row, {"opened_at": 0, "due_at": 60}), kind=EventKind.RUN_ADVANCED)
    return row["id"]


def test_an_item_is_read_again_also_when_it_is_closed(world: make.World) -> None:
    """A departed row stays on the page; a foreign one was never there (invariant 14)."""
    run = make.accept(world)
    review = _review(world, run)
    (row,) = queries.inbox_rows(world.ws, world.person, [review])
    assert (row.review.pk, row.review.state, row.late) == (review, "open", False)
    make.write(world, run, record.close_reviews(run))
    (row,) = queries.inbox_rows(world.ws, world.person, [review])
    assert row.review.state == "closed"
    assert queries.inbox_rows(world.other.pk, world.person, [review]) == []
    assert queries.inbox_rows(world.ws, world.person, []) == []


def test_runs_are_read_again_with_their_counts(world: make.World, django_assert_num_queries: Any) -> None:
    """Newest first, two queries, one workspace."""
    first, second = make.accept(world), make.accept(world)
    make.effect_in(world, second, EffectState.UNKNOWN)
    with django_assert_num_queries(2):
        rows = queries.run_rows(world.ws, [first, second])
    assert [row.run.pk for row in rows] == [second, first]
    assert [row.effects for row in rows] == [{EffectState.UNKNOWN: 1}, {}]
    assert queries.run_rows(world.other.pk, [first]) == []


def test_only_unsettled_effects_are_named(world: make.World, django_assert_num_queries: Any) -> None:
    """By run, in the order asked for, with their dependency: one query."""
    run = make.accept(world)
    waits, _done = (make.effect_in(world, run, s) for s in (EffectState.UNKNOWN, EffectState.SUCCEEDED))
    with django_assert_num_queries(1):
        found = queries.open_effects(world.ws, [run])
        assert [(e.pk, e.dependency.name) for e in found[run]] == [(waits.pk, "payments")]
    assert queries.open_effects(world.other.pk, [run]) == {} == queries.open_effects(world.ws, [])


def test_a_checkpoint_tells_whether_its_bytes_still_match(world: make.World, django_assert_num_queries: Any) -> None:
    """Verified by the database: one query, and no sealed byte is read."""
    run = Run.objects.get(pk=make.accept(world))
    with django_assert_num_queries(1):
        (one,) = queries.checkpoints_page(run)
    assert one.intact and "sealed" in one.get_deferred_fields()
    Checkpoint.objects.filter(pk=one.pk).update(sealed=b"x")
    assert [c.intact for c in queries.checkpoints_page(run)] == [False]
    assert queries.checkpoints_page(run, before=one.seq) == []
    Checkpoint.objects.filter(pk=one.pk).update(sealed=None, address="w/r/1-d")
    assert [c.intact for c in queries.checkpoints_page(run)] == [None]
