"""A compensation happens at most once, and its failure is visible (invariant 16)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any
from uuid import UUID

from runs.models import Plan, Review
from runs.states import EffectState, PlanState, ReviewState

if TYPE_CHECKING:
    from recovery.simulation.world import World

_STANDS_STILL = (PlanState.INCOMPLETE, PlanState.FAILED)


def invariant_16(world: World) -> None:
    """No original is mended twice, in all plans and generations together; what is shown as mended was."""
    mending: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for effect in world.seen.effects.values():
        if effect["mends_id"] is not None:
            mending[effect["mends_id"]].append(effect)
    applied = dict(world.network.counts()) if mending else {}
    for original, effects in sorted(mending.items()):
        times = sum(applied.get(effect["sent_key"], 0) for effect in effects)
        world.exercised[16] += 1
        if times > 1:
            world.violate(16, f"{world.label(original)} was mended {times} times")
        mended = world.seen.effects[original]
        if mended["state"] == EffectState.COMPENSATED and not times:
            world.violate(16, f"{mended['sent_key']} is shown as mended and never was")
        if times and not applied.get(mended["sent_key"]):
            world.violate(16, f"{mended['sent_key']} was mended and had never happened")
    if any(event.kind.startswith(("plan.", "review.")) for event in world.seen.new):
        _visible(world)


def _visible(world: World) -> None:
    """A plan that stands still is in the inbox."""
    for plan in Plan.objects.filter(state__in=_STANDS_STILL).order_by("pk"):
        if not Review.objects.filter(subject=plan.pk, state=ReviewState.OPEN).exists():
            world.violate(16, f"plan {world.label(plan.pk)} is {plan.state}, and nobody is told")
