"""A pause with the runs below, and of a run that waits for a computation."""

from __future__ import annotations

from datetime import timedelta

import pytest

from recovery import failpoints
from recovery.engine.computing import ask
from recovery.engine.dispatch import dispatch
from runs.models import Call, Effect, Run
from runs.states import CallState, RunState, Scope, WaitingOn
from tests.recovery.engine.test_pause import pause, resume
from tests.recovery.engine.world import World


def test_with_its_children_and_back(w: World) -> None:
    """Through a child of a child; a parent is paused when nothing below it moves, and they go on with it."""
    run = w.accept("test.nested", amount=2)
    w.drive()
    pause(w, run, Scope.CHILDREN)
    w.drive()
    assert set(Run.objects.values_list("state", flat=True)) == {RunState.PAUSED}
    leaf = Run.objects.get(depth=2)
    w.signal(leaf.pk, "told", text="kept")
    resume(w, run)
    w.drive()
    assert set(Run.objects.values_list("state", flat=True)) == {RunState.COMPLETED}


def test_a_parent_pauses_after_its_child_has_settled(w: World) -> None:
    run = w.accept("test.parent", input={"what": [("slow", "ch_a")]})
    w.advance(run)
    child = Run.objects.get(parent_id=run)
    w.advance(child.pk)
    seen: list[tuple[str, str, str]] = []

    def meanwhile() -> None:
        pause(w, run, Scope.CHILDREN)
        w.advance(run)
        seen.append((w.run(run).state, w.run(run).waiting_on, w.run(child.pk).state))

    failpoints.arm("send.after", meanwhile)
    dispatch(Effect.objects.get(run_id=child.pk).pk)
    failpoints.disarm()
    assert seen == [(RunState.PAUSING, WaitingOn.CHILD, RunState.PAUSING)]
    w.drive()
    assert (w.run(child.pk).state, w.run(run).state) == (RunState.PAUSED, RunState.PAUSED)


def test_alone_the_child_goes_on(w: World) -> None:
    """Its end is kept until the parent goes on."""
    run = w.accept("test.parent", input={"what": [("pay", "ch_a")]})
    w.advance(run)
    pause(w, run)
    w.drive()
    child = Run.objects.get(parent_id=run)
    assert (w.run(run).state, child.state) == (RunState.PAUSED, RunState.COMPLETED)
    resume(w, run)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_a_child_paused_by_itself_stays_paused(w: World) -> None:
    run = w.accept("test.nested", amount=1)
    w.drive()
    child = Run.objects.get(parent_id=run)
    pause(w, child.pk)
    w.drive()
    pause(w, run, Scope.CHILDREN)
    w.drive()
    resume(w, run)
    w.drive()
    assert (w.run(child.pk).state, w.run(run).waiting_on) == (RunState.PAUSED, WaitingOn.CHILD)


def test_a_computation_that_was_handed_over_waits(w: World) -> None:
    run = w.accept("test.thinker", mode="long", again=1)
    w.advance(run)
    pause(w, run)
    w.drive()
    assert w.run(run).state == RunState.PAUSED
    assert ask(Call.objects.get().pk) == "paused"
    assert w.sandbox.requests() == []
    resume(w, run)
    w.drive()
    assert (w.run(run).state, len(w.sandbox.requests())) == (RunState.COMPLETED, 1)


def test_a_computation_under_way_is_waited_for(w: World) -> None:
    """Its output is kept, and used when the run goes on; the step does not see it before."""
    run = w.accept("test.thinker", mode="long", again=1)
    w.advance(run)
    seen: list[str] = []

    def meanwhile() -> None:
        failpoints.disarm()
        pause(w, run)
        seen.append(w.advance(run))

    failpoints.arm("call.committed", meanwhile)
    assert ask(Call.objects.get().pk) == CallState.ANSWERED
    assert seen == [RunState.PAUSING]
    w.drive()
    assert (w.run(run).state, w.heard(run)) == (RunState.PAUSED, [])
    resume(w, run)
    w.drive()
    assert (w.run(run).state, len(w.sandbox.requests())) == (RunState.COMPLETED, 1)


def test_a_computation_whose_sender_died_does_not_keep_it_pausing(w: World) -> None:
    run = w.accept("test.thinker", mode="long", again=1)
    w.advance(run)
    failpoints.arm("call.committed", "raise")
    with pytest.raises(failpoints.Failpoint):
        ask(Call.objects.get().pk)
    failpoints.disarm()
    pause(w, run)
    w.drive()
    assert w.run(run).state == RunState.PAUSING
    w.drive(jump=timedelta(minutes=2))
    assert w.run(run).state == RunState.PAUSED
    resume(w, run)
    w.drive(jump=timedelta(minutes=2))
    assert w.run(run).state == RunState.COMPLETED
