"""Cancelling is a request: nothing new is sent, what was sent is settled, only then is it cancelled."""

from __future__ import annotations

from datetime import timedelta

import pytest

from recovery import failpoints
from recovery.actions import runs as actions
from runs import errors
from runs.models import Approval, Checkpoint
from runs.record import Committed
from runs.states import ApprovalState, EffectState, EventKind, ReviewKind, RunState, WaitingOn
from tests.recovery.engine.world import World
from tests.recovery.signers import sign
from tests.recovery.stage import act
from tests.runs.make import forget


def test_before_anything_began(w: World) -> None:
    run = w.accept("test.many", "pay")
    w.cancel(run)
    w.drive()
    assert w.run(run).state == RunState.CANCELLED
    assert w.sandbox.requests() == []


def test_before_the_send(w: World) -> None:
    """What is ready is cancelled, not sent."""
    run = w.accept("test.many", "slow", "mail")
    w.advance(run)
    w.cancel(run)
    w.drive()
    assert w.effect_states(run) == ["cancelled", "cancelled"]
    assert w.run(run).state == RunState.CANCELLED
    assert w.sandbox.requests() == []


def test_a_request_for_signatures_is_revoked(w: World) -> None:
    """Invariant 8: no signature brings it back."""
    run = w.accept("test.many", "pay", amount=120_500)
    w.advance(run)
    w.cancel(run)
    w.drive()
    approval = Approval.objects.get()
    assert (approval.state, w.reviews(run)) == (ApprovalState.REVOKED, [])
    with pytest.raises(errors.RunsError):
        sign(approval, w.s.approver_b)


def test_while_the_answer_is_under_way(w: World) -> None:
    """Fault 34: sent before, so its outcome is waited for; no step is called after it; the residue is named."""
    run = w.accept("test.chain", "pay", "pay")
    failpoints.arm("send.after", lambda: w.cancel(run))
    assert w.advance(run) == "cancelled"
    row, effect = w.run(run), w.effect(run)
    assert (row.state, effect.state) == (RunState.CANCELLED, EffectState.SUCCEEDED)
    assert [left["effect"] for left in row.ended_how["left"]] == [str(effect.pk)]
    assert w.applied(effect) == 1 and len(w.sandbox.requests()) == 1


def test_between_two_effects(w: World) -> None:
    """The request comes while a step runs: what that step asks for is not sent."""
    run = w.accept("test.chain", "pay", "pay")
    steps: list[int] = []

    def at_the_second() -> None:
        steps.append(1)
        if len(steps) == 2:
            w.cancel(run)

    failpoints.arm("advance.before_step", at_the_second)
    assert w.advance(run) == "cancelled"
    assert len(w.effects(run)) == 1 and len(w.sandbox.requests()) == 1


def test_a_slow_step_does_not_send_after_the_request(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome is committed alone while the step takes its time, and the request came before that: what the step
    asks for is not sent.
    """
    from recovery.engine.session import Session

    run = w.accept("test.chain", "pay", "pay")
    sessions: list[Session] = []
    take = Session.take

    def taken(self: Session, done: Committed, began: float) -> None:
        take(self, done, began)
        sessions.append(self)

    monkeypatch.setattr(Session, "take", taken)

    def slow() -> None:
        if sessions and sessions[-1].buffer:
            w.cancel(run)
            sessions[-1].flush()

    failpoints.arm("advance.before_step", slow)
    assert w.advance(run) == "cancelled"
    assert len(w.sandbox.requests()) == 1


def test_while_the_outcome_is_unknown(w: World) -> None:
    """Only reads: the same key again could make the cancelled thing happen. It stays until evidence or a person."""
    w.sandbox.dial("mail", reply="drop", times=1)
    run = w.accept("test.many", "mail")
    w.advance(run)
    w.cancel(run)
    w.drive(jump=timedelta(hours=2))
    row, effect = w.run(run), w.effect(run)
    assert (row.state, effect.state) == (RunState.CANCELLING, EffectState.UNKNOWN)
    assert effect.decision["reason"] == "cancelling_reads_only"
    assert w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN]
    assert (row.waiting_on, row.lease_owner) == (WaitingOn.UNKNOWN, None)
    assert len(w.sandbox.requests()) == 1


def test_reading_settles_it_and_then_it_is_cancelled(w: World) -> None:
    w.sandbox.dial("payments", reply="drop", times=1)
    w.sandbox.dial("payments", readback="down")
    run = w.accept("test.many", "pay")
    w.advance(run)
    w.cancel(run)
    w.drive()
    assert w.run(run).state == RunState.CANCELLING
    w.sandbox.dial("payments", readback="ok")
    w.drive(jump=timedelta(minutes=10))
    row = w.run(run)
    assert row.state == RunState.CANCELLED
    assert row.ended_how["left"][0]["state"] == EffectState.SUCCEEDED
    assert len(w.sandbox.requests()) == 1


def test_what_was_known_not_sent_is_cancelled(w: World) -> None:
    w.sandbox.dial("payments", reply="refuse")
    run = w.accept("test.many", "pay")
    w.advance(run)
    w.cancel(run)
    w.drive(jump=timedelta(hours=1))
    assert (w.effect(run).state, w.run(run).state) == (EffectState.CANCELLED, RunState.CANCELLED)
    assert len(w.sandbox.requests()) == 1


def test_a_waiting_run_is_cancelled_at_once(w: World) -> None:
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    w.cancel(run)
    w.drive()
    assert w.run(run).state == RunState.CANCELLED
    assert w.heard(run) == []


def test_a_quarantined_run_can_be_cancelled(w: World) -> None:
    """Quarantine is left by a person; that needs neither the code nor the checkpoint that put it there."""
    run = w.accept("test.broken", "pay", mode="raises")
    w.drive()
    assert w.run(run).state == RunState.QUARANTINED
    w.cancel(run)
    w.drive()
    row = w.run(run)
    assert (row.state, w.reviews(run)) == (RunState.CANCELLED, [])
    assert len(row.ended_how["left"]) == 1


def test_a_run_with_a_damaged_checkpoint_can_be_cancelled(w: World) -> None:
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    Checkpoint.objects.filter(run_id=run).update(sealed=b"RCK1 damaged")
    forget(run)
    w.cancel(run)
    w.drive()
    assert w.run(run).state == RunState.CANCELLED


def test_a_run_whose_type_this_worker_does_not_know_can_be_cancelled(w: World) -> None:
    from recovery.contract import registry

    run = w.accept("test.waiter", mode="timer")
    w.drive()
    del registry._registry._run_types["test.waiter", 1]
    w.cancel(run)
    w.drive()
    assert w.run(run).state == RunState.CANCELLED


def test_asking_twice_is_asking_once(w: World) -> None:
    """Invariant 15: another person's request changes nothing and is told who was first."""
    run = w.accept("test.many", "slow")
    w.advance(run)
    w.cancel(run)
    again = actions.cancel(run, actor=w.s.oncall_g, act=act("cancel"), reason="me too")
    assert again.facts["by"] == w.s.oncall_a.name
    w.drive()
    assert len(w.events(run, EventKind.RUN_CANCELLED)) == 1
    with pytest.raises(errors.RunEnded):
        w.cancel(run)


def test_an_ended_run_stays_ended(w: World) -> None:
    """Invariant 5."""
    run = w.accept("test.many", "pay")
    w.drive()
    with pytest.raises(errors.RunEnded):
        w.cancel(run)
    assert w.run(run).state == RunState.COMPLETED


def test_success_after_the_cancel_is_residue_not_revival(w: World) -> None:
    """Fault 33: a late answer tells that it happened; the run still ends cancelled."""
    w.sandbox.dial("payments", reply="slow", delay=0.5, times=1)
    run = w.accept("test.chain", "brief", "pay")
    w.advance(run)
    assert w.effect(run).state == EffectState.UNKNOWN
    w.cancel(run)
    w.drive(jump=timedelta(minutes=5))
    row = w.run(run)
    assert (row.state, w.effect(run).state) == (RunState.CANCELLED, EffectState.SUCCEEDED)
    assert len(w.effects(run)) == 1
