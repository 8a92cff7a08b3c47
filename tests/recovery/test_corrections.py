"""Corrections by people, and who may cancel: by the run's own contract."""

from __future__ import annotations

from uuid import UUID

import pytest

from recovery.actions import runs as actions
from recovery.actions.common import Done
from recovery.contract.errors import ParamsInvalid
from runs import errors
from runs.models import Signal
from runs.states import EventKind, RunState, WaitingOn
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later


def correct(w: World, run: UUID, name: str = "told", **payload: object) -> Done:
    return actions.correct(run, name, payload, actor=w.s.oncall_g, act=act("correct"), reason="it was a typing error")


def test_the_step_sees_it_with_its_reason(w: World) -> None:
    """One event, one signal, woken; the reason is in the history and with the step."""
    run = w.accept("test.nested", amount=0)
    w.drive()
    correct(w, run, text="right")
    w.drive()
    assert (w.run(run).state, w.heard(run)) == (RunState.COMPLETED, [["right", "it was a typing error"]])
    (event,) = w.events(run, EventKind.RUN_CORRECTED)
    assert (event.body["reason"], event.actor_id) == ("it was a typing error", w.s.oncall_g.pk)


def test_the_checks_before_going_on_see_it(w: World) -> None:
    """Check 7: newer events."""
    run = w.accept("test.late", "pay")
    w.drive()
    correct(w, run, text="later")
    later(minutes=11)
    w.drive()
    report = w.events(run, EventKind.RUN_CHECKED)[-1].data["checks"]
    assert next(line for line in report if line["n"] == 7)["facts"]["signals"] == ["told"]
    assert w.run(run).state == RunState.COMPLETED


def test_an_amendment_can_be_a_correction(w: World) -> None:
    """Like any signal it changes an effect that was not attempted; whoever corrected does not sign it (R4)."""
    run = w.accept("test.many", "pay", amount=120_500)
    w.advance(run)
    correct(w, run, "order.changed", amount=130_000)
    w.drive()
    effect = w.effect(run)
    assert (effect.revision, effect.params["amount"]) == (2, 130_000)
    assert str(w.s.oncall_g.pk) in effect.approvals.get(revision=2).editors


def test_what_is_refused(w: World) -> None:
    run = w.accept("test.waiter", mode="event")
    with pytest.raises(actions.UnknownSignal):
        correct(w, run, "never.declared")
    with pytest.raises(ParamsInvalid):
        correct(w, run, text=["a"])
    with pytest.raises(errors.ReasonNeeded):
        actions.correct(run, "told", {}, actor=w.s.oncall_g, act=act("correct"), reason="")
    with pytest.raises(errors.NotAllowed):
        actions.correct(run, "told", {}, actor=w.s.auditor_d, act=act("correct"), reason="x")
    with pytest.raises(errors.NotFound):
        actions.correct(run, "told", {}, actor=w.s.outsider_e, act=act("correct"), reason="x")
    assert Signal.objects.count() == 0
    ended = w.accept("test.many", "pay")
    w.drive()
    with pytest.raises(errors.RunEnded):
        correct(w, ended, text="x")


def test_twice_is_once(w: World) -> None:
    """Invariant 15."""
    run = w.accept("test.waiter", mode="event")
    mine = act("correct")
    for _again in range(2):
        actions.correct(run, "told", {"text": "a"}, actor=w.s.oncall_g, act=mine, reason="x")
    assert Signal.objects.filter(run_id=run).count() == 1


def test_who_may_cancel_is_the_contracts_word(w: World) -> None:
    """``cancel_needs``: here the right to audit; who holds only the usual one may not."""
    run = w.accept("test.guarded", mode="event")
    with pytest.raises(errors.NotAllowed) as refused:
        actions.cancel(run, actor=w.s.oncall_a, act=act("cancel"), reason="no")
    assert refused.value.facts["permission"] == "audit"
    actions.cancel(run, actor=w.s.auditor_d, act=act("cancel"), reason="no")
    w.drive()
    assert w.run(run).state == RunState.CANCELLED
    assert w.run(run).waiting_on == ""


def test_without_its_code_the_usual_right_is_asked(w: World) -> None:
    from recovery.contract import registry

    run = w.accept("test.guarded", mode="event")
    w.drive()
    del registry._registry._run_types["test.guarded", 1]
    w.drive()
    assert w.run(run).waiting_on == WaitingOn.EVENT
    w.cancel(run)
    w.drive()
    assert w.run(run).state == RunState.CANCELLED
