"""After a gap no consequential effect happens before the checks passed (invariant 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recovery.contract import registry
from runs.models import Event
from runs.states import EventKind

if TYPE_CHECKING:
    from recovery.simulation.world import World

CONSEQUENTIAL = (EventKind.EFFECT_ASKED, EventKind.APPROVAL_ASKED, EventKind.EFFECT_SENT)


def invariant_13(world: World) -> None:
    """Whoever takes over from another, or after a long wait, asks for nothing before the checks are in the history.

    Only lines with a token are an owner's; the senders' have none.
    """
    seen = world.seen
    for event in seen.new:
        run = event.run_id
        if run is None:
            continue
        history = seen.chain_of(event)
        if event.kind == EventKind.RUN_LEASED:
            history.leased = event.data["worker"]
            history.checked = history.sealed <= 1 or (history.leased == history.owner and not _long(world, event))
        elif event.kind == EventKind.RUN_CHECKED:
            history.checked = True
            world.exercised[13] += 1
        elif event.kind in CONSEQUENTIAL and event.body["token"] is not None and not history.checked:
            world.violate(13, f"line {event.seq} of {world.label(run)} asks before the checks")
        if event.at in seen.sealed.get(run, ()) and event.at != history.sealed_at:
            history.sealed += 1
            history.sealed_at, history.owner = event.at, history.leased


def _long(world: World, event: Event) -> bool:
    assert event.run_id is not None
    row, history = world.seen.runs[event.run_id], world.seen.chain_of(event)
    fresh_for = registry.run_type(row["type"], row["type_version"]).contract.lease.fresh_for
    return history.sealed_at is not None and event.at - history.sealed_at > fresh_for
