"""What is written stays written: invariants 1, 5, 6 and 9."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from recovery.simulation.invariants.seen import History, digest
from runs.models import Event
from runs.states import RUN_ENDED, EventKind

if TYPE_CHECKING:
    from recovery.simulation.world import World


def invariant_1(world: World) -> None:
    """What was accepted is recorded: whatever returned has its run."""
    missing = [run for run in world.runs if run not in world.seen.runs]
    world.exercised[1] += len(world.runs)
    for run in missing:
        world.violate(1, f"run {world.label(run)} was accepted and is not there")


def invariant_5(world: World) -> None:
    """An ended run stays ended."""
    for run in sorted(world.seen.changed):
        state, history = world.seen.runs[run]["state"], world.seen.histories[run]
        if history.ended:
            world.exercised[5] += 1
            if history.ended != state:
                world.violate(5, f"run {world.label(run)} had ended as {history.ended} and is {state}")
        elif state in RUN_ENDED:
            history.ended = state


def invariant_6(world: World) -> None:
    """An old token changes no state: each line with a token has that of the lease before it."""
    for event in world.seen.new:
        token = event.body["token"]
        if event.run_id is None or token is None:
            continue
        history = world.seen.chain_of(event)
        if event.kind == EventKind.RUN_LEASED:
            if token <= history.token:
                world.violate(6, f"{_of(world, event)} has token {token} after {history.token}")
            history.token = token
        elif token != history.token:
            world.violate(6, f"{_of(world, event)} was written with token {token}, the lease has {history.token}")


def invariant_9(world: World) -> None:
    """One event a change, the history folds into the tables, the chain verifies."""
    seen = world.seen
    heads: set[UUID] = set()
    for event in seen.new:
        history = seen.chain_of(event)
        heads.add(event.run_id or event.workspace_id)
        _chain(world, event, history)
        for move in event.body["moves"]:
            world.exercised[9] += 1
            what = (move["t"], move["id"])
            if history.states.get(what, "") != move["from"]:
                world.violate(9, f"{_of(world, event)} moves a {move['t']} from {move['from']!r}, where it is not")
            history.states[what] = move["to"]
    for chain in heads:
        history = seen.histories[chain]
        if seen.head(chain) != (history.seq, history.hash):
            world.violate(9, f"the head of {world.label(chain)} does not name the end of its chain")
    if seen.changed:
        folds_into_the_tables(world)


def folds_into_the_tables(world: World) -> None:
    """The second half of it, for the runs that changed."""
    for run, stored in world.seen.tables().items():
        folded = world.seen.histories[run].states
        for what in sorted(folded.keys() | stored.keys()):
            if folded.get(what) != stored.get(what):
                said = f"history {folded.get(what)!r}, table {stored.get(what)!r}"
                world.violate(9, f"{what[0]} {world.label(what[1])}: {said}")


def _chain(world: World, event: Event, history: History) -> None:
    body = event.body
    follows = (body["seq"], body["prev"]) == (history.seq + 1, history.hash)
    if not follows or digest(event.text) != event.hash:
        world.violate(9, f"{_of(world, event)} does not follow the one before")
    history.seq, history.hash = event.seq, event.hash


def _of(world: World, event: Event) -> str:
    return f"line {event.seq} ({event.kind}) of {world.label(event.run_id or event.workspace_id)}"
