"""The breaker, driven by real calls: what opens it, who is told, and how it closes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from recovery import bells
from recovery.traffic import breaker
from runs import doorbells
from runs.history import chain
from runs.models import Attempt, Capacity, Event, Review
from runs.states import BreakerState, EffectState, EventKind, ReviewKind, ReviewState
from tests.recovery.engine.world import World
from tests.recovery.stage import later


def _moves() -> list[tuple[str, str, str]]:
    rows = Event.objects.filter(kind=EventKind.BREAKER_MOVED).order_by("at", "workspace_id").select_related("workspace")
    return [(e.workspace.slug, e.data["from"], e.data["to"]) for e in rows]


def _open_it(w: World, calls: int = 6) -> None:
    """Each call is turned away; then somebody looks, as each worker does after such a call."""
    Capacity.objects.update(breaker_least=calls)
    w.sandbox.dial("payments", reply="overload")
    for _ in range(calls):
        w.advance(w.accept("test.many", "pay"))
    assert breaker.look(Capacity.objects.get().pk) == BreakerState.OPEN


def test_it_opens_and_both_workspaces_are_told(w: World) -> None:
    """The capacity is shared: a line in each chain, the move itself once, one review where work waits."""
    _open_it(w)
    assert _moves() == [("acme-pay", "closed", "open"), ("other-pay", "closed", "open")]
    lines = Event.objects.filter(kind=EventKind.BREAKER_MOVED)
    assert sum(m["t"] == "breaker" for line in lines for m in line.body["moves"]) == 1
    reviews = Review.objects.filter(kind=ReviewKind.NOT_SENDING)
    assert [(r.workspace, r.run, r.state) for r in reviews] == [(w.s.here, None, ReviewState.OPEN)]
    for space in (w.s.here, w.s.there):
        space.refresh_from_db()
        assert chain.verify_workspace(space).ok


def test_while_open_nothing_is_sent_and_what_waits_says_so(w: World) -> None:
    _open_it(w)
    before = Attempt.objects.count()
    run = w.accept("test.many", "pay")
    w.advance(run)
    assert w.dispatch(w.effect(run)) == "dependency_held"
    assert w.effect(run).decision["reason"] == "dependency_held"
    events = len(w.events(run))
    assert w.dispatch(w.effect(run)) == "dependency_held"
    assert len(w.events(run)) == events, "said once"
    w.pass_once()
    assert not [args for task, args in w.rung if task == "dispatch"], "and nobody is rung for it"
    assert Attempt.objects.count() == before


def test_one_call_tries_and_it_closes(w: World) -> None:
    _open_it(w)
    w.sandbox.reset("payments")
    later(seconds=11)
    w.pass_once()
    w.drive(jump=w.FAR)
    assert {(b, c) for a, b, c in _moves() if a == "acme-pay"} == {
        ("closed", "open"),
        ("open", "half_open"),
        ("half_open", "closed"),
    }
    assert Capacity.objects.get().state == BreakerState.CLOSED
    assert set(Review.objects.filter(kind=ReviewKind.NOT_SENDING).values_list("state", flat=True)) == {"closed"}


def test_a_probe_that_fails_opens_it_for_longer(w: World) -> None:
    _open_it(w)
    later(seconds=61)
    w.pass_once()  # half open now, and one is rung
    tried = Attempt.objects.count()
    w.pass_once()
    capacity = Capacity.objects.get()
    assert (capacity.state, capacity.opened) == (BreakerState.OPEN, 2)
    assert Attempt.objects.count() <= tried + 1
    assert capacity.reopen_at is not None and capacity.moved_at is not None
    assert capacity.reopen_at - capacity.moved_at == timedelta(seconds=20)


def test_the_worker_that_sees_it_moves_it_at_once(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without waiting for the sweep: its own commit's doorbell does."""
    monkeypatch.setattr(bells, "_publish", lambda *args: True)
    doorbells.register(bells.ring)
    Capacity.objects.update(breaker_least=3)
    w.sandbox.dial("payments", reply="overload")
    for _ in range(3):
        w.advance(w.accept("test.many", "pay"))
    assert Capacity.objects.get().state == BreakerState.OPEN


def test_an_unknown_effect_is_read_back_and_not_sent_again_while_open(w: World) -> None:
    """A resend obeys the breaker; a readback is not stopped by it."""
    Capacity.objects.update(breaker_least=1)
    w.sandbox.dial("payments", reply="drop", times=1)
    run = w.accept("test.many", "pay")
    w.advance(run)
    breaker.look(Capacity.objects.get().pk)
    assert Capacity.objects.get().state == BreakerState.OPEN
    assert w.effect(run).state == EffectState.UNKNOWN
    w.reconcile(w.effect(run))
    assert w.effect(run).state == EffectState.SUCCEEDED
    assert Attempt.objects.count() == 1
