"""Holding a dependency, releasing it, and a workspace's share of its rate."""

from __future__ import annotations

import pytest

from recovery.actions import dependencies as actions
from recovery.engine.refusals import AlreadyDone, ShareInvalid
from runs import errors
from runs.models import Attempt, Dependency, Event, Review
from runs.states import EffectState, EventKind, ReviewKind
from tests.recovery.engine.world import World
from tests.recovery.stage import act


def _here(w: World) -> Dependency:
    return Dependency.objects.get(workspace=w.s.here, name="payments")


def test_held_nothing_is_sent_and_released_it_goes(w: World) -> None:
    done = actions.hold(_here(w).pk, actor=w.s.oncall_a, act=act("hold"), reason="outage")
    line = Event.objects.get(workspace=w.s.here, run=None, seq=done.event)
    assert (line.kind, line.actor, line.data["by"]["name"]) == (EventKind.DEPENDENCY_HELD, w.s.oncall_a, "Oncall A")
    assert not Review.objects.exists(), "nothing waits yet"
    runs = [w.accept("test.many", "pay") for _ in range(3)]
    w.drive()
    assert not Attempt.objects.exists()
    assert {w.effect(run).decision["reason"] for run in runs} <= {"dependency_held", "send_now"}
    (review,) = Review.objects.filter(kind=ReviewKind.NOT_SENDING)
    assert (review.subject, review.run, review.state) == (_here(w).pk, None, "open"), "one, whatever the number of runs"
    with pytest.raises(AlreadyDone):
        actions.hold(_here(w).pk, actor=w.s.oncall_g, act=act("hold"), reason="outage")
    actions.release(_here(w).pk, actor=w.s.oncall_g, act=act("release"), reason="over")
    assert Review.objects.get(pk=review.pk).state == "closed"
    with pytest.raises(AlreadyDone):
        actions.release(_here(w).pk, actor=w.s.oncall_g, act=act("release"), reason="over")
    w.drive(jump=w.FAR)
    assert {w.effect(run).state for run in runs} == {EffectState.SUCCEEDED}


def test_a_hold_where_work_waits_asks_a_person_at_once(w: World) -> None:
    run = w.accept("test.many", "slow")
    w.advance(run)
    done = actions.hold(_here(w).pk, actor=w.s.oncall_a, act=act("hold"), reason="outage")
    assert done.facts["waiting"] == 1
    assert Review.objects.get().kind == ReviewKind.NOT_SENDING


def test_readbacks_go_on_while_it_is_held(w: World) -> None:
    w.sandbox.dial("payments", reply="drop", times=1)
    run = w.accept("test.many", "pay")
    w.advance(run)
    actions.hold(_here(w).pk, actor=w.s.oncall_a, act=act("hold"), reason="outage")
    w.drive(jump=w.FAR)
    assert w.effect(run).state == EffectState.SUCCEEDED


def test_other_workspaces_go_on(w: World) -> None:
    """Invariant 14: a hold is of one workspace, whatever they share."""
    actions.hold(_here(w).pk, actor=w.s.oncall_a, act=act("hold"), reason="outage")
    assert Dependency.objects.filter(workspace=w.s.there, held_at__isnull=False).count() == 0


def test_a_share_is_above_nothing_and_at_most_all(w: World) -> None:
    for wrong in (0, -1, 1.01, 1e-300, float("nan"), float("inf")):
        with pytest.raises(ShareInvalid):
            actions.rate(_here(w).pk, wrong, actor=w.s.oncall_a, act=act("rate"), reason="too much")
    actions.rate(_here(w).pk, 0.25, actor=w.s.oncall_a, act=act("rate"), reason="too much")
    assert _here(w).share == 0.25
    line = Event.objects.filter(kind=EventKind.DEPENDENCY_RATED).get()
    assert (line.data["before"], line.data["after"]) == (1.0, 0.25)


def test_the_same_press_twice_is_one_hold(w: World) -> None:
    """Invariant 15."""
    press = act("hold")
    first = actions.hold(_here(w).pk, actor=w.s.oncall_a, act=press, reason="outage")
    again = actions.hold(_here(w).pk, actor=w.s.oncall_a, act=press, reason="outage")
    assert (again.replayed, again.event) == (True, first.event)
    assert Event.objects.filter(kind=EventKind.DEPENDENCY_HELD).count() == 1


def test_who_may_and_who_sees(w: World) -> None:
    for who, refusal in ((w.s.outsider_e, errors.NotFound), (w.s.auditor_d, errors.NotAllowed)):
        for do in (actions.hold, actions.release):
            with pytest.raises(refusal):
                do(_here(w).pk, actor=who, act=act(), reason="r")
        with pytest.raises(refusal):
            actions.rate(_here(w).pk, 0.5, actor=who, act=act(), reason="r")
    with pytest.raises(errors.ReasonNeeded):
        actions.hold(_here(w).pk, actor=w.s.oncall_a, act=act(), reason=" ")
