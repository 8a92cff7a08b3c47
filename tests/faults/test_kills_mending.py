"""SIGKILL while a plan is made, begun, carried out, told: each effect is mended once, and shown so (invariant 16)."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from runs.models import Effect
from runs.states import EffectState, EventKind, PlanState, RunState
from tests.faults import scenes
from tests.faults.conftest import Workers
from tests.faults.test_kills import MENDING
from tests.recovery.engine.plans import mends, plan_of, trips
from tests.recovery.engine.world import World

__all__ = ["trips"]

CONTRACTS = {"contracts": "tests.recovery.engine.compensable"}
EVERYWHERE = sorted(
    MENDING | {"advance.leased", "advance.before_commit", "advance.after_step", "dispatch.after_claim", "send.after"}
)


def begun(w: World) -> UUID:
    """A trip with a flight and a hotel whose last step has both mended."""
    return w.accept("trip.book", "flight", "hotel", mode="mend")


def test_undisturbed_every_point_is_passed(trips: World, forks: Workers) -> None:
    run = begun(trips)
    assert forks.wait(forks.start(**CONTRACTS)) == {"code": 0}
    assert set(json.loads(forks.log.read_text())) >= MENDING
    mended_once(trips, run)


@pytest.mark.parametrize("nth", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("point", EVERYWHERE)
def test_killed_while_mending(trips: World, forks: Workers, point: str, nth: int) -> None:
    """Safety and liveness: nothing is mended twice, and everything comes to the undisturbed end."""
    run = begun(trips)
    came = forks.kill(point=point, nth=nth, **CONTRACTS)
    assert came or nth == 2, f"it did not come to {point}"
    scenes.finish(trips)
    mended_once(trips, run)


def mended_once(w: World, run: UUID) -> None:
    plan = plan_of(run)
    assert (w.run(run).state, plan.state) == (RunState.COMPENSATED, PlanState.COMPENSATED)
    assert w.effect_states(run) == [EffectState.COMPENSATED, EffectState.COMPENSATED]
    assert [w.applied(e) for e in mends(plan)] == [1, 1]
    assert Effect.objects.filter(mends__isnull=False).count() == 2
    assert len(w.events(run, EventKind.PLAN_STARTED)) == 1
    assert len(w.events(run, EventKind.EFFECT_COMPENSATED)) == 2
