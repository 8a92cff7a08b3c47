"""Figures of recovery, on histories that were made so that each is known beforehand."""

from __future__ import annotations

from datetime import timedelta

import pytest

from recovery import failpoints
from recovery.actions import compensations as actions
from recovery.upkeep import metrics
from runs.states import EventKind
from tests.recovery.engine.plans import trip, trips
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later

__all__ = ["trips"]


def figures() -> dict[tuple[str, ...], float]:
    """Value by name and the values of its labels, in the order of their names."""
    found = metrics.figures()
    made = {(one.name, *(one.labels[name] for name in sorted(one.labels))): float(one.value) for one in found}
    assert len(made) == len(found), "each figure is told once"
    return made


def test_a_run_that_another_worker_took_over(w: World) -> None:
    """A minute from the dead worker's last line to its heir's first look."""
    run = w.accept("test.chain", "pay", "slow", "pay")
    w.advance(run)
    w.dispatch(w.effects(run)[1])
    later(seconds=50)
    heir = w.worker()
    with w.as_worker(heir):
        w.drive()
    told = figures()
    assert told["taken_over", "test.chain"] == 1
    assert 49 <= told["time_to_recover_seconds", "0.5", "test.chain"] <= 70
    assert told["resumes", "go_on"] == 1
    assert told["recover_within_seconds", "test.chain"] == 20


def test_an_outcome_that_nobody_knew(w: World) -> None:
    w.sandbox.dial("payments", reply="drop", times=1)
    run = w.accept("test.many", "pay")
    w.advance(run)
    later(seconds=30)
    told = figures()
    assert told["unknown", "payments"] == 1
    assert 30 <= told["unknown_oldest_seconds", "payments"] < 60
    w.drive()
    told = figures()
    assert ("unknown", "payments") not in told
    assert told["unknown_settled", "payments"] == 1
    assert 30 <= told["time_to_know_seconds", "payments", "0.99"] < 60
    assert told["runs_ended", "completed", "test.many"] == 1
    assert told["runs_recovered", "test.many"] == 1, "recovered to a checked result"


def test_tries_for_each_first_try(w: World) -> None:
    """Refused twice, taken at the third: three tries of one effect."""
    w.sandbox.dial("payments", reply="refuse", times=2)
    w.accept("test.many", "pay")
    w.drive(jump=timedelta(minutes=2))
    told = figures()
    assert told["tries_per_first", "payments"] == 3
    assert told["tries", "payments", "succeeded", "answered"] == 1


def test_what_is_due_and_what_waits_for_people(w: World) -> None:
    w.accept("test.many", "notice")
    later(seconds=40)
    told = figures()
    assert told["due", "advance"] == 1
    assert 40 <= told["due_oldest_seconds", "advance"] < 70
    w.sandbox.dial("notices", reply="drop", times=1)
    w.drive()
    later(minutes=30)
    told = figures()
    assert (told["reviews_open", "outcome_unknown"], told["reviews_late", "outcome_unknown"]) == (1, 1)
    assert told["unknown", "notices"] == 1, "also what is not checked any more"
    assert told["frozen",] == 0


def test_no_figure_tells_a_workspace(w: World) -> None:
    """Nothing crosses a workspace (invariant 14): not even by name."""
    w.accept("test.many", "pay")
    w.drive()
    names = {name for one in metrics.figures() for name in one.labels}
    assert names <= {"type", "dependency", "quantile", "verdict", "state", "outcome", "queue", "kind"}
    words = {value for one in metrics.figures() for value in one.labels.values()}
    assert not words & {w.s.here.slug, str(w.s.here.pk), w.s.there.slug}


def test_a_worker_that_lost_its_run_and_one_that_did_nothing(w: World) -> None:
    """The first writes too late and is refused, in the run's own history; the second dies before it commits."""
    run = w.accept("test.many", "pay")

    def taken_over() -> None:
        failpoints.disarm("advance.before_commit")
        w.dies(w.me)
        with w.as_worker(w.worker()):
            failpoints.arm("advance.leased", "raise")
            with pytest.raises(failpoints.Failpoint):
                w.advance(run)
            failpoints.disarm("advance.leased")

    failpoints.arm("advance.before_commit", taken_over)
    assert w.advance(run) == "stale"
    told = figures()
    assert told["stale_refused", "test.many"] == 1
    (refused,) = w.events(run, EventKind.RUN_STALE_REFUSED)
    assert refused.data["worker"] == str(w.me.id) and refused.body["moves"] == []
    assert told["leases_without_progress", "test.many"] == 1


def test_computations_and_their_cost(w: World) -> None:
    w.accept("test.thinker", mode="once", again=2)
    w.drive()
    told = figures()
    assert told["computations", "test.once", "answered"] == 2
    assert told["computation_cost", "test.once", "answered", "tokens"] == 80


def test_plans_that_are_not_over(trips: World) -> None:
    """A draft waits for a person; its age is told."""
    run = trip(trips, "flight")
    actions.propose(run, actor=trips.s.oncall_a, act=act("propose"), reason="the customer cancelled")
    later(hours=1)
    told = figures()
    assert told["plans_open", "draft"] == 1
    assert 3600 <= told["plans_oldest_seconds", "draft"] < 3700
