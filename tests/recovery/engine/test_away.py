"""The record is away, or its answer to a commit is lost: the worker stops, nothing is sent twice, the run goes on
with whoever is next (faults 7 to 9, 44, 45).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, connections

from recovery import failpoints
from recovery.engine import workers
from runs import record
from runs.errors import RunsError
from runs.states import AttemptState, EffectState, RunState
from tests.databases import FreshDatabase
from tests.recovery.engine.world import World

PLAN = ("pay", "slow", "mail")
COMMITS = 14
"""More than the plan needs: the last numbers break nothing, which shows that all were met."""


def break_call(monkeypatch: pytest.MonkeyPatch, n: int, *, applied: bool) -> list[int]:
    """The ``n``-th call of the writer loses its connection, before it did anything or after all of it."""
    real = record._call
    count = [0]

    def call(payload: Mapping[str, Any], sealed: Any) -> dict[str, Any]:
        count[0] += 1
        if count[0] != n:
            return real(payload, sealed)
        if applied:
            real(payload, sealed)
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(record, "_call", call)
    return count


def go_on(w: World) -> None:
    """Drive, and let what breaks break: a task that raised is rung again."""
    for _ in range(5):
        try:
            w.drive(jump=timedelta(minutes=2))
            return
        except OperationalError:
            if workers._me is None:
                # It did not know what it held; its old name falls silent, and a new one is at work.
                w.dies(w.me)
                w.me = workers._me = w.worker()
    raise AssertionError("it breaks again and again")


@pytest.mark.parametrize("applied", [True, False], ids=["applied", "not_applied"])
@pytest.mark.parametrize("n", range(1, COMMITS + 1))
def test_any_commit_whose_answer_is_lost(w: World, monkeypatch: pytest.MonkeyPatch, n: int, applied: bool) -> None:
    """Faults 7 and 8: the record decides, not what the worker believed."""
    run = w.accept("test.chain", *PLAN)
    count = break_call(monkeypatch, n, applied=applied)
    go_on(w)
    if n == COMMITS:
        assert count[0] < COMMITS, "every commit of the run was broken once"
    assert w.run(run).state == RunState.COMPLETED
    assert w.heard(run) == ["succeeded"] * len(PLAN)
    assert [w.applied(e) for e in w.effects(run)] == [1] * len(PLAN)


def test_a_connection_that_breaks_gives_the_run_back(w: World, fresh_db: FreshDatabase) -> None:
    """Fault 45: the backend is gone, the record is not. The answer that was in memory is committed by another
    connection, and the run is free.
    """
    run = w.accept("test.chain", "pay", "pay")

    def cut() -> None:
        failpoints.disarm()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (pid,) = cursor.fetchone()
        with fresh_db.connect() as other:
            other.execute("SELECT pg_terminate_backend(%s)", [pid])

    failpoints.arm("advance.before_outcome", cut)
    with pytest.raises(OperationalError):
        w.advance(run)
    row, (effect,) = w.run(run), w.effects(run)
    assert (row.lease_owner, row.tries) == (None, 0)
    assert effect.state == EffectState.SUCCEEDED
    assert w.attempts(effect)[0].state == AttemptState.ANSWERED
    w.drive(jump=timedelta(seconds=5))
    assert w.run(run).state == RunState.COMPLETED


def test_a_record_that_is_away_makes_the_worker_take_a_new_name(w: World) -> None:
    """Fault 9: it cannot give the run back, so its old name falls silent; the next owner decides from the record."""
    run = w.accept("test.chain", "pay", "pay")
    right = connections.settings["default"]["HOST"]

    def away() -> None:
        failpoints.disarm()
        connection.close()
        connection.settings_dict["HOST"] = "/nowhere"

    failpoints.arm("advance.before_outcome", away)
    try:
        with pytest.raises(OperationalError):
            w.advance(run)
    finally:
        connection.settings_dict["HOST"] = right
    assert workers._me is None, "whoever works here next is another worker"
    assert w.run(run).lease_owner == w.me.id
    workers._me = w.worker()
    assert w.advance(run) == "leased", "silence, not a wish, frees a lease"
    w.dies(w.me)
    w.drive(jump=timedelta(minutes=1))
    assert w.run(run).state == RunState.COMPLETED
    assert [w.applied(e) for e in w.effects(run)] == [1, 1]


def test_a_refusal_of_the_record_is_no_outage(w: World) -> None:
    """What the record refuses is a RunsError, with its code: nobody takes a new name for that."""
    run = w.accept("test.waiter", mode="timer")
    with pytest.raises(RunsError):
        w.s.write(run, record.run_moves({"state": RunState.COMPLETED}))
    assert workers._me is w.me
