"""Real sends to a capacity with a rate: in a lane, inline, again under the same key, and readbacks."""

from __future__ import annotations

from runs.models import Capacity, Dependency
from runs.states import EffectState
from tests.recovery.engine.world import World


def test_everything_goes_at_its_moment_and_nothing_is_lost(w: World) -> None:
    Capacity.objects.update(rate=50)
    Dependency.objects.filter(workspace=w.s.here, name="payments").update(share=0.5)
    w.sandbox.dial("payments", reply="drop", times=1)
    runs = [w.accept("test.many", "slow", "slow"), w.accept("test.many", "pay"), w.accept("test.many", "pay")]
    w.drive(jump=w.FAR)
    assert {state for run in runs for state in w.effect_states(run)} == {EffectState.SUCCEEDED}
    capacity = Capacity.objects.get()
    assert (capacity.in_flight, capacity.next_at is not None) == (0, True)


def test_what_has_no_moment_soon_is_handed_over_and_waits_in_the_lane(w: World) -> None:
    """The run's own worker waits for no more than a moment; a sender waits for its own."""
    Capacity.objects.update(rate=1)
    runs = [w.accept("test.many", "pay") for _ in range(2)]
    for run in runs:
        w.advance(run)
    first, second = (w.effect(run) for run in runs)
    assert (first.state, second.state) == (EffectState.SUCCEEDED, EffectState.READY)
    assert w.dispatch(second) == EffectState.SUCCEEDED
    assert len(w.sandbox.requests()) == 2
