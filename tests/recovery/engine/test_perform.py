"""Who sends: the run's owner or the senders, one effect or many, with a permit or without."""

from __future__ import annotations

from runs.models import Capacity
from runs.states import EffectState, EventKind, RunState, WaitingOn
from tests.recovery.engine.world import World


def how(w: World, run: object) -> list[str]:
    return [e.data["how"] for e in w.events(run, EventKind.EFFECT_SENT)]  # type: ignore[arg-type]


def test_one_short_effect_is_sent_by_the_runs_owner(w: World) -> None:
    run = w.accept("test.many", "pay")
    assert w.advance(run) == "completed"
    assert how(w, run) == ["inline"] and w.effect(run).inline


def test_a_long_call_is_handed_over_and_the_lease_released(w: World) -> None:
    """Its timeout is above 10 s: the owner does not wait for it."""
    run = w.accept("test.many", "slow")
    assert w.advance(run) == "waits: in_flight"
    assert w.effect(run).state == EffectState.READY
    assert w.run(run).lease_owner is None
    w.drive()
    assert how(w, run) == ["handed"]
    assert w.run(run).state == RunState.COMPLETED


def test_many_effects_are_handed_and_then_is_called_once_with_all(w: World) -> None:
    """``join="all"``, in the order asked; none is sent by the owner."""
    run = w.accept("test.many", "pay", "card", "mail", "notice")
    w.drive()
    assert w.heard(run) == [["succeeded"] * 4]
    assert how(w, run) == ["handed"] * 4
    assert [w.applied(e) for e in w.effects(run)] == [1] * 4


def test_then_is_called_at_the_first_that_did_not_succeed(w: World) -> None:
    """Others still open are told as they are; the run ends only when they are settled (invariant 4), and
    ``then`` is not called again."""
    w.sandbox.dial("cards-eu", reply="reject")
    w.sandbox.dial("mail", reply="drop")
    run = w.accept("test.many", "mail", "card")
    w.advance(run)
    mail, card = w.effects(run)
    w.dispatch(mail)
    w.dispatch(card)
    assert w.effect_states(run) == ["unknown", "rejected"]
    assert w.advance(run) == "waits: unknown"
    w.sandbox.reset()
    w.drive(jump=w.FAR)
    assert w.run(run).state == RunState.FAILED
    assert w.heard(run) == [["unknown", "rejected"]]
    assert w.applied(mail) == 1


def test_ending_with_an_open_effect_waits_and_unsent_ones_are_dropped(w: World) -> None:
    """Invariant 4: nothing ends over an unknown; what was not sent is cancelled, not sent afterwards."""
    w.sandbox.dial("cards-eu", reply="reject")
    run = w.accept("test.many", "card", "pay", "notice")
    w.advance(run)
    card, pay, notice = w.effects(run)
    w.sandbox.dial("notices", reply="drop")
    w.dispatch(card)
    w.dispatch(notice)
    w.advance(run)
    assert w.effect_states(run) == ["rejected", "cancelled", "unknown"]
    row = w.run(run)
    assert (row.state, row.waiting_on) == (RunState.WAITING, WaitingOn.UNKNOWN)
    w.drive()
    assert w.run(run).state == RunState.WAITING, "a person decides about the notice"
    assert w.heard(run) == [["rejected", "ready", "unknown"]], "then was called once"
    assert w.applied(pay) == 0


def test_without_a_free_permit_the_effect_is_handed_over(w: World) -> None:
    """The owner does not queue for a permit: it leaves the effect ready, and a sender takes it later."""
    Capacity.objects.update(in_flight=50)
    run = w.accept("test.many", "pay")
    assert w.advance(run) == "waits: in_flight"
    assert w.effect(run).state == EffectState.READY
    assert w.dispatch(w.effect(run)) == "no permit"
    assert w.sandbox.requests() == []
    Capacity.objects.update(in_flight=0)
    w.drive()
    assert how(w, run) == ["handed"]
    assert w.run(run).state == RunState.COMPLETED


def test_every_permit_comes_back(w: World) -> None:
    """Answered, lost, not sent: whatever an attempt came to, its permit is free again."""
    w.sandbox.dial("payments", reply="drop", times=1)
    w.sandbox.dial("mail", reply="refuse", times=1)
    runs = [w.accept("test.many", name) for name in ("pay", "pay", "mail", "notice")]
    w.drive(jump=w.FAR)
    assert all(w.run(run).state == RunState.COMPLETED for run in runs)
    assert Capacity.objects.get().in_flight == 0
