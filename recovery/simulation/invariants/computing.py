"""Computations: their samples are bounded, by one layer (invariant 10); an output that was accepted stays."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from uuid import UUID

from recovery.contract import registry
from recovery.engine.computing import LIVE, OUTPUT_INVALID
from runs.models import Call, Event
from runs.states import CallState, EventKind

if TYPE_CHECKING:
    from recovery.simulation.world import World


def invariant_10_of_calls(world: World) -> None:
    """At most the samples of the contract, and as many again for each time a person let the run go on."""
    changed = {event.run_id for event in world.seen.new if event.kind in (EventKind.CALL_SENT, EventKind.CALL_ENDED)}
    for run in sorted(run for run in changed if run is not None):
        _bounded(world, run)


def _bounded(world: World, run: UUID) -> None:
    spoiled: Counter[int] = Counter()
    answered: set[int] = set()
    let_out = Event.objects.filter(run_id=run, kind=EventKind.RUN_RELEASED).count()
    calls = list(Call.objects.filter(run_id=run).order_by("place", "n"))
    for call in calls:
        world.exercised[10] += 1
        if call.place in answered:
            world.violate(10, f"{call.operation} of {world.label(run)} was asked again after its answer")
        if call.state == CallState.ANSWERED:
            answered.add(call.place)
        if call.state == CallState.LOST or (call.outcome or {}).get("code") == OUTPUT_INVALID:
            spoiled[call.place] += 1
    live = Counter(call.place for call in calls if call.state in LIVE)
    for call in calls:
        most = registry.compute_contract(call.operation, call.contract_version).samples * (1 + let_out)
        if spoiled[call.place] > most or live[call.place] > 1:
            world.violate(10, f"{call.operation} of {world.label(run)}: {spoiled[call.place]} samples of {most}")
