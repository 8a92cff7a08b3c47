"""One seed from its beginning to its end, and what came of it."""

from __future__ import annotations

import gc
import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from recovery.contract import registry
from recovery.simulation import asking, contracts, invariants, mendable, moments, moves, settling, stage, thinking
from recovery.simulation.guards import Guards
from recovery.simulation.world import World
from runs.models import Effect
from runs.states import RUN_ENDED


@dataclass
class Result:
    """What a seed did. ``hit``: effects that a fault struck; ``ended``: runs that came to an end."""

    seed: int
    moves: int = 0
    runs: int = 0
    effects: int = 0
    hit: int = 0
    ended: int = 0
    violations: list[dict[str, Any]] = field(default_factory=list)
    exercised: Counter[int] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)
    seconds: float = 0.0


@contextmanager
def registered() -> Iterator[None]:
    """The simulated contracts in the registry, and the registry afterwards as it was."""
    kept = registry._registry
    registry.discover()
    before = [dict(kept._effects), dict(kept._run_types), list(kept._problems), dict(kept._found_in)]
    computes = dict(kept._computes)
    for contract in (*contracts.BY_NAME.values(), *mendable.ALL):
        kept.add_effect(contract, "simulation")
    for computed in thinking.ALL:
        kept.add_compute(computed, "simulation")
    for cls in asking.TYPES:
        kept.add_run_type(cls, "simulation")
    assert kept._problems == before[2], f"the simulated contracts are wrong: {kept._problems}"
    try:
        yield
    finally:
        kept._effects, kept._run_types, kept._problems, kept._found_in = before  # type: ignore[assignment]
        kept._computes = computes


@contextmanager
def theatre(guards: Guards) -> Iterator[stage.Stage]:
    """The cast, the time and the contracts, in an empty migrated database that nobody needs afterwards."""
    stage.require_unused()
    moments.install()
    logs = logging.getLogger("recourse")
    level = logs.level
    logs.setLevel(logging.CRITICAL)
    gc.freeze()  # what is loaded stays; only a seed's own leavings are worth looking through
    try:
        with registered(), guards.in_place():
            yield stage.build()
    finally:
        gc.unfreeze()
        logs.setLevel(level)


def play(seed: int, cast: stage.Stage, guards: Guards) -> Result:
    """Play ``seed``; stops at the first move after which an invariant does not hold."""
    began = time.monotonic()
    world = World(seed, cast, guards)
    result = Result(seed)
    with world.at_work():
        for n in range(1, world.weather.moves + 1):
            result.moves = world.moves = n
            name, said = ("accept", asking.accept(world) or "") if n == 1 else moves.next_move(world)
            invariants.check(world)
            result.kinds[name] += 1
            world.tell(said)
            if world.wrong:
                break
        if not world.wrong:
            settling.settle(world)
        _tell(world, result)
    result.seconds = time.monotonic() - began
    return result


def _tell(world: World, result: Result) -> None:
    effects = sorted(Effect.objects.values_list("pk", "run_id"))
    result.effects = len(effects)
    # A fault in the call of a run hits the effect it was about; where none was known yet, nothing is counted.
    result.hit = sum(pk in world.hit for pk, _run in effects)
    result.runs = len(world.seen.runs)
    result.ended = sum(row["state"] in RUN_ENDED for row in world.seen.runs.values())
    result.exercised = world.exercised
    result.violations = [
        {"seed": world.seed, "move": result.moves, "invariant": one.invariant, "what": one.what} for one in world.wrong
    ]
    result.trace = world.trace
    for id, row in sorted(world.seen.runs.items()):
        result.trace.append(f"run {world.label(id)} {row['type']}: {row['state']}")
    result.trace += [f"violated: {one}" for one in world.wrong]
