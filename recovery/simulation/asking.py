"""What clients ask for: a run of some type, about something, sometimes twice with the same id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from recovery.actions import runs
from recovery.simulation import mendable
from recovery.simulation.families import Parent
from recovery.simulation.mendable import Trip
from recovery.simulation.run_types import Bounded, Chain, Many, Short, Waiter
from recovery.simulation.thinking import Thinker
from runs.record import Act

if TYPE_CHECKING:
    from recovery.simulation.world import World

TYPES: Final = (Many, Bounded, Chain, Short, Waiter, Trip, Thinker, Parent)
NAMES: Final = (
    *(Many.name, Many.name, Bounded.name, Chain.name, Chain.name, Short.name, Waiter.name),
    *(Trip.name, Trip.name, Thinker.name, Parent.name),
)
"""Run types, as often as they are asked for."""

MODES: Final[dict[str, tuple[str, ...]]] = {
    Waiter.name: ("", "timer", "event", "timeout"),
    Trip.name: ("", "", "wait", "mend", "mend_then"),
    Thinker.name: ("guess", "ponder"),
}
CHILDREN: Final = (Many.name, Chain.name, Trip.name)
MOST_RUNS: Final = 4
WEATHERED: Final = ("pay", "pay", "pay", "slow", "card", "mail", "notice")
"""Operations, as often as they are asked for."""


def accept(world: World) -> str | None:
    """A run is accepted; sometimes the client hears nothing and asks again with the same id."""
    if len(world.runs) >= MOST_RUNS or world.moves > world.weather.moves // 2:
        return None
    rng = world.rng
    type = rng.choice(NAMES)
    home = rng.random() < 0.85
    workspace = world.stage.home if home else world.stage.next_door
    child = rng.choice(CHILDREN) if type == Parent.name else ""
    operations = tuple(mendable.BY_NAME) if Trip.name in (type, child) else WEATHERED
    what = [(rng.choice(operations), world.charge(workspace.slug)) for _ in range(rng.choice([1, 2, 2, 3]))]
    given: dict[str, Any] = {
        "what": what,
        "amount": rng.choice([8400, 8400, 120_500]),
        "again": rng.choice([0, 1, 2]),
        "mode": rng.choice(MODES.get(type, ("",))),
        **({"child": child} if child else {}),
    }
    actor = world.stage.people["A" if home else "E"]
    act = Act.over(world.ids(), "accept", given)

    def ask() -> Any:
        return runs.accept(workspace, type, given, actor=actor, act=act)

    done = ask()
    world.runs.append(done.run)
    if rng.random() < 0.3:
        world.exercised[15] += 1
        if ask().run != done.run:
            world.violate(15, "the same request was accepted twice")
    return f"accept {type} {given['mode']} {what} {given['amount']} as {world.label(done.run)}"
