"""A pause against a claim, a cancellation against a child's start, two people at one run: who is first decides."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from recovery import failpoints
from recovery.actions import pauses
from recovery.actions.common import Done
from runs import errors
from runs.models import Run
from runs.states import EffectState, EventKind, RunState, Scope
from tests.databases import FreshDatabase
from tests.races.test_engine import both, pool
from tests.recovery.engine.fixtures import w
from tests.recovery.engine.world import World
from tests.recovery.stage import act

__all__ = ["pool", "w"]


def pause(w: World, run: UUID, scope: Scope = Scope.RUN) -> Done:
    return pauses.pause(run, actor=w.s.oncall_a, act=act("pause"), reason="an outage", scope=scope)


def resume(w: World, run: UUID) -> Done:
    return pauses.resume(run, actor=w.s.oncall_g, act=act("resume"), reason="over")


def test_a_pause_before_a_claim(w: World, fresh_db: FreshDatabase, pool: ThreadPoolExecutor) -> None:
    """The pause holds the row first: the claim finds it and nothing is sent; after it, it is sent once."""
    run = w.accept("test.many", "slow")
    w.advance(run)
    effect = w.effect(run)
    _, came = both(fresh_db, pool, run, lambda: pause(w, run), lambda: w.dispatch(effect))
    assert came in ("another was first", "run_paused")
    assert w.sandbox.requests() == []
    w.drive()
    resume(w, run)
    w.drive()
    assert (w.run(run).state, len(w.sandbox.requests())) == (RunState.COMPLETED, 1)


def test_a_claim_before_a_pause(w: World, fresh_db: FreshDatabase, pool: ThreadPoolExecutor) -> None:
    """What was claimed first is sent and settled; the run is paused after it (fault 34, with a pause)."""
    run = w.accept("test.many", "slow")
    w.advance(run)
    effect = w.effect(run)
    came, _ = both(fresh_db, pool, run, lambda: w.dispatch(effect), lambda: pause(w, run))
    assert came == EffectState.SUCCEEDED
    w.drive()
    assert (w.run(run).state, w.effect(run).state) == (RunState.PAUSED, EffectState.SUCCEEDED)
    assert w.heard(run) == []


def test_a_cancellation_before_a_child_is_started(w: World) -> None:
    """The owner has called the step and not committed it: no child comes into being."""
    run = w.accept("test.parent", input={"what": [("pay", "ch_a")]})
    failpoints.arm("advance.after_step", lambda: w.cancel(run))
    assert w.advance(run) == "cancelled"
    assert Run.objects.filter(parent_id=run).count() == 0
    assert w.events(run, EventKind.RUN_CHILD_STARTED) == []


def test_a_cancellation_after_a_child_is_started(w: World, fresh_db: FreshDatabase, pool: ThreadPoolExecutor) -> None:
    """Both wait at the parent's row, the start first: the child exists, and is cancelled with it."""
    run = w.accept("test.parent", input={"what": [("slow", "ch_a")]})
    both(fresh_db, pool, run, lambda: w.advance(run), lambda: w.cancel(run))
    w.drive()
    states = set(Run.objects.values_list("state", flat=True))
    assert states == {RunState.CANCELLED}
    assert w.sandbox.requests() == []


def test_two_people_pause_and_let_go_on(w: World, fresh_db: FreshDatabase, pool: ThreadPoolExecutor) -> None:
    """One after the other: whoever comes first is found by the second, and it ends in one of two states."""
    run = w.accept("test.waiter", mode="event")
    w.drive()

    def tried(work: Any) -> str:
        try:
            work(w, run)
        except errors.RunsError as refused:
            return refused.code
        return "done"

    came = both(fresh_db, pool, run, lambda: tried(pause), lambda: tried(resume))
    w.drive()
    assert came in (["done", "done"], ["done", "not_paused"])
    assert w.run(run).state == (RunState.WAITING if came == ["done", "done"] else RunState.PAUSED)


@pytest.mark.parametrize("first", ["child", "pause"])
def test_a_childs_end_and_a_pause_of_its_parent(
    w: World, fresh_db: FreshDatabase, pool: ThreadPoolExecutor, first: str
) -> None:
    """The ring of a child that ends is lost or comes late: the parent finds its end when it goes on."""
    run = w.accept("test.parent", input={"what": [("pay", "ch_a")]})
    w.advance(run)
    child = Run.objects.get(parent_id=run)
    works = [lambda: w.advance(child.pk), lambda: pause(w, run)]
    both(fresh_db, pool, run, *(works if first == "child" else works[::-1]))
    w.drive()
    assert (w.run(run).state, w.run(child.pk).state) == (RunState.PAUSED, RunState.COMPLETED)
    resume(w, run)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
