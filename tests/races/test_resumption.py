"""Two people at once at a run that the checks have stopped, or at one in quarantine: whoever comes second sees what the
first one did (invariants 13 and 15).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from recovery.actions import quarantine, resumption
from recovery.actions import runs as actions
from recovery.actions.common import Done
from recovery.engine.changes import open_review
from recovery.engine.changes import reason as why_of
from recovery.engine.refusals import NotAsked, NotQuarantined
from runs import record
from runs.models import Run
from runs.states import EventKind, ReviewKind, RunState, WaitingOn
from tests.databases import FreshDatabase
from tests.races.test_decisions import ORDERS, pool, race, s
from tests.recovery.stage import Stage, act

__all__ = ["pool", "s"]


def asked(s: Stage) -> UUID:
    """A run that waits for a person, with its question."""
    run = s.run()
    why = why_of("checks_ask", checks=["identity_and_approvals"], report="d")
    review = open_review(ReviewKind.RESUMPTION, run, workspace=s.here.pk, run=run, why=why, due_in=60)
    s.write(run, record.run_moves({"waiting_on": WaitingOn.PERSON, "gate": [why]}), review)
    return run


def answer(way: Callable[..., Done], run: UUID, s: Stage) -> Callable[[], Any]:
    return lambda: way(run, actor=s.oncall_g, act=act("resumption"), reason="r", report="d")


@pytest.mark.parametrize("way", ["go_on", "do_not_go_on"])
@ORDERS
def test_two_answers(s: Stage, pool: ThreadPoolExecutor, fresh_db: FreshDatabase, order: str, way: str) -> None:
    """One counts; the other is told that nothing is asked any more."""
    run = asked(s)
    other = answer(getattr(resumption, way), run, s)
    first, second = race(pool, fresh_db, run, answer(resumption.go_on, run, s), other, order)
    one, late = (first, second) if order == "first" else (second, first)
    assert isinstance(one, Done) and isinstance(late, NotAsked)
    row = Run.objects.get(pk=run)
    went_on = one.facts["answer"] == "go_on"
    assert (row.state, row.answered is not None) == (RunState.WAITING if went_on else RunState.CANCELLING, went_on)
    s.sound(run)


@ORDERS
def test_an_answer_and_a_cancellation(s: Stage, pool: ThreadPoolExecutor, fresh_db: FreshDatabase, order: str) -> None:
    """A cancellation always counts; an answer after it is told that nothing is asked."""
    run = asked(s)

    def cancel() -> Done:
        return actions.cancel(run, actor=s.oncall_a, act=act("cancel"), reason="r")

    told, cancelled = race(pool, fresh_db, run, answer(resumption.go_on, run, s), cancel, order)
    assert isinstance(cancelled, Done)
    assert isinstance(told, Done if order == "first" else NotAsked)
    assert Run.objects.get(pk=run).state == RunState.CANCELLING
    s.sound(run)


@ORDERS
def test_two_who_take_it_out_of_quarantine(
    s: Stage, pool: ThreadPoolExecutor, fresh_db: FreshDatabase, order: str
) -> None:
    """Once; its tries begin anew once."""
    run = s.run()
    s.write(run, record.run_moves({"state": RunState.QUARANTINED, "waiting_on": ""}), kind=EventKind.RUN_QUARANTINED)
    version = Run.objects.get(pk=run).version

    def release() -> Done:
        return quarantine.release(run, actor=s.oncall_g, act=act("release"), reason="r", version=version)

    outcomes = race(pool, fresh_db, run, release, release, order)
    assert sorted(type(one).__name__ for one in outcomes) == ["Done", "NotQuarantined"]
    assert NotQuarantined in {type(one) for one in outcomes}
    s.sound(run)
