"""SIGKILL in more places than the first hit of each failpoint: the next worker goes on from the record, and the other
side's ledger says once.

Safety and liveness are two checks: where keys or a readback by our reference exist, the run must end as the
undisturbed one; where they do not, it must wait for a person, visibly, and some must complete.
"""

from __future__ import annotations

import pytest

from runs.models import Run
from runs.states import EffectState, ReviewKind, RunState
from tests.faults import deeds, scenes
from tests.faults.conftest import Workers
from tests.recovery.engine.world import World

ACCEPTING = {"accept.before_write", "accept.before_commit", "accept.after_commit"}
SENDING = ["send.before", "send.after", *(f"dispatch.{w}" for w in ("before_claim", "after_claim", "before_outcome"))]
DONE = ("completed", [("refund:ch_1", "succeeded", 1), ("mail:order_cancelled:A-1", "succeeded", 1)])


@pytest.mark.parametrize(
    "point", ["advance.leased", "advance.before_commit", "advance.after_commit", "send.before", "send.after"]
)
def test_killed_the_second_time(w: World, forks: Workers, point: str) -> None:
    """In the middle of the run: its first effect is done and stays done."""
    run = scenes.start(w, "order")
    assert forks.kill(point=point, nth=2), f"it did not come to {point} twice"
    scenes.finish(w)
    assert scenes.end_of(w, run) == DONE


@pytest.mark.parametrize("point", SENDING)
def test_killed_with_signatures(w: World, forks: Workers, point: str) -> None:
    """Invariant 8: the request for signatures is used by one send; what follows under the same key is that send."""
    run = scenes.start(w, "signed")
    assert forks.kill(point=point)
    scenes.finish(w)
    assert scenes.judge(w, run)
    assert scenes.end_of(w, run) == DONE


@pytest.mark.parametrize("point", ["advance.after_commit", "send.before", "send.after", "advance.before_outcome"])
def test_killed_at_a_provider_without_keys(w: World, forks: Workers, point: str) -> None:
    """Equal facts are no proof, and silence is none either: whatever may have happened waits for a person, and nothing
    is sent again meanwhile.
    """
    run = scenes.start(w, "cards")
    assert forks.kill(point=point)
    scenes.finish(w)
    assert not scenes.judge(w, run)
    assert w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN]
    (effect,) = w.effects(run)
    assert effect.state == EffectState.UNKNOWN
    assert w.applied(effect) == (1 if point in ("send.after", "advance.before_outcome") else 0)


@pytest.mark.parametrize("point", ["advance.after_commit", "send.before", "send.after", "advance.before_outcome"])
def test_killed_with_neither_key_nor_readback(w: World, forks: Workers, point: str) -> None:
    """Faults rule 11: before it claimed nothing can have left, and it is sent; after that a person says."""
    run = scenes.start(w, "notice")
    assert forks.kill(point=point)
    scenes.finish(w)
    completed = scenes.judge(w, run)
    assert completed == (point == "advance.after_commit")
    if not completed:
        assert w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN]


@pytest.mark.parametrize("point", sorted(ACCEPTING))
def test_killed_while_accepting(w: World, forks: Workers, point: str) -> None:
    """Faults 1 and 2: no answer came either way; the same act again gives exactly one run, and it completes."""
    asked = scenes.SCENES["accept"].play(w, forks)
    assert forks.kill(point=point, **asked)
    assert Run.objects.count() == (1 if point == "accept.after_commit" else 0)
    assert deeds.accept(asked).replayed == (point == "accept.after_commit")
    scenes.finish(w)
    assert [r.state for r in Run.objects.all()] == [RunState.COMPLETED]


def test_killed_again_and_again(w: World, forks: Workers) -> None:
    """Six workers die at six places of one run, and it still comes to its end."""
    run = scenes.start(w, "order")
    died = 0
    for point in ("advance.leased", "send.before", "reconcile.after_ask", "advance.before_outcome", "send.after"):
        died += forks.kill(point=point)
    assert died >= 4
    scenes.finish(w)
    assert scenes.end_of(w, run) == DONE
