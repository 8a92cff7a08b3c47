"""People who make things wait: they pause runs and hold dependencies, and let them go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recovery.actions import dependencies, pauses
from recovery.simulation import people
from recovery.simulation.people import do, on_call, one
from runs.models import Dependency, Run
from runs.states import RUN_ENDED, RunState, Scope

if TYPE_CHECKING:
    from recovery.simulation.world import World

_HELD = (RunState.PAUSING, RunState.PAUSED)


def pause(world: World) -> str | None:
    """Somebody pauses a run, alone or with those that it started."""
    run = one(world, Run.objects.exclude(state__in=[*RUN_ENDED, *_HELD]))
    if run is None:
        return None
    scope = world.rng.choice([Scope.RUN, Scope.CHILDREN])
    said = do(world, pauses.pause, run.pk, actor=on_call(world, run), reason="wait a moment", scope=scope)
    return f"{world.label(run.pk)} is to pause ({scope}): {said}"


def resume(world: World) -> str | None:
    """Somebody lets a paused run go on."""
    run = one(world, Run.objects.filter(state__in=_HELD))
    return None if run is None else _resume(world, run)


def _resume(world: World, run: Run) -> str:
    said = do(world, pauses.resume, run.pk, actor=on_call(world, run), reason="go on")
    return f"{world.label(run.pk)} may go on: {said}"


def hold(world: World) -> str | None:
    """Somebody holds a dependency, or lets it go."""
    where = one(world, Dependency.objects.all())
    if where.held_at is not None:
        return _release(world, where)
    return f"{where.name} is held: " + do(world, dependencies.hold, where.pk, actor=_for(world, where), reason="look")


def _release(world: World, where: Dependency) -> str:
    said = do(world, dependencies.release, where.pk, actor=_for(world, where), reason="looks good")
    return f"{where.name} is let go: {said}"


def share(world: World) -> str | None:
    """Somebody gives a workspace another share of the rate."""
    where, part = one(world, Dependency.objects.all()), world.rng.choice([0.25, 0.5, 1.0])
    given: dict[str, Any] = {"actor": _for(world, where), "reason": "fair"}
    return f"{where.name} gets {part} of the rate: " + do(world, dependencies.rate, where.pk, part, **given)


def _for(world: World, where: Dependency) -> str:
    return "E" if where.workspace_id == world.stage.next_door.pk else "A"


def let_all_go(world: World) -> None:
    """Nothing is held and nobody pauses any more."""
    for where in Dependency.objects.exclude(held_at=None).order_by("pk"):
        _release(world, where)
    for run in Run.objects.filter(state__in=_HELD).order_by("pk"):
        _resume(world, run)


MOVES: tuple[tuple[people.Move, int], ...] = ((pause, 3), (resume, 4), (hold, 2), (share, 1))
"""What they do, and how often beside what others do."""
