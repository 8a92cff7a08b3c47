"""A run from its acceptance to its end, in the number of transactions that was promised."""

from __future__ import annotations

import pytest
from django.db import connection

from runs.states import EventKind, RunState
from tests.recovery.engine.world import World


def transactions(run: object) -> int:
    """How many transactions wrote to the run's history; each writes at least one event."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT xmin::text) FROM runs_event WHERE run_id = %s", [run])
        return int(cursor.fetchone()[0])


@pytest.mark.parametrize("n", [1, 10])
def test_n_effects_in_a_row_cost_n_plus_two_writing_transactions(w: World, n: int) -> None:
    """DESIGN section 5: the lease, the first intent, and one for each outcome. The accept is the client's."""
    run = w.accept("test.chain", *["pay"] * n)
    assert transactions(run) == 1
    assert w.advance(run) == "completed"
    assert transactions(run) == 1 + n + 2
    assert [w.applied(e) for e in w.effects(run)] == [1] * n
    assert w.heard(run) == ["succeeded"] * n


def test_a_run_ends_with_how_its_effects_ended(w: World) -> None:
    """Invariant 7: the end names each effect and the evidence it rests on."""
    run = w.accept("test.many", "pay")
    w.drive()
    row, effect = w.run(run), w.effect(run)
    assert row.state == RunState.COMPLETED
    assert row.ended_how["verified"] == [str(id) for id in effect.evidence.values_list("pk", flat=True)]
    assert [e["effect"] for e in row.ended_how["effects"]] == [str(effect.pk)]


def test_an_ended_run_is_not_advanced_again(w: World) -> None:
    """Invariant 5; a doorbell is a hint, and a second one does nothing."""
    run = w.accept("test.many", "pay")
    w.drive()
    count = len(w.events(run))
    assert w.advance(run) == RunState.COMPLETED
    assert len(w.events(run)) == count


def test_a_worker_hands_the_run_back_after_its_share(w: World) -> None:
    """DESIGN section 5: up to so many transitions, then others have their turn; nothing is lost or repeated."""
    run = w.accept("test.short", *["pay"] * 5)
    assert w.advance(run) == "handed back"
    assert w.run(run).lease_owner is None
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert len(w.events(run, EventKind.RUN_LEASED)) == 3
    assert [w.applied(e) for e in w.effects(run)] == [1] * 5
