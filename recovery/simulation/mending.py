"""People and compensation plans: they propose, begin, stop, thin out, and by two accept what stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recovery.actions import compensations
from recovery.engine import plans
from recovery.simulation import people
from recovery.simulation.mendable import Trip
from recovery.simulation.people import do, one
from runs.models import Plan, Run
from runs.models.plan import PLAN_OVER
from runs.states import RUN_ENDED, PlanState

if TYPE_CHECKING:
    from recovery.simulation.world import World


def propose(world: World) -> str | None:
    """Somebody wants to see what mending a run would do."""
    run = one(world, Run.objects.filter(type=Trip.name, state__in=RUN_ENDED))
    if run is None:
        return None
    said = do(world, compensations.propose, run.pk, actor=people.on_call(world, run), reason="look at it")
    return f"a plan for {world.label(run.pk)}: {said}"


def start(world: World) -> str | None:
    """Somebody begins a plan, perhaps by what it was before."""
    plan = one(world, Plan.objects.filter(state__in=plans.MAY_BEGIN))
    return None if plan is None else begin(world, plan)


def begin(world: World, plan: Plan) -> str:
    """``plan`` is begun as it stands."""
    said = do(world, compensations.start, plan.pk, actor=_for(world, plan), reason="mend it", digest=plan.digest)
    return f"plan {world.label(plan.pk)} is begun: {said}"


def stop(world: World) -> str | None:
    """Somebody stops a plan at work."""
    plan = one(world, Plan.objects.filter(state=PlanState.RUNNING))
    if plan is None:
        return None
    said = do(world, compensations.stop, plan.pk, actor=_for(world, plan), reason="not now")
    return f"plan {world.label(plan.pk)} is stopped: {said}"


def leave_out(world: World) -> str | None:
    """Somebody takes an item out of a draft."""
    plan = one(world, Plan.objects.filter(state=PlanState.DRAFT))
    if plan is None:
        return None
    item = world.rng.choice(plans.items_of(plan))
    given: dict[str, Any] = {"actor": _for(world, plan), "reason": "not this", "digest": plan.digest}
    return f"{world.label(item.effect)} is left out: " + do(
        world, compensations.leave_out, plan.pk, item.effect, **given
    )


def accept(world: World) -> str | None:
    """Somebody proposes to leave the rest as it is, or a second person answers."""
    plan = one(world, Plan.objects.filter(state__in=plans.MAY_BEGIN))
    return None if plan is None else leave_the_rest(world, plan)


def leave_the_rest(world: World, plan: Plan) -> str:
    """The next of the two steps by which ``plan`` ends without mending the rest."""
    given: dict[str, Any] = {"reason": "it may stay", "digest": plan.digest}
    if plan.accepted_by_id is None:
        return f"the rest of {world.label(plan.pk)} may stay: " + do(
            world, compensations.accept_rest, plan.pk, actor=_for(world, plan), **given
        )
    second = "G" if plan.workspace_id == world.stage.home.pk else "H"
    said = do(world, compensations.confirm_rest, plan.pk, actor=second, confirm=True, **given)
    return f"{second} confirms that the rest of {world.label(plan.pk)} stays: {said}"


def settle(world: World, *, give_up: bool) -> None:
    """What can be mended is; where ``give_up``, the rest stays as it is."""
    for plan in Plan.objects.exclude(state__in=PLAN_OVER).exclude(state=PlanState.RUNNING).order_by("pk"):
        if not give_up:
            begin(world, plan)
        else:
            leave_the_rest(world, plan)
            leave_the_rest(world, Plan.objects.get(pk=plan.pk))


def _for(world: World, plan: Plan) -> str:
    return "E" if plan.workspace_id == world.stage.next_door.pk else "A"


MOVES: tuple[tuple[people.Move, int], ...] = ((propose, 2), (start, 4), (stop, 1), (leave_out, 1), (accept, 1))
"""What they do, and how often beside what others do."""
