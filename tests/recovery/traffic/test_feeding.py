"""Which effects are rung: no more than can go, by priority and deadline, workspaces in turns."""

from __future__ import annotations

from uuid import UUID

from django.utils import timezone

from recovery.actions import runs as run_actions
from recovery.engine.changes import UNCHECKED
from recovery.traffic import feeding
from runs import clock
from runs.models import Capacity, Dependency, Effect, Person
from runs.states import BreakerState
from tests.recovery.engine.world import World
from tests.recovery.stage import act


def _ready(w: World, n: int = 1, *, actor: Person | None = None, priority: int = 0, there: bool = False) -> list[UUID]:
    """Effects that wait for a sender, each of a run of its own."""
    from recovery.engine.advance import advance

    space = w.s.there if there else w.s.here
    who = w.s.outsider_e if there else w.s.oncall_a
    found = []
    for _ in range(n):
        what = {"what": [("slow", w.charge())]}
        run = run_actions.accept(space, "test.many", what, actor=who, act=act(), priority=priority).run
        advance(space.pk, run)
        found.append(Effect.objects.get(run_id=run).pk)
    return found


def _next(page: int = 500) -> list[UUID]:
    return feeding.next_to_send(clock.now(), page, unchecked=UNCHECKED)


def test_no_more_than_the_pace_of_two_passes(w: World) -> None:
    ids = _ready(w, 6)
    assert _next() == ids
    Capacity.objects.update(rate=2)  # paced at 1.6
    assert _next() == ids[:4]
    Dependency.objects.filter(workspace=w.s.here).update(share=0.3)
    assert _next() == ids[:1]


def test_by_priority_then_by_deadline(w: World) -> None:
    late, soon = _ready(w, 2)
    urgent = _ready(w, 1, priority=5)[0]
    Effect.objects.filter(pk=soon).update(deadline=timezone.now())
    assert _next() == [urgent, soon, late]
    Capacity.objects.update(rate=0.6)
    assert _next() == [urgent]


def test_workspaces_that_share_a_capacity_take_turns(w: World) -> None:
    """Whoever has much waiting does not make the other wait behind it."""
    many, few = _ready(w, 5), _ready(w, 2, there=True)
    assert _next()[:4] == [many[0], few[0], many[1], few[1]]
    Capacity.objects.update(rate=2)
    assert set(_next()) == {*many[:2], *few[:2]}


def test_nothing_where_nothing_can_go(w: World) -> None:
    ids = _ready(w, 2)
    Capacity.objects.update(in_flight=50)
    assert _next() == []
    Capacity.objects.update(in_flight=0, state=BreakerState.OPEN)
    assert _next() == []
    Capacity.objects.update(state=BreakerState.HALF_OPEN)
    assert _next() == ids[:1], "one tries"
    Capacity.objects.update(state=BreakerState.CLOSED)
    Dependency.objects.update(held_at=clock.now())
    assert _next() == []
    Dependency.objects.update(held_at=None)
    assert _next() == ids
