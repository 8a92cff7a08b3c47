"""One intent, one effect: what happens when a key is met again (invariant 3)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.models import Effect, EffectLink
from runs.states import EffectState, EventKind, RunState, WaitingOn
from tests.recovery.engine.world import World
from tests.recovery.stage import later


def test_another_run_with_the_same_intent_links_and_waits(w: World) -> None:
    """Same key, same digest: the existing effect; only its owner sends."""
    owner = w.accept("test.many", ("slow", "ch_same"))
    w.advance(owner)
    other = w.accept("test.many", ("slow", "ch_same"))
    assert w.advance(other) == "waits: in_flight"
    effect = w.effect(owner)
    assert w.effects(other) == []
    assert EffectLink.objects.get().run_id == other
    assert w.events(other, EventKind.EFFECT_MET)[0].data["owner"] == str(owner)
    w.drive()
    assert [w.run(r).state for r in (owner, other)] == [RunState.COMPLETED, RunState.COMPLETED]
    assert w.heard(other) == [["succeeded"]]
    assert w.applied(effect) == 1


@pytest.mark.parametrize("kind", ["test.many", "test.bounded"])
def test_the_linked_run_waits_as_long_as_it_takes(w: World, kind: str) -> None:
    """It holds no worker meanwhile (invariant 11), also where the run has a deadline of its own, and it is woken
    when the owner's effect settles.
    """
    w.sandbox.dial("cards-eu", reply="refuse", times=2)
    owner = w.accept("test.many", ("card", "ch_same"))
    w.advance(owner)
    other = w.accept(kind, ("card", "ch_same"))
    w.advance(other)
    w.drive()
    looked = len(w.events(other, EventKind.RUN_LEASED))
    w.drive()
    assert len(w.events(other, EventKind.RUN_LEASED)) == looked == 1
    w.drive(jump=timedelta(minutes=1))
    assert [w.run(r).state for r in (owner, other)] == [RunState.COMPLETED, RunState.COMPLETED]


def test_a_linked_effect_that_did_not_succeed_wakes_at_once(w: World) -> None:
    """``then`` is called at the first that did not succeed, whoever sent it, while another one is still open."""
    w.sandbox.dial("cards-eu", reply="reject")
    w.sandbox.dial("notices", reply="drop")
    owner = w.accept("test.many", ("card", "ch_same"), "mail")
    w.advance(owner)
    other = w.accept("test.many", ("card", "ch_same"), "notice")
    w.advance(other)
    w.drive()
    assert w.heard(other)[0][0] == "rejected"
    assert w.run(other).state == RunState.WAITING, "its own notice is unknown"
    looked = len(w.events(other, EventKind.RUN_LEASED))
    w.drive()
    assert len(w.events(other, EventKind.RUN_LEASED)) == looked, "and it is not woken for it again and again"


def test_the_linked_run_waits_for_a_person_too(w: World) -> None:
    w.sandbox.dial("notices", reply="drop")
    owner = w.accept("test.many", ("notice", "ch_same"))
    w.advance(owner)
    other = w.accept("test.many", ("notice", "ch_same"))
    assert w.advance(other) == "waits: unknown"
    assert w.run(other).waiting_on == WaitingOn.UNKNOWN
    assert w.reviews(other) == [] and len(w.reviews(owner)) == 1


def test_meeting_what_has_succeeded_needs_no_second_send(w: World) -> None:
    """Repeating finished work is doing nothing: the step gets the old outcome with its evidence."""
    first = w.accept("test.many", ("pay", "ch_same"))
    w.drive()
    second = w.accept("test.many", ("pay", "ch_same"))
    w.drive()
    effect = w.effect(first)
    assert w.run(second).state == RunState.COMPLETED
    assert w.run(second).ended_how["verified"] == w.run(first).ended_how["verified"]
    assert w.applied(effect) == 1 and len(w.sandbox.requests()) == 1


@pytest.mark.parametrize("settled", [True, False])
def test_the_same_key_with_other_content_is_refused(w: World, settled: bool) -> None:
    """Invariant 3: nothing of the second is sent; the run stands still and says why."""
    first = w.accept("test.many", ("pay" if settled else "slow", "ch_same"))
    w.advance(first)
    second = w.accept("test.many", ("pay" if settled else "slow", "ch_same"), amount=1)
    assert w.advance(second) == "quarantined"
    (why,) = w.run(second).gate
    assert why["code"] == "key_mismatch"
    assert why["facts"]["effect"] == str(w.effect(first).pk)
    assert w.effects(second) == []
    w.drive()
    assert w.applied(w.effect(first)) == 1


def test_after_a_rejection_the_key_is_free_for_the_next_generation(w: World) -> None:
    """rejected frees the key: asking again is a new effect whose key says so."""
    w.sandbox.dial("payments", reply="reject", times=1)
    w.accept("test.many", ("pay", "ch_same"))
    w.drive()
    second = w.accept("test.many", ("pay", "ch_same"), amount=99)
    w.drive()
    keys = list(Effect.objects.order_by("generation").values_list("generation", "sent_key", "state"))
    assert keys == [
        (1, "refund:ch_same", EffectState.REJECTED),
        (2, "refund:ch_same/2", EffectState.SUCCEEDED),
    ]
    assert w.run(second).state == RunState.COMPLETED


def test_another_workspaces_key_is_another_key(w: World) -> None:
    """Invariant 14: the same business key next door is neither met nor refused."""
    from runs.record import new_id

    mine = w.accept("test.many", ("pay", "ch_same"))
    w.drive()
    neighbour = Effect.objects.get(run_id=mine)
    assert neighbour.workspace_id == w.s.here.pk
    from recovery.engine import intents
    from tests.recovery.engine import contracts

    request = contracts.ask("pay", "ch_same", 1)
    assert intents.resolve(w.s.there.pk, new_id(), request, neighbour.key) == 1


def test_a_run_that_met_its_own_effect_gets_the_outcome(w: World) -> None:
    """The same intent twice in one run is one effect."""
    run = w.accept("test.chain", ("pay", "ch_same"), ("pay", "ch_same"))
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert w.heard(run) == ["succeeded", "succeeded"]
    assert len(w.effects(run)) == 1 and len(w.sandbox.requests()) == 1
    assert not EffectLink.objects.exists()


def test_linked_runs_do_not_end_with_a_stale_outcome(w: World) -> None:
    """The owner's effect expires unsent: the linked run is told that, not that it happened."""
    owner = w.accept("test.many", ("slow", "ch_same"))
    w.advance(owner)
    other = w.accept("test.many", ("slow", "ch_same"))
    w.advance(other)
    later(days=3)
    w.drive()
    assert w.heard(other) == [["expired"]]
    assert w.sandbox.requests() == []
