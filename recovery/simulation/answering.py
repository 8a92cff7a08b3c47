"""People who answer whether a run goes on: out of quarantine, and over what the checks found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recovery.actions import quarantine, resumption
from recovery.simulation import people
from recovery.simulation.people import do, on_call, one
from runs.models import Review, Run
from runs.states import ReviewKind, ReviewState, RunState

if TYPE_CHECKING:
    from recovery.simulation.world import World

_ASKED = Review.objects.filter(kind=ReviewKind.RESUMPTION, state=ReviewState.OPEN)


def let_out(world: World) -> str | None:
    """Somebody takes a run out of quarantine."""
    run = one(world, Run.objects.filter(state=RunState.QUARANTINED))
    return None if run is None else _let_out(world, run)


def _let_out(world: World, run: Run) -> str:
    actor = on_call(world, run)
    said = do(world, quarantine.release, run.pk, actor=actor, reason="try it once more", version=run.version)
    return f"{world.label(run.pk)} leaves quarantine: {said}"


def answer(world: World) -> str | None:
    """Somebody answers what the checks ask: mostly to go on."""
    review = one(world, _ASKED.select_related("run"))
    return None if review is None else _answer(world, review, goes_on=world.rng.random() < 0.8)


def _answer(world: World, review: Review, *, goes_on: bool) -> str:
    run = review.run
    assert run is not None, "a question is about a run"
    what = resumption.go_on if goes_on else resumption.do_not_go_on
    report = review.why["facts"]["report"]
    said = do(world, what, run.pk, actor=on_call(world, run), reason="seen the report", report=report)
    return f"{world.label(run.pk)} {what.__name__}: {said}"


def answer_all(world: World) -> None:
    """Everybody who stands before a question is let on."""
    for run in Run.objects.filter(state=RunState.QUARANTINED).order_by("pk"):
        _let_out(world, run)
    for review in _ASKED.select_related("run").order_by("pk"):
        _answer(world, review, goes_on=True)


MOVES: tuple[tuple[people.Move, int], ...] = ((let_out, 3), (answer, 4))
"""What they do, and how often beside what others do."""
