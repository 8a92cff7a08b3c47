"""Computations: recorded before they are made, their output used for ever; a lost one is lost, never unknown."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import pytest

from recovery import failpoints
from recovery.engine import memory
from runs import clock, record
from runs.models import Call, Capacity, Dependency
from runs.record import Commit, Entry
from runs.states import CallState, EventKind, RunState, WaitingOn
from tests.recovery.engine.world import World


def states(run: UUID) -> list[str]:
    return list(Call.objects.filter(run_id=run).order_by("place", "n").values_list("state", flat=True))


def think(w: World, mode: str, again: int = 1) -> UUID:
    return w.accept("test.thinker", mode=mode, again=again)


def die(w: World, run: UUID, point: str) -> None:
    """The worker ends at ``point``; another takes over."""

    def fail() -> None:
        failpoints.disarm(point)
        raise KeyboardInterrupt

    failpoints.arm(point, fail)
    with pytest.raises(KeyboardInterrupt):
        w.advance(run)
    w.dies(w.me)
    w.me = w.worker()


def released(w: World, run: UUID) -> None:
    """A person lets the run out of quarantine."""
    out = record.run_moves({"state": RunState.WAITING, "waiting_on": WaitingOn.PERSON}, times={"wake_at": 0})
    record.commit(Commit(w.s.here.pk, run, [Entry(EventKind.RUN_RELEASED, {}, [out])], actor=w.s.oncall_a.pk))


def test_a_short_one_is_made_by_the_owner_and_its_output_reaches_the_step(w: World) -> None:
    run = think(w, "once", 2)
    assert w.advance(run) == "completed"
    calls = list(Call.objects.filter(run_id=run).order_by("place"))
    assert [c.state for c in calls] == [CallState.ANSWERED] * 2
    assert [c.output for c in calls] == [h[1] for h in w.heard(run)]
    assert all((c.reserved, c.spent, c.pinned) == (100, 40, {"model": "m-1", "seed": 7}) for c in calls)
    assert memory.restore(vars(w.run(run)))[1].spent == {calls[0].unit: 80}
    assert Capacity.objects.get().in_flight == 0


def test_nothing_leaves_before_the_call_is_committed(w: World) -> None:
    """Budget is reserved before the call (invariant 2 for what changes nothing)."""
    run = think(w, "once")
    die(w, run, "call.committed")
    (call,) = Call.objects.filter(run_id=run)
    assert (call.state, call.reserved, call.spent) == (CallState.COMMITTED, 100, None)
    assert w.sandbox.requests() == []
    assert Capacity.objects.get().in_flight == 1


def test_a_lost_one_is_asked_for_again_while_the_contract_bears_a_sample(w: World) -> None:
    """A lost computation is lost, never unknown; both samples are recorded, and which one was accepted."""
    run = think(w, "twice")
    die(w, run, "call.answered")
    with w.as_worker(w.me):
        w.drive(jump=timedelta(minutes=1))
    assert w.run(run).state == RunState.COMPLETED
    assert states(run) == [CallState.LOST, CallState.ANSWERED]
    assert len(w.heard(run)) == 1
    assert Capacity.objects.get().in_flight == 0


def test_a_lost_one_that_may_not_be_sampled_again_asks_a_person(w: World) -> None:
    """Another answer may differ: the contract says one, so a person says whether one more may be asked for."""
    run = think(w, "once")
    die(w, run, "call.answered")
    with w.as_worker(w.me):
        w.drive(jump=timedelta(minutes=1))
        assert w.run(run).state == RunState.QUARANTINED
        assert w.run(run).gate[0]["code"] == "computation_lost"
        assert states(run) == [CallState.LOST]
        released(w, run)
        w.drive(jump=timedelta(minutes=1))
    assert states(run) == [CallState.LOST, CallState.ANSWERED]
    assert w.run(run).state == RunState.COMPLETED


def test_an_accepted_output_is_used_for_ever(w: World) -> None:
    """A worker that dies after it was committed and before the step saw it: nothing is asked again."""
    run = think(w, "once")

    def fail() -> None:
        failpoints.disarm("advance.before_step")
        failpoints.arm("advance.before_step", die_now)

    def die_now() -> None:
        failpoints.disarm("advance.before_step")
        raise KeyboardInterrupt

    failpoints.arm("advance.before_step", fail)
    with pytest.raises(KeyboardInterrupt):
        w.advance(run)
    assert states(run) == [CallState.ANSWERED]
    w.dies(w.me)
    w.me = w.worker()
    with w.as_worker(w.me):
        w.drive(jump=timedelta(minutes=1))
    assert w.run(run).state == RunState.COMPLETED
    assert len(w.sandbox.requests()) == 1


def test_a_long_one_is_handed_and_the_run_holds_no_worker(w: World) -> None:
    """Invariant 11."""
    run = think(w, "long")
    assert w.advance(run).startswith("waits")
    row = w.run(run)
    assert (row.state, row.waiting_on, row.lease_owner) == (RunState.WAITING, WaitingOn.IN_FLIGHT, None)
    assert states(run) == [CallState.READY]
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert states(run) == [CallState.ANSWERED]


def test_a_sender_that_dies_with_it_is_noticed_by_the_run_itself(w: World) -> None:
    run = think(w, "long")
    w.advance(run)
    failpoints.arm("call.answered", "raise")
    with pytest.raises(failpoints.Failpoint):
        w.drive()
    failpoints.disarm()
    w.drive(jump=timedelta(minutes=3))
    assert states(run) == [CallState.LOST, CallState.ANSWERED]
    assert w.run(run).state == RunState.COMPLETED


def test_a_late_answer_of_a_call_taken_for_lost_changes_nothing(w: World) -> None:
    """Invariant 6: whoever comes late finds its call ended."""
    run = think(w, "long")
    w.advance(run)

    def late() -> None:
        failpoints.disarm("call.answered")
        clock.shift(timedelta(minutes=2))
        w.advance(run)

    failpoints.arm("call.answered", late)
    w.drive(jump=timedelta(minutes=3))
    assert states(run) == [CallState.LOST, CallState.ANSWERED]
    assert len(w.heard(run)) == 1


def test_what_was_not_taken_is_asked_for_again_and_costs_no_sample(w: World) -> None:
    w.sandbox.dial("notices", reply="overload", retry_after=30, times=2)
    run = think(w, "once")
    w.drive(jump=timedelta(minutes=2))
    asked = list(Call.objects.filter(run_id=run).order_by("n").values_list("asked_at", flat=True))
    assert all(later - sooner >= timedelta(seconds=30) for sooner, later in pairwise(asked)), "Retry-After is honoured"
    assert states(run) == [CallState.NOT_SENT, CallState.NOT_SENT, CallState.ANSWERED]
    assert [c.spent for c in Call.objects.filter(run_id=run).order_by("n")] == [0, 0, 40]


def test_it_is_given_up_at_its_deadline(w: World) -> None:
    """Bounded in time (invariant 10); the step hears why."""
    w.sandbox.dial("notices", reply="overload")
    run = think(w, "short")
    w.drive(jump=timedelta(minutes=2))
    assert w.heard(run) == [["refused", {"code": "deadline_passed", "facts": {}}]]
    assert w.run(run).state == RunState.FAILED


def test_a_refusal_reaches_the_step(w: World) -> None:
    w.sandbox.dial("notices", reply="reject", times=1)
    run = think(w, "once")
    w.drive()
    assert states(run) == [CallState.REFUSED]
    assert w.heard(run)[0][1]["code"] == "insufficient_funds"


def test_an_answer_that_does_not_fit_is_no_output(w: World) -> None:
    """Asked again within the samples; then the step hears that nothing fitted."""
    run = think(w, "odd")
    w.drive()
    assert states(run) == [CallState.REFUSED, CallState.REFUSED]
    assert w.heard(run)[0][1]["code"] == "output_invalid"


def test_a_run_spends_no_more_than_its_limit(w: World) -> None:
    """Reserved before, counted after: 40 + 100 fits into 150, 80 + 100 does not."""
    run = think(w, "dear", 3)
    w.drive()
    assert [h[0] for h in w.heard(run)] == ["answered", "answered", "refused"]
    assert w.heard(run)[2][1]["code"] == "budget_used_up"
    assert len(w.sandbox.requests()) == 2


def test_without_a_free_permit_it_is_handed(w: World) -> None:
    """Admission: the provider is a dependency like any other."""
    Capacity.objects.update(max_in_flight=0)
    run = think(w, "once")
    w.advance(run)
    assert states(run) == [CallState.READY]
    w.pass_once()
    assert w.sandbox.requests() == []
    Capacity.objects.update(max_in_flight=5)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_a_cancelled_run_asks_no_more(w: World) -> None:
    run = think(w, "long")
    w.advance(run)
    w.cancel(run)
    w.drive()
    assert w.run(run).state == RunState.CANCELLED
    assert states(run) == [CallState.NOT_SENT]
    assert w.sandbox.requests() == []


def test_a_call_that_is_out_when_its_run_is_cancelled_does_not_keep_its_permit(w: World) -> None:
    """Its sender died and its run looks no more: the sweep gives it up (invariant 12)."""
    run = think(w, "once")
    die(w, run, "call.committed")
    w.cancel(run)
    w.drive()
    assert w.run(run).state == RunState.CANCELLED
    assert states(run) == [CallState.LOST]
    assert Capacity.objects.get().in_flight == 0
    assert w.run(run).state == RunState.CANCELLED


def test_a_missing_credential_asks_nobody(w: World) -> None:
    Dependency.objects.filter(name="notices").update(credential="nowhere")
    run = think(w, "once")
    w.advance(run)
    assert states(run) == [CallState.NOT_SENT]
    assert Call.objects.get().outcome["code"] == "credential_missing"
