"""The moves of the scheduler: who does what next. Each returns a line of the trace, or None where it cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from recovery.simulation import answering, holding, mending, people
from recovery.simulation.asking import accept
from recovery.simulation.bodies import AT_THE_WIRE
from recovery.simulation.statement import Broken
from recovery.upkeep.sweep import Sweep

if TYPE_CHECKING:
    from recovery.simulation.world import World

Move = Callable[["World"], str | None]
PEOPLE: Final = (*people.MOVES, *holding.MOVES, *mending.MOVES, *answering.MOVES)


def ring(world: World) -> str | None:
    """An idle worker takes a bell, whichever came when."""
    if not world.bells or not world.bodies.idle:
        return None
    bell = world.bells.pop(world.rng.randrange(len(world.bells)))
    worker = world.rng.choice(world.bodies.idle)
    subject = world.subject_of(bell)
    world.subject = None
    call = world.bodies.start(worker, bell.task, subject, world.work(bell))
    return f"{worker.name} {bell.task} {world.label(subject)}: {world.ended(call)}"


def go_on(world: World) -> str | None:
    """A stopped worker goes on from where it was; perhaps its lease is another's by now."""
    if not world.bodies.stopped:
        return None
    worker = world.rng.choice(world.bodies.stopped)
    slept = " wakes" if worker.asleep else " goes on"
    world.subject = None
    call = world.bodies.go_on(worker)
    return f"{worker.name}{slept} {call.task} {world.label(call.subject)}: {world.ended(call)}"


def die(world: World) -> str | None:
    """A stopped worker dies where it stands."""
    if not world.bodies.stopped:
        return None
    worker = world.rng.choice(world.bodies.stopped)
    assert worker.call is not None
    call, stood = worker.call, worker.call.stands
    world.strike_of(call)
    world.bodies.kill(worker)
    return f"{worker.name} dies at {stood} of {call.task} {world.label(call.subject)}"


def sleep(world: World) -> str | None:
    """A stopped worker's heart stops beating (SIGSTOP, a long pause)."""
    awake = [w for w in world.bodies.stopped if not w.asleep and w.call and w.call.stands != AT_THE_WIRE]
    if not awake:
        return None
    worker = world.rng.choice(awake)
    assert worker.call is not None
    worker.asleep = True
    world.strike_of(worker.call)
    return f"{worker.name} falls asleep at {worker.call.stands}"


def sweep(world: World) -> str | None:
    """A pass of the sweep; the record may be away in the middle of it."""
    before = len(world.bells)
    now = (world.commits, world.moments.passed, before)
    if now == world.swept:
        return None  # it would find what it found
    try:
        counts = Sweep().run_once()
    except Broken:
        return "sweep: the record was away"
    # Bells that were lying there already say the same: one of each is enough to be rung.
    kept = list(dict.fromkeys(world.bells))
    world.bells[:] = kept
    world.swept = (world.commits, world.moments.passed, len(kept))
    told = {name: n for name, n in counts.items() if n}
    return f"sweep {told}, {len(kept)} bells (had {before})"


def clock(world: World) -> str | None:
    """Time passes: a second, a lease, a review, a deadline."""
    seconds = world.rng.choice([0.5, 2.0, 7.0, 20.0, 20.0, 35.0, 70.0, 660.0, 2400.0, 8000.0])
    went = [world.ended(call) for call in world.bodies.clear_the_wire()]
    world.moments.pass_by(seconds)
    return f"{seconds:g} s pass{' after ' + ', '.join(went) if went else ''}"


def person(world: World) -> str | None:
    """Somebody does something."""
    moves = [move for move, _weight in PEOPLE]
    weights = [weight for _move, weight in PEOPLE]
    for _again in range(4):
        (move,) = world.rng.choices(moves, weights)
        said = move(world)
        if said is not None:
            return said
    return None


def outage(world: World) -> str | None:
    """A provider does something else for a while."""
    return world.weather.outage()


def land(world: World) -> str | None:
    """A request that was given up arrives."""
    if not world.network.on_the_way:
        return None
    late = world.rng.choice(world.network.on_the_way)
    world.network.land(late)
    return f"{late.arrival.key} arrives late"


def message(world: World) -> str | None:
    """The other side says by itself what took effect there: early, late, twice, in any order; or somebody else does."""
    if not world.network.messages:
        return None
    told = world.rng.choice(world.network.messages)
    return f"message {told.id}: {world.mail.deliver(told, forged=world.rng.random() < 0.15)}"


def lose_bells(world: World) -> str | None:
    """The broker forgets: one bell, or all of them."""
    if not world.bells:
        return None
    if world.rng.random() < 0.3:
        lost, world.bells[:] = len(world.bells), []
        return f"all {lost} bells are lost"
    bell = world.bells.pop(world.rng.randrange(len(world.bells)))
    return f"a bell is lost: {bell.task} {world.label(bell.args[-1])}"


def double_bell(world: World) -> str | None:
    """The broker delivers twice."""
    if not world.bells:
        return None
    bell = world.rng.choice(world.bells)
    world.bells.append(bell)
    return f"a bell comes twice: {bell.task} {world.label(bell.args[-1])}"


def bury(world: World) -> str | None:
    """The host says which of its processes are gone."""
    if not world.bodies.silent:
        return None
    world.bodies.bury_all()
    return "the dead are known at once"


MOVES: Final[tuple[tuple[Move, int], ...]] = (
    (accept, 10),
    (ring, 60),
    (go_on, 36),
    (die, 2),
    (sleep, 3),
    (sweep, 12),
    (clock, 11),
    (person, 18),
    (outage, 4),
    (land, 4),
    (message, 3),
    (lose_bells, 2),
    (double_bell, 2),
    (bury, 2),
)
"""The moves, and how often beside each other."""


def next_move(world: World) -> tuple[str, str]:
    """Choose a move that is possible and make it. Returns its name and its line of the trace."""
    moves = [move for move, _weight in MOVES]
    weights = [weight for _move, weight in MOVES]
    for call in world.bodies.clear_the_wire(within=5.0):
        world.ended(call)
    while True:
        (move,) = world.rng.choices(moves, weights)
        said = move(world)
        if said is not None:
            return move.__name__, said
