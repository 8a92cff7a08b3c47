"""A pause: nothing new is sent, what is in flight settles, the rest waits until a person lets it go on."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from recovery import failpoints
from recovery.actions import pauses
from recovery.engine.dispatch import dispatch
from runs import access, errors
from runs.states import EffectState, EventKind, ReviewKind, RunState, Scope, WaitingOn
from tests.recovery.engine.world import World
from tests.recovery.signers import sign
from tests.recovery.stage import act, later


def pause(w: World, run: UUID, scope: Scope = Scope.RUN) -> None:
    pauses.pause(run, actor=w.s.oncall_a, act=act("pause"), reason="an outage over there", scope=scope)


def resume(w: World, run: UUID) -> None:
    pauses.resume(run, actor=w.s.oncall_g, act=act("resume"), reason="over")


def test_before_it_began(w: World) -> None:
    """Invariant 13: going on after a pause is checked, also where no step was called yet."""
    run = w.accept("test.many", "pay")
    pause(w, run)
    w.drive()
    row = w.run(run)
    assert (row.state, row.lease_owner, row.wake_at) == (RunState.PAUSED, None, None)
    assert w.sandbox.requests() == []
    resume(w, run)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert [e.data["why"] for e in w.events(run, EventKind.RUN_CHECKED)] == ["paused"]


def test_what_is_ready_is_not_sent(w: World) -> None:
    """Also by a doorbell that is late; and it goes out after the pause, once."""
    run = w.accept("test.many", "slow", "mail")
    w.advance(run)
    pause(w, run)
    w.drive()
    assert w.run(run).state == RunState.PAUSED
    for effect in w.effects(run):
        assert dispatch(effect.pk) == "run_paused"
    assert w.effect_states(run) == ["ready", "ready"] and w.sandbox.requests() == []
    resume(w, run)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert len(w.sandbox.requests()) == 2


def test_while_the_answer_is_under_way(w: World) -> None:
    """The owner is sending when the pause comes: the outcome is kept, no step is called, nothing more is sent."""
    run = w.accept("test.chain", "pay", "pay")
    failpoints.arm("send.after", lambda: pause(w, run))
    assert w.advance(run) == "paused"
    failpoints.disarm()
    assert (w.run(run).state, w.effect_states(run)) == (RunState.PAUSED, ["succeeded"])
    w.drive()
    assert len(w.sandbox.requests()) == 1
    resume(w, run)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert w.heard(run) == ["succeeded", "succeeded"]
    assert len(w.sandbox.requests()) == 2


def test_pausing_until_what_is_in_flight_has_settled(w: World) -> None:
    """Pausing while a sender waits for the answer, and no longer."""
    run = w.accept("test.many", "slow")
    w.advance(run)
    seen: list[tuple[str, str, object]] = []

    def meanwhile() -> None:
        pause(w, run)
        w.advance(run)
        row = w.run(run)
        seen.append((row.state, row.waiting_on, row.lease_owner))

    failpoints.arm("send.after", meanwhile)
    assert dispatch(w.effect(run).pk) == EffectState.SUCCEEDED
    failpoints.disarm()
    assert seen == [(RunState.PAUSING, WaitingOn.IN_FLIGHT, None)]
    w.drive()
    assert w.run(run).state == RunState.PAUSED
    resume(w, run)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_it_is_over_when_the_last_in_flight_settles_though_others_wait(w: World) -> None:
    """One is in flight, another waits for signatures: it is paused when the first has settled."""
    run = w.accept("test.many", "slow", "pay", amount=120_500)
    w.advance(run)
    first, second = w.effects(run)

    def meanwhile() -> None:
        pause(w, run)
        assert w.advance(run) == RunState.PAUSING

    failpoints.arm("send.after", meanwhile)
    dispatch(first.pk)
    failpoints.disarm()
    w.drive()
    assert (w.run(run).state, w.effect_states(run)) == (RunState.PAUSED, ["succeeded", "awaiting_approval"])
    assert second.approvals.get().state == "pending"


def test_signatures_given_meanwhile_send_nothing(w: World) -> None:
    run = w.accept("test.many", "pay", amount=120_500)
    w.advance(run)
    pause(w, run)
    w.drive()
    approval = w.effect(run).approvals.get()
    sign(approval, w.s.approver_b)
    sign(approval, w.s.approver_c)
    w.drive()
    assert (w.effect(run).state, w.sandbox.requests()) == (EffectState.READY, [])
    resume(w, run)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_an_unknown_outcome_does_not_hinder_it_and_is_named(w: World) -> None:
    """Invariant 4: read, never sent again while it is paused; a readback ends it and the run stays paused."""
    w.sandbox.dial("payments", reply="drop", times=1)
    w.sandbox.dial("payments", readback="down")
    run = w.accept("test.many", "pay")
    w.advance(run)
    pause(w, run)
    w.drive(jump=timedelta(minutes=2))
    assert (w.run(run).state, w.effect(run).state) == (RunState.PAUSED, EffectState.UNKNOWN)
    (paused,) = w.events(run, EventKind.RUN_PAUSED)
    assert [one["effect"] for one in paused.data["unknown"]] == [str(w.effect(run).pk)]
    assert len(w.sandbox.requests()) == 1
    w.sandbox.dial("payments", readback="ok")
    w.drive(jump=timedelta(minutes=10))
    assert (w.run(run).state, w.effect(run).state) == (RunState.PAUSED, EffectState.SUCCEEDED)
    resume(w, run)
    w.drive()
    assert (w.run(run).state, len(w.sandbox.requests())) == (RunState.COMPLETED, 1)


def test_what_can_only_be_sent_again_waits_for_the_person(w: World) -> None:
    """Keys and no readback: the same key goes out again only after the pause."""
    w.sandbox.dial("mail", reply="drop", times=1)
    run = w.accept("test.many", "mail")
    w.advance(run)
    pause(w, run)
    w.drive(jump=timedelta(seconds=70))
    assert (w.run(run).state, w.effect(run).state) == (RunState.PAUSED, EffectState.UNKNOWN)
    assert w.effect(run).decision["reason"] == "run_paused"
    assert len(w.sandbox.requests()) == 1
    resume(w, run)
    w.drive(jump=timedelta(minutes=2))
    assert w.run(run).state == RunState.COMPLETED
    assert len(w.sandbox.requests()) == 2 and w.applied(w.effect(run)) == 1


def test_a_timer_that_comes_due_waits(w: World) -> None:
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    pause(w, run)
    w.drive(jump=timedelta(hours=1))
    later(hours=1)
    w.drive()
    assert (w.run(run).state, w.heard(run)) == (RunState.PAUSED, [])
    resume(w, run)
    w.drive()
    assert (w.run(run).state, w.heard(run)) == (RunState.COMPLETED, [None])


def test_a_timer_that_is_not_due_after_the_pause_is_waited_for(w: World) -> None:
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    due = w.run(run).wake_at
    pause(w, run)
    w.drive()
    resume(w, run)
    w.drive()
    assert (w.run(run).waiting_on, w.run(run).wake_at) == (WaitingOn.TIMER, due)
    w.drive(jump=timedelta(minutes=11))
    assert w.run(run).state == RunState.COMPLETED


def test_a_signal_is_kept(w: World) -> None:
    run = w.accept("test.waiter", mode="event")
    w.drive()
    pause(w, run)
    w.drive()
    w.signal(run, "told", text="meanwhile")
    w.drive()
    assert (w.run(run).state, w.heard(run)) == (RunState.PAUSED, [])
    resume(w, run)
    w.drive()
    assert (w.run(run).state, w.heard(run)) == (RunState.COMPLETED, ["meanwhile"])


def test_the_deadline_goes_on(w: World) -> None:
    """It expires as usual: what is unsent ends with it."""
    run = w.accept("test.bounded", "slow", "mail")
    w.advance(run)
    pause(w, run)
    w.drive()
    w.drive(jump=timedelta(hours=3))
    assert (w.run(run).state, w.effect_states(run)) == (RunState.EXPIRED, ["expired", "expired"])
    assert w.sandbox.requests() == []
    with pytest.raises(errors.RunEnded):
        resume(w, run)


def test_the_deadline_waits_for_what_nobody_knows(w: World) -> None:
    """Invariant 4: a clock does not end an unknown outcome; the paused run expires once it is settled."""
    w.sandbox.dial("payments", reply="drop", times=1)
    w.sandbox.dial("payments", readback="down")
    run = w.accept("test.bounded", "pay")
    w.advance(run)
    pause(w, run)
    w.drive(jump=timedelta(hours=3), passes=400)
    assert (w.run(run).state, w.effect(run).state) == (RunState.PAUSED, EffectState.UNKNOWN)
    w.sandbox.dial("payments", readback="ok")
    w.drive(jump=timedelta(hours=1))
    assert (w.run(run).state, w.effect(run).state) == (RunState.EXPIRED, EffectState.SUCCEEDED)


def test_let_go_on_before_it_has_settled(w: World) -> None:
    """The pause is lifted while the owner is still sending: it gives the run back, and it goes on from the record."""
    run = w.accept("test.chain", "pay", "pay")

    def both() -> None:
        failpoints.disarm()
        pause(w, run)
        resume(w, run)

    failpoints.arm("send.after", both)
    assert w.advance(run) == "given back"
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert len(w.sandbox.requests()) == 2


def test_cancelled_while_paused(w: World) -> None:
    run = w.accept("test.many", "slow", "mail")
    w.advance(run)
    pause(w, run)
    w.drive()
    w.cancel(run)
    w.drive()
    assert (w.run(run).state, w.effect_states(run)) == (RunState.CANCELLED, ["cancelled", "cancelled"])


def test_what_cannot_be_paused_is_refused_by_name(w: World) -> None:
    ended, quarantined = w.accept("test.many", "pay"), w.accept("test.broken", mode="raises")
    w.sandbox.dial("mail", reply="drop", times=9)
    cancelling = w.accept("test.many", "mail")
    w.drive()
    w.cancel(cancelling)
    w.drive()
    with pytest.raises(errors.RunEnded):
        pause(w, ended)
    for run in (quarantined, cancelling):
        with pytest.raises(errors.RunsError) as refused:
            pause(w, run)
        assert (refused.value.code, refused.value.facts["state"]) == ("not_pausable", w.run(run).state)
    waiting = w.accept("test.waiter", mode="event")
    with pytest.raises(errors.RunsError) as refused:
        resume(w, waiting)
    assert refused.value.code == "not_paused"


def test_who_may(w: World) -> None:
    """Invariant 14 for the outsider."""
    run = w.accept("test.waiter", mode="event")
    with pytest.raises(errors.NotAllowed):
        pauses.pause(run, actor=w.s.auditor_d, act=act("pause"), reason="no")
    with pytest.raises(errors.NotFound):
        pauses.pause(run, actor=w.s.outsider_e, act=act("pause"), reason="no")
    with pytest.raises(errors.ReasonNeeded):
        pauses.pause(run, actor=w.s.oncall_a, act=act("pause"), reason=" ")


def test_twice_is_once(w: World) -> None:
    """Invariant 15: the same act gives the first result; another's changes nothing and is told who was first."""
    run = w.accept("test.waiter", mode="event")
    mine = act("pause")
    first = pauses.pause(run, actor=w.s.oncall_a, act=mine, reason="a")
    again = pauses.pause(run, actor=w.s.oncall_a, act=mine, reason="a")
    assert (again.event, again.replayed) == (first.event, True)
    other = pauses.pause(run, actor=w.s.oncall_g, act=act("pause"), reason="b")
    assert other.facts["by"] == w.s.oncall_a.name
    w.drive()
    assert len(w.events(run, EventKind.RUN_PAUSED)) == 1


def test_it_counts_as_away(w: World) -> None:
    """Invariant 13: a starter who lost the right meanwhile is found before anything more is sent."""
    run = w.accept("test.late", "pay")
    w.drive()
    pause(w, run)
    w.drive()
    access.grant(w.s.oncall_a, w.s.here, [])
    resume(w, run)
    w.drive()
    assert (w.run(run).waiting_on, w.reviews(run)) == (WaitingOn.PERSON, [ReviewKind.RESUMPTION])
    assert w.sandbox.requests() == []
