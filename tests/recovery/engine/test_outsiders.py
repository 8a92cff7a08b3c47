"""Somebody of another workspace, at every door of people: what is there reads as what is not (invariant 14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from recovery import failpoints
from recovery.actions import (
    break_glass,
    callbacks,
    compensations,
    dependencies,
    drains,
    drills,
    ends,
    pauses,
    quarantine,
    restore,
    resumption,
)
from runs import clock
from runs.errors import NotFound
from runs.models import Callback, Dependency, Drain, Drill, Event, Plan, Restore, Run
from runs.models.base import new_id
from runs.restored import RestoreState
from runs.states import CallbackState, DrainState, DrillState, PlanState
from tests.recovery.engine.plans import plan_of, trips
from tests.recovery.engine.world import World
from tests.recovery.stage import act

__all__ = ["trips"]


def subjects(w: World) -> dict[str, UUID]:
    """One of each thing that people act on."""
    run = w.accept("trip.book", "flight", mode="mend")
    failpoints.arm("compensate.begun", "raise")
    with pytest.raises(failpoints.Failpoint):
        w.drive()
    failpoints.disarm()
    approval = w.s.asked().pk
    where = Dependency.objects.get(workspace=w.s.here, name="payments")
    mine = {"workspace": w.s.here, "id": new_id()}
    drain = Drain.objects.create(
        **mine,
        dependency=where,
        state=DrainState.GO_AHEAD,
        began_by=w.s.oncall_a,
        began_at=clock.now(),
        moved_at=clock.now(),
        canary=1,
        asks=True,
        warm_up=1,
        total=1,
        unknown=0,
        why={},
    )
    message = Callback.objects.create(
        workspace=w.s.here,
        dependency=where,
        message="m",
        digest="d",
        body="",
        state=CallbackState.ASIDE,
        sent_at=clock.now(),
        received_at=clock.now(),
        why={},
    )
    lost = Restore.objects.create(
        workspace=w.s.here,
        epoch=1,
        state=RestoreState.SWEPT,
        cause="older_record",
        backup_at=clock.now(),
        began_at=clock.now(),
    )
    drill = Drill.objects.create(
        workspace=w.s.here, name="n", state=DrillState.RUNNING, started_by=w.s.oncall_a, started_at=clock.now()
    )
    return {
        "approval": approval,
        "callback": message.pk,
        "dependency": where.pk,
        "drain": drain.pk,
        "drill": drill.pk,
        "plan": plan_of(run).pk,
        "restore": lost.pk,
        "run": run,
    }


_SEEN: dict[str, Any] = {"digest": "d"}
DOORS: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
    ("approval", break_glass.override, {**_SEEN, "saw": {}}),
    ("approval", break_glass.confirm_override, {}),
    ("callback", callbacks.dismiss, {}),
    ("dependency", dependencies.hold, {}),
    ("dependency", dependencies.release, {}),
    ("dependency", dependencies.rate, {"share": 0.5}),
    ("dependency", drains.start, {}),
    ("drain", drains.go_ahead, {}),
    ("drain", drains.hold, {}),
    ("drain", drains.stop, {}),
    ("drill", drills.end, {"passed": True, "verdict": {}}),
    ("plan", compensations.start, _SEEN),
    ("plan", compensations.stop, {}),
    ("plan", compensations.leave_out, {**_SEEN, "effect": uuid4()}),
    ("plan", compensations.accept_rest, _SEEN),
    ("plan", compensations.confirm_rest, {**_SEEN, "confirm": True}),
    ("restore", restore.ask_release, {}),
    ("restore", restore.answer_release, {"confirm": True}),
    ("run", compensations.propose, {}),
    ("run", ends.close_unresolved, {"version": 1}),
    ("run", ends.confirm_close, {**_SEEN, "confirm": True}),
    ("run", ends.abort, {}),
    ("run", ends.confirm_abort, {}),
    ("run", pauses.pause, {}),
    ("run", pauses.resume, {}),
    ("run", quarantine.release, {"version": 1}),
    ("run", resumption.go_on, {"report": "r"}),
    ("run", resumption.do_not_go_on, {"report": "r"}),
    ("run", resumption.check_dry, {}),
]


def test_nothing_is_found_and_nothing_is_written(trips: World) -> None:
    """Neither a line nor an error tells it from an id that nobody has; a plan is not moved on by their asking."""
    w = trips
    there = subjects(w)
    before = (Event.objects.count(), Run.objects.count())
    for thing, door, given in DOORS:
        reason = {} if door in (resumption.check_dry, drills.end) else {"reason": "because"}
        for id in (there[thing], uuid4()):
            with pytest.raises(NotFound):
                door(id, actor=w.s.outsider_e, act=act("try"), **given, **reason)
    assert (Event.objects.count(), Run.objects.count()) == before
    assert Plan.objects.get(pk=there["plan"]).state == PlanState.RUNNING
    Drain.objects.all().delete()
    Restore.objects.all().delete()
