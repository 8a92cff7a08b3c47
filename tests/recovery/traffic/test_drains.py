"""The way out of an outage, step by step, with real sends; and what a person decides on the way."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from recovery.actions import dependencies
from recovery.actions import drains as actions
from recovery.engine.refusals import AlreadyDone, NothingToDrain
from recovery.traffic import drains
from runs import clock, errors
from runs.history import chain
from runs.models import Attempt, Capacity, Dependency, Drain, Effect, Event, Review, Run
from runs.states import BreakerState, DrainState, EffectState, EventKind, ReviewKind
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later


def _here(w: World) -> Dependency:
    return Dependency.objects.get(workspace=w.s.here, name="payments")


def _backlog(w: World, n: int) -> list[UUID]:
    """Runs whose refunds wait unsent, since somebody holds the dependency."""
    if _here(w).held_at is None:
        dependencies.hold(_here(w).pk, actor=w.s.oncall_a, act=act("hold"), reason="outage")
    runs = [w.accept("test.many", "pay") for _ in range(n)]
    for run in runs:
        w.advance(run)
    assert {w.effect(run).state for run in runs} == {EffectState.READY}
    return runs


def _start(w: World) -> Drain:
    done = actions.start(_here(w).pk, actor=w.s.oncall_a, act=act("drain"), reason="they are back")
    return Drain.objects.get(pk=done.facts["drain"])


def _states(w: World) -> list[str]:
    """The drain's states in order, from the workspace's own chain."""
    lines = Event.objects.filter(workspace=w.s.here, run=None).order_by("seq")
    return [m["to"] for line in lines for m in line.body["moves"] if m["t"] == "drain"]


def _passes(w: World, n: int = 4) -> None:
    for _ in range(n):
        w.pass_once()


def test_the_whole_way(w: World) -> None:
    """Held, drained: unknown ones first, expired ones dropped, a few, a person, the rest; each step in the chain."""
    Dependency.objects.update(canary=2)
    w.sandbox.dial("payments", reply="drop", times=1, readback="down")
    unknown = w.accept("test.many", "pay")
    w.advance(unknown)
    assert w.effect(unknown).state == EffectState.UNKNOWN
    runs = _backlog(w, 6)
    expired = runs.pop()
    Effect.objects.filter(run_id=expired).update(deadline=clock.now())
    w.sandbox.reset("payments")
    drain = _start(w)
    assert (drain.state, drain.total, drain.unknown) == (DrainState.CHECKING, 6, 1)
    assert _here(w).held_at is None, "the drain keeps the backlog back, not the hold"
    sent = len(w.sandbox.requests())
    _passes(w, 1)
    assert w.effect(unknown).state == EffectState.SUCCEEDED, "read back at once"
    assert len(w.sandbox.requests()) == sent, "before anything is written"
    _passes(w)
    drain.refresh_from_db()
    assert drain.state == DrainState.GO_AHEAD
    assert sum(w.effect(run).state == EffectState.SUCCEEDED for run in runs) == 2
    assert w.effect(expired).state == EffectState.EXPIRED
    assert Review.objects.get(kind=ReviewKind.DRAIN_STOPPED).subject == drain.pk
    actions.go_ahead(drain.pk, actor=w.s.oncall_g, act=act("go"), reason="the canary went well")
    _passes(w, 2)
    later(seconds=7)
    _passes(w, 3)
    drain.refresh_from_db()
    assert (drain.state, drain.sent, drain.dropped) == (DrainState.DRAINED, 5, 1)
    assert {w.effect(run).state for run in runs} == {EffectState.SUCCEEDED}
    assert _here(w).draining is None
    assert Review.objects.get(kind=ReviewKind.DRAIN_STOPPED).state == "closed"
    path = _states(w)
    assert path[:5] == ["checking", "dropping", "canary", "go_ahead", "ramping"] and path[-1] == "drained"
    w.s.here.refresh_from_db()
    assert chain.verify_workspace(w.s.here).ok
    assert all(w.applied(w.effect(run)) == 1 for run in [*runs, unknown])
    assert w.applied(w.effect(expired)) == 0


def test_new_work_goes_while_the_backlog_waits(w: World) -> None:
    (old,) = _backlog(w, 1)
    drain = _start(w)
    _passes(w)
    drain.refresh_from_db()
    Drain.objects.update(canary=0)
    assert drain.state != DrainState.DRAINED or w.effect(old).state == EffectState.SUCCEEDED
    new = w.accept("test.many", "pay")
    w.advance(new)
    assert w.effect(new).state == EffectState.SUCCEEDED


def test_a_canary_that_fails_stops_it_and_a_person_is_asked(w: World) -> None:
    Dependency.objects.update(canary=2)
    runs = _backlog(w, 3)
    w.sandbox.dial("payments", reply="overload")
    drain = _start(w)
    _passes(w, 8)
    drain.refresh_from_db()
    assert (drain.state, drain.why["code"]) == (DrainState.HELD, "canary_failed")
    assert Review.objects.get(kind=ReviewKind.DRAIN_STOPPED).why["code"] == "canary_failed"
    assert Attempt.objects.filter(run_id__in=runs).count() == 2
    w.sandbox.reset("payments")
    actions.go_ahead(drain.pk, actor=w.s.oncall_g, act=act("go"), reason="they mended it")
    w.drive(jump=w.FAR)
    drain.refresh_from_db()
    assert drain.state == DrainState.DRAINED
    assert {w.effect(run).state for run in runs} == {EffectState.SUCCEEDED}


def test_a_second_cascade_holds_it(w: World) -> None:
    runs = _backlog(w, 12)
    drain = _start(w)
    _passes(w)
    actions.go_ahead(drain.pk, actor=w.s.oncall_g, act=act("go"), reason="the canary went well")
    Capacity.objects.update(state=BreakerState.OPEN, reopen_at=clock.now() + timedelta(minutes=1))
    _passes(w, 2)
    drain.refresh_from_db()
    assert (drain.state, drain.why["code"], drain.held_from) == (DrainState.HELD, "breaker_open", DrainState.RAMPING)
    assert {w.effect(run).state for run in runs} == {EffectState.SUCCEEDED, EffectState.READY}


def test_what_was_recorded_goes_on_with_another_sweep(w: World) -> None:
    """Nothing of it is in a process: each pass here is a sweep that knows nothing of the one before."""
    _backlog(w, 2)
    drain = _start(w)
    Drain.objects.filter(pk=drain.pk).update(asks=False)
    w.drive(jump=w.FAR)
    drain.refresh_from_db()
    assert drain.state == DrainState.DRAINED


def test_what_waits_for_a_person_of_its_own_is_not_waited_for(w: World) -> None:
    still, goes = _backlog(w, 2)
    Run.objects.filter(pk=still).update(waiting_on="person")
    drain = _start(w)
    Drain.objects.filter(pk=drain.pk).update(asks=False)
    _passes(w, 8)
    drain.refresh_from_db()
    assert drain.state == DrainState.DRAINED
    assert (w.effect(still).state, w.effect(goes).state) == (EffectState.READY, EffectState.SUCCEEDED)
    Run.objects.filter(pk=still).update(waiting_on="in_flight")


def test_a_dependency_of_a_lower_order_recovers_first(w: World) -> None:
    Dependency.objects.filter(workspace=w.s.here, name="payments").update(recovery_order=1)
    ledger = Dependency.objects.filter(workspace=w.s.here, name="mail")
    _backlog(w, 1)
    ledger.update(held_at=clock.now())
    drain = _start(w)
    _passes(w)
    drain.refresh_from_db()
    assert drain.state == DrainState.CHECKING
    ledger.update(held_at=None)
    _passes(w, 1)
    drain.refresh_from_db()
    assert drain.state == DrainState.DROPPING


# --- what a person does


def test_hold_and_go_on(w: World) -> None:
    _backlog(w, 2)
    drain = _start(w)
    actions.hold(drain.pk, actor=w.s.oncall_a, act=act("hold"), reason="wait")
    _passes(w)
    drain.refresh_from_db()
    assert (drain.state, drain.held_from, Attempt.objects.count()) == (DrainState.HELD, DrainState.CHECKING, 0)
    with pytest.raises(AlreadyDone):
        actions.hold(drain.pk, actor=w.s.oncall_g, act=act("hold"), reason="wait")
    actions.go_ahead(drain.pk, actor=w.s.oncall_a, act=act("go"), reason="now")
    drain.refresh_from_db()
    assert drain.state == DrainState.CHECKING, "not past what has to be checked"
    with pytest.raises(errors.IllegalMove):
        actions.go_ahead(drain.pk, actor=w.s.oncall_a, act=act("go"), reason="now")


def test_stopped_what_is_left_is_work_like_any_other(w: World) -> None:
    (run,) = _backlog(w, 1)
    drain = _start(w)
    actions.stop(drain.pk, actor=w.s.oncall_a, act=act("stop"), reason="by hand")
    assert _here(w).draining is None
    with pytest.raises(AlreadyDone):
        actions.stop(drain.pk, actor=w.s.oncall_a, act=act("stop"), reason="by hand")
    w.drive(jump=w.FAR)
    assert w.effect(run).state == EffectState.SUCCEEDED
    drain.refresh_from_db()
    assert drain.state == DrainState.STOPPED


def test_one_drain_at_a_time_and_something_to_drain(w: World) -> None:
    with pytest.raises(NothingToDrain):
        _start(w)
    _backlog(w, 1)
    drain = _start(w)
    with pytest.raises(AlreadyDone) as again:
        _start(w)
    assert again.value.facts["drain"] == str(drain.pk)


def test_the_same_press_twice_is_one_drain(w: World) -> None:
    """Invariant 15."""
    _backlog(w, 1)
    press = act("drain")
    first = actions.start(_here(w).pk, actor=w.s.oncall_a, act=press, reason="they are back")
    again = actions.start(_here(w).pk, actor=w.s.oncall_a, act=press, reason="they are back")
    assert again.replayed and again.facts["drain"] == first.facts["drain"]
    assert Drain.objects.count() == 1


def test_who_may_and_who_sees(w: World) -> None:
    """Invariant 14: of another workspace it does not exist."""
    _backlog(w, 1)
    drain = _start(w)
    for who, refusal in ((w.s.outsider_e, errors.NotFound), (w.s.auditor_d, errors.NotAllowed)):
        for do in (actions.go_ahead, actions.hold, actions.stop):
            with pytest.raises(refusal):
                do(drain.pk, actor=who, act=act(), reason="r")
    with pytest.raises(errors.ReasonNeeded):
        actions.stop(drain.pk, actor=w.s.oncall_a, act=act(), reason=" ")
    assert Event.objects.filter(kind=EventKind.DRAIN_MOVED).count() == 0


def test_an_effect_of_an_unknown_version_stops_no_drain(w: World) -> None:
    """Neither while it reads back nor while it drops: another process may know it, the rest goes on."""
    w.sandbox.dial("payments", reply="drop", times=1, readback="down")
    unknown = w.accept("test.many", "pay")
    w.advance(unknown)
    (run,) = _backlog(w, 1)
    drain = _start(w)
    Effect.objects.update(contract_version=99)
    assert drains.look(drain, clock.now())[0].unread == 0
    drain.state = DrainState.DROPPING
    assert drains.look(drain, clock.now())[0].late == 0
