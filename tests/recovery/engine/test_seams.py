"""Where two rooms of the engine meet: what each forbids alone holds when both are at work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from recovery import failpoints
from recovery.actions import dependencies, ends, pauses, quarantine
from recovery.contract import registry
from recovery.engine import computing
from recovery.engine.dispatch import dispatch
from runs import access, clock
from runs.models import Call, Capacity, Dependency, Person, Run
from runs.states import BreakerState, CallState, RunState
from tests.recovery.engine import computes
from tests.recovery.engine.test_computes import states, think
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later


def ask_and_die(w: World, run: UUID) -> Call:
    """A sender that died with the call out."""
    w.advance(run)
    call = Call.objects.get(run_id=run)

    def fail() -> None:
        failpoints.disarm("call.committed")
        raise KeyboardInterrupt

    failpoints.arm("call.committed", fail)
    with pytest.raises(KeyboardInterrupt):
        computing.ask(call.pk)
    return call


def test_a_call_that_was_out_when_its_run_ended_gives_its_permit_back(w: World) -> None:
    """Nobody of an ended run looks at its call any more: the sweep does (a permit that leaks stops a dependency)."""
    run = think(w, "long")
    ask_and_die(w, run)
    assert Capacity.objects.get().in_flight == 1
    w.cancel(run)
    w.drive()
    assert w.run(run).state == RunState.CANCELLED
    later(minutes=5)
    w.drive(jump=timedelta(minutes=5))
    assert states(run) == [CallState.LOST]
    assert Capacity.objects.get().in_flight == 0


def test_a_probe_that_was_such_a_call_does_not_keep_the_breaker_half_open(w: World) -> None:
    """It counts as a probe that failed; the breaker opens, and asks again after its pause."""
    run = think(w, "long")
    w.advance(run)
    Capacity.objects.update(state=BreakerState.HALF_OPEN)
    call = Call.objects.get()
    failpoints.arm("call.committed", "raise")
    with pytest.raises(failpoints.Failpoint):
        computing.ask(call.pk)
    failpoints.disarm()
    ends.abort(run, actor=_override(w), act=act("abort"), reason="stuck")
    later(minutes=5)
    for _ in range(3):
        w.pass_once()
    capacity = Capacity.objects.get()
    assert (capacity.in_flight, capacity.probe) == (0, None)
    assert capacity.state == BreakerState.OPEN, "a probe that was lost has failed: it is asked again after a pause"


def _override(w: World) -> Person:
    access.grant(w.s.oncall_a, w.s.here, ["on-call", "administrator"])
    return w.s.oncall_a


def test_a_handed_call_is_not_made_after_its_deadline(w: World) -> None:
    """Invariant 12: what expired while its dependency was held is not asked; the step hears why."""
    where = Dependency.objects.get(name="notices", workspace=w.s.here)
    dependencies.hold(where.pk, actor=w.s.oncall_a, act=act("hold"), reason="outage")
    run = think(w, "short")
    w.pass_once()
    assert states(run) == [CallState.READY]
    later(minutes=5)
    w.pass_once()
    dependencies.release(where.pk, actor=w.s.oncall_a, act=act("release"), reason="over")
    w.drive()
    assert w.sandbox.requests() == []
    assert w.heard(run) == [["refused", {"code": "deadline_passed", "facts": {}}]]


def test_after_a_pause_nothing_is_sent_before_the_checks_have_passed(w: World) -> None:
    """Invariant 13: a doorbell for a ready effect that comes between the resumption and the checks sends nothing."""
    run = w.accept("test.many", "slow", "mail")
    w.advance(run)
    pauses.pause(run, actor=w.s.oncall_a, act=act("pause"), reason="outage")
    w.drive()
    later(hours=3)
    pauses.resume(run, actor=w.s.oncall_g, act=act("resume"), reason="over")
    for effect in w.effects(run):
        assert dispatch(effect.pk) == "waits for a person"
    assert w.sandbox.requests() == []
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_a_paused_run_keeps_no_permit_of_a_call_whose_sender_died(w: World) -> None:
    run = think(w, "long")
    ask_and_die(w, run)
    pauses.pause(run, actor=w.s.oncall_a, act=act("pause"), reason="outage")
    w.drive(jump=timedelta(minutes=5))
    assert w.run(run).state == RunState.PAUSED
    assert Capacity.objects.get().in_flight == 0
    pauses.resume(run, actor=w.s.oncall_g, act=act("resume"), reason="over")
    w.drive(jump=timedelta(minutes=5))
    assert w.run(run).state == RunState.COMPLETED


def test_a_released_run_whose_version_is_missing_still_sends_nothing(w: World) -> None:
    """Invariant 13: waiting for code is no word that the checks have passed."""

    run = w.accept("test.many", "slow", "mail")
    w.advance(run)
    Run.objects.filter(pk=run).update(wake_at=clock.now(), tries=9)
    w.advance(run)
    row = w.run(run)
    assert row.state == RunState.QUARANTINED
    quarantine.release(run, actor=w.s.oncall_a, act=act("release"), reason="fixed", version=row.version)
    known = registry._registry._run_types
    kept = {key: known.pop(key) for key in list(known) if "test.many" in key}
    assert kept
    assert w.advance(run) == "unknown_run_type"
    for effect in w.effects(run):
        assert dispatch(effect.pk) == "waits for a person"
    assert [line["code"] for line in w.run(run).gate] == ["unknown_run_type", "released"]
    w.drive()
    assert w.sandbox.requests() == []
    known |= kept
    w.drive(jump=timedelta(minutes=2))
    assert w.run(run).state == RunState.COMPLETED


@pytest.mark.parametrize("spent", [lambda r: r.nothing, lambda r: 10**30, lambda r: -(10**6), lambda r: 1 / 0])
def test_what_an_author_counts_wrongly_is_no_output_and_keeps_no_permit(w: World, spent: Callable[..., Any]) -> None:
    """What raised or no column holds would lose the answer, and its permit, and ask again."""
    object.__setattr__(computes.once, "spent", spent)
    try:
        run = think(w, "once")
        w.drive(jump=timedelta(minutes=5))
    finally:
        object.__setattr__(computes.once, "spent", lambda result: 40)
    assert states(run) == [CallState.REFUSED]
    assert w.heard(run)[0][1]["code"] == "output_invalid"
    assert Capacity.objects.get().in_flight == 0
