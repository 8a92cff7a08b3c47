"""Two people begin one plan, two workers accept its run, at the same moment: one compensation each (invariant 16)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from recovery import failpoints
from recovery.actions import compensations as actions
from recovery.engine import mending_runs
from recovery.engine.refusals import AlreadyDone
from runs.errors import StaleVersion
from runs.models import Effect, Run
from runs.states import EventKind, PlanState, RunState
from tests.databases import FreshDatabase
from tests.races.test_decisions import ORDERS, pool, race
from tests.recovery.engine.fixtures import w
from tests.recovery.engine.plans import SOON, mends, plan_of, propose, start, trip, trips
from tests.recovery.engine.world import World
from tests.recovery.stage import act

__all__ = ["pool", "trips", "w"]


@ORDERS
def test_two_people_begin_the_same_plan(
    trips: World, pool: ThreadPoolExecutor, fresh_db: FreshDatabase, order: str
) -> None:
    """Whoever is second is told who was first; one run carries it out."""
    run = trip(trips, "flight", "hotel")
    plan = propose(trips, run)
    a, b = race(
        pool,
        fresh_db,
        run,
        lambda: start(trips, plan),
        lambda: start(trips, plan, actor=trips.s.oncall_g),
        order,
    )
    first, second = (a, b) if order == "first" else (b, a)
    assert first.facts["to_mend"] == 2
    assert isinstance(second, AlreadyDone)
    trips.drive(jump=SOON)
    assert plan_of(run).state == PlanState.COMPENSATED
    assert len(trips.events(run, EventKind.PLAN_STARTED)) == 1
    assert [trips.applied(e) for e in mends(plan)] == [1, 1]
    assert Effect.objects.filter(mends__isnull=False).count() == 2


@ORDERS
def test_begun_while_an_item_is_left_out(
    trips: World, pool: ThreadPoolExecutor, fresh_db: FreshDatabase, order: str
) -> None:
    """Nobody begins a plan that another person has just made into another one."""
    run = trip(trips, "flight", "flight")
    plan = propose(trips, run)
    out = plan.items[0]["effect"]
    begun, left = race(
        pool,
        fresh_db,
        run,
        lambda: start(trips, plan, digest=plan.digest),
        lambda: actions.leave_out(
            plan.pk, Effect.objects.get(pk=out).pk, actor=trips.s.oncall_g, act=act(), reason="r", digest=plan.digest
        ),
        order,
    )
    assert isinstance(left if order == "first" else begun, Exception)
    if order == "second":
        assert isinstance(begun, StaleVersion)
    trips.drive(jump=SOON)
    mended = Effect.objects.filter(run_id=run, state="compensated").count()
    assert mended == (2 if order == "first" else 0)


@pytest.mark.parametrize("point", ["plan.before_accept", "plan.before_commit"])
def test_two_workers_take_it_up_at_once(trips: World, pool: ThreadPoolExecutor, point: str) -> None:
    """A doorbell and the sweep meet: the run is accepted once, and an effect is shown as mended once."""
    run = trip(trips, "flight")
    plan = propose(trips, run)
    together = Barrier(2, timeout=20)

    def both() -> None:
        together.wait()

    failpoints.arm(point, _gone)
    with pytest.raises(Gone):
        start(trips, plan)
        trips.drive(jump=SOON)
    failpoints.disarm()
    failpoints.arm(point, both)

    def mend() -> str:
        try:
            return mending_runs.mend(plan.pk)
        finally:
            connection.close()

    for done in [pool.submit(mend), pool.submit(mend)]:
        done.result(30)
    failpoints.disarm()
    trips.drive(jump=SOON)
    assert plan_of(run).state == PlanState.COMPENSATED
    assert Run.objects.filter(type="recourse.compensation", state=RunState.COMPLETED).count() == 1
    assert len(trips.events(run, EventKind.EFFECT_COMPENSATED)) == 1
    assert [trips.applied(e) for e in mends(plan)] == [1]


class Gone(BaseException):
    """The worker is gone."""


def _gone() -> None:
    raise Gone
