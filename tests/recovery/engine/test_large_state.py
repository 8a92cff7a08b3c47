"""A run with a large state writes what changed, and another worker goes on from it."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from recovery import failpoints
from recovery.engine.session import Session
from runs.models import Checkpoint
from runs.states import RunState
from tests.recovery.engine.world import World
from tests.recovery.stage import later
from tests.runs.make import forget
from tests.runs.test_checkpoint_deltas import history


def bases(run: UUID) -> list[int | None]:
    return list(Checkpoint.objects.filter(run_id=run).order_by("seq").values_list("base", flat=True))


def test_each_transition_stores_what_changed(w: World) -> None:
    messages = history(100_000)
    run = w.accept("test.chain", "pay", "pay", "pay", strange=messages)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    first, *rest = Checkpoint.objects.filter(run_id=run).order_by("seq")
    assert first.base is None and first.size > 20_000
    assert [row.base for row in rest] == [1] * len(rest) and len(rest) >= 3
    assert max(row.size for row in rest) < 2_000
    assert len(w.heard(run)) == 3


def test_another_worker_goes_on_with_deltas_of_the_same_base(w: World) -> None:
    """From PostgreSQL alone: what the first process remembered is gone."""
    run = w.accept("test.short", "pay", "pay", "pay", "pay", strange=history(100_000))
    other = w.worker()
    while w.run(run).state != RunState.COMPLETED:
        forget(run)
        with w.as_worker(other):
            w.advance(run)
        w.pass_once()
    assert set(bases(run)) == {None, 1}
    assert json.dumps(w.heard(run)) == json.dumps(["succeeded"] * 4)


def test_a_checkpoint_that_was_not_committed_is_no_base(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit fails after the bytes were made; the next one must not rest on them."""
    run = w.accept("test.chain", "pay", "pay", strange=history(100_000))
    Checkpoint.objects.filter(run_id=run).update(size=1)  # so small a full one that no delta of it pays
    seen: list[tuple[int, Any]] = []
    real = Session.commit

    def commit(self: Session, *args: Any, **more: Any) -> Any:
        before = self.memory.base
        try:
            return real(self, *args, **more)
        except failpoints.Failpoint:
            assert self.memory.base is before, "not before it is in the record"
            seen.append((int(self.run["checkpoint_seq"]), self.memory.coming))
            raise

    monkeypatch.setattr(Session, "commit", commit)
    failpoints.arm("advance.before_commit", "raise")
    with pytest.raises(failpoints.Failpoint):
        w.advance(run)
    failpoints.disarm()
    assert len(seen) == 1 and seen[0][1] is not None and seen[0][1].seq == 2
    later(minutes=1)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert bases(run)[1] is None and set(bases(run)[2:]) <= {None, 2}
