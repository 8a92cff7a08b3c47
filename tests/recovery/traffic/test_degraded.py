"""New work while a dependency is closed off: it waits, is refused, or goes elsewhere; guards fail closed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from recovery.engine import intents, lookfirst, reading
from recovery.traffic import callbacks, degraded
from runs import clock
from runs.models import Attempt, Degraded, Dependency, Effect
from runs.states import Claim, EffectState, EventKind, RunState
from tests.recovery.engine import contracts, versions
from tests.recovery.engine.plans import SOON, mends, plan_of, trip, trips
from tests.recovery.engine.versions import use
from tests.recovery.engine.world import World
from tests.recovery.stage import later

__all__ = ["trips"]


def _closed(w: World, how: Degraded, **fields: object) -> Dependency:
    spare = Dependency.objects.get(workspace=w.s.here, name="mail")
    Dependency.objects.filter(workspace=w.s.here, name="payments").update(
        **{"held_at": clock.now(), "degraded": how, "failover": spare, "failover_evaluated_at": clock.now(), **fields}
    )
    intents._dependencies.clear()
    return Dependency.objects.select_related("capacity", "failover__capacity").get(workspace=w.s.here, name="payments")


def test_it_waits_unless_told_otherwise(w: World) -> None:
    _closed(w, Degraded.WAIT)
    run = w.accept("test.many", "soft")
    w.drive()
    assert w.effect(run).state == EffectState.READY


def test_new_work_is_refused_and_its_step_is_told(w: World) -> None:
    _closed(w, Degraded.REFUSE)
    run = w.accept("test.many", "soft")
    w.drive()
    assert (w.effect(run).state, w.effect(run).reason["code"]) == (EffectState.NOT_APPLIED, "refused_meanwhile")
    assert w.run(run).state == RunState.FAILED
    assert w.heard(run) == [["not_applied"]]
    assert not Attempt.objects.exists()


def test_it_goes_to_the_target_and_is_read_back_there(w: World) -> None:
    spare = _closed(w, Degraded.FAILOVER).failover
    run = w.accept("test.many", "soft")
    w.advance(run)
    assert spare is not None and w.effect(run).dependency_id == spare.pk
    assert w.effect(run).request["url"].startswith(spare.base_url)


def _elsewhere(w: World) -> Dependency:
    """New work goes to a target of the same kind; from then on nothing answers where the contracts say."""
    spare = _closed(w, Degraded.FAILOVER).failover
    assert spare is not None
    Dependency.objects.filter(pk=spare.pk).update(base_url=f"{w.sandbox.url}/payments")
    Dependency.objects.filter(name="payments").update(base_url="http://127.0.0.1:9/payments")
    return spare


def test_what_was_asked_for_before_stays_where_it_is_when_it_is_amended(w: World) -> None:
    """Its key is taken there: the same effect never changes sides."""
    run = w.accept("test.many", "soft")
    w.advance(run)
    before = w.effect(run)
    _closed(w, Degraded.FAILOVER)
    w.signal(run, "order.changed", amount=9000)
    w.advance_anyway(run)
    after = w.effect(run)
    assert (after.revision, after.dependency_id) == (2, before.dependency_id)
    assert after.request["url"] == before.request["url"] and "9000" in after.body


def test_checks_after_a_gap_ask_where_it_was_sent(w: World) -> None:
    """Check 3: the other side that has it is asked, not the one that the contract names."""
    use(versions.watching())
    run = w.accept("test.watching", ("pay", "ch_w"))
    w.drive()
    # The sample is irreversible and would not be sent elsewhere by itself.
    Effect.objects.filter(pk=w.effect(run).pk).update(dependency=_elsewhere(w))
    w.signal(run, "told")
    later(seconds=61)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    (line,) = w.events(run, EventKind.RUN_CHECKED)
    (again,) = line.data["checks"][2]["facts"]["still_valid"]
    assert again["valid"] is True


def test_what_went_elsewhere_is_mended_there(trips: World) -> None:
    """Invariant 16: only that side knows what is to be mended."""
    w = trips
    spare = _elsewhere(w)
    run = trip(w, "flight", mode="wait")
    Dependency.objects.filter(name="payments").update(held_at=None)
    intents._dependencies.clear()
    w.signal(run, "told")
    w.drive(jump=SOON)
    assert (w.run(run).state, w.effect_states(run)) == (RunState.COMPENSATED, [EffectState.COMPENSATED])
    (mending,) = mends(plan_of(run))
    assert mending.dependency_id == spare.pk


@pytest.mark.parametrize("missing", ["evaluation", "callable", "open"])
def test_no_target_that_nobody_tried_or_that_is_closed_itself(w: World, missing: str) -> None:
    one = _closed(w, Degraded.FAILOVER)
    assert degraded.route(one, contracts.soft) == one.failover
    assert one.failover is not None
    if missing == "evaluation":
        one.failover_evaluated_at = None
    elif missing == "callable":
        one.failover.held_at = clock.now()
    else:
        one.held_at = None
    assert degraded.route(one, contracts.soft) == one


def test_what_is_irreversible_or_signed_only_waits(w: World) -> None:
    for how in (Degraded.FAILOVER, Degraded.REFUSE):
        one = _closed(w, how)
        for contract in (contracts.pay, contracts.slow, replace(contracts.soft, irreversible="money leaves")):
            assert degraded.route(one, contract) == one
            assert not degraded.refuses(one, contract)


def test_word_from_the_target_is_matched_and_a_restore_asks_both(w: World) -> None:
    """What went elsewhere is known there: a message of theirs, and the look before a first send (invariants 2, 3)."""
    one = _closed(w, Degraded.FAILOVER)
    assert one.failover is not None
    run = w.accept("test.many", "soft")
    w.advance(run)
    effect = w.effect(run)
    said = {"type": "refund.succeeded", "data": {"reference": effect.sent_key, "id": "re_1"}}
    assert callbacks.find(one.failover, json.dumps(said).encode()) == effect
    assert lookfirst._places(effect, contracts.soft) == [one.failover, one]
    silent, none = (reading.no_answer("e", ""), replace(reading.no_answer("", ""), claim=Claim.NOT_FOUND))
    there = replace(none, claim=Claim.HAPPENED)
    assert lookfirst._first_word([none, silent, there]) is there
    assert lookfirst._first_word([none, silent]) is silent, "one that did not answer may have it"
    assert lookfirst._first_word([none, none]) is none
