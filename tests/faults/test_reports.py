"""Public reports about other systems that concern the engine, each as a test of the right value here (docs/faults.md).

They are named after the report: project, number, what is right.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import transaction

from recovery import failpoints
from recovery.contract.errors import KeyInvalid
from recovery.engine import intents
from recovery.engine.dispatch import dispatch
from recovery.upkeep.sweep import Sweep
from runs import clock, doorbells
from runs.errors import ActionMismatch
from runs.models import Approval, Attempt, Effect, Run, Worker
from runs.record import Act
from runs.states import AttemptState, EffectState, ReviewKind, RunState
from tests.faults import deeds, scenes
from tests.faults.conftest import Workers
from tests.faults.scenes import SCENES
from tests.recovery.engine import contracts
from tests.recovery.engine.world import World
from tests.recovery.signers import sign


def test_openai_agents_4254_a_new_plan_for_the_same_intent_is_the_same_effect(w: World) -> None:
    """A re-planned call has another call id; the intent's key does not change, and it is met, not repeated."""
    first = w.accept("test.many", ("pay", "ch_1"))
    w.drive()
    again = w.accept("test.many", ("pay", "ch_1"))
    w.drive()
    assert [w.run(r).state for r in (first, again)] == [RunState.COMPLETED] * 2
    assert len(w.sandbox.requests()) == 1 and Effect.objects.count() == 1


@pytest.mark.parametrize("point", ["advance.before_outcome", "checkpoint.before_seal"])
def test_openai_agents_4615_the_tool_ran_and_its_record_did_not(w: World, forks: Workers, point: str) -> None:
    """Nothing is run again for want of a line in a store: the ledger of effects decides."""
    scene = SCENES["order"]
    nth = 2 if point == "checkpoint.before_seal" else 1
    assert forks.kill(point=point, nth=nth, **scene.play(w, forks))
    scenes.finish(w)
    assert scenes.ends(w) == scene.end


def test_langgraph_6663_the_second_answer_to_one_question_is_refused(w: World) -> None:
    """A decision is not overwritten: the same act with another value is a mismatch, and nothing runs on it."""
    scenes._half_signed(w)
    asked = {"what": "sign", "act": str(uuid4())}
    deeds.sign(asked)
    (one,) = Approval.objects.all()
    how = deeds.act(asked)
    with pytest.raises(ActionMismatch):
        sign(one, w.s.approver_c, Act(how.id, how.route, "another"))
    w.drive()
    assert scenes.ends(w) == scenes.COMPLETED


def test_langgraph_7417_a_long_call_whose_lease_lapses_is_unknown_not_repeated(w: World) -> None:
    """Silence of its worker makes the outcome unknown; the authority is asked before anything is sent again."""
    w.sandbox.dial("cards-eu", reply="drop", times=1)
    run = w.accept("test.many", "card")
    w.advance(run)
    w.dies(w.me)
    with w.as_worker(w.worker()):
        w.drive(jump=timedelta(minutes=20))
    assert w.effect(run).state == EffectState.UNKNOWN and len(w.sandbox.requests()) == 1
    assert w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN]


def test_langgraph_8796_of_two_writers_one_wins(w: World, forks: Workers) -> None:
    """The chain does not fork: the older token is refused, and exactly one history exists."""
    scene = SCENES["order"]
    stopped = forks.start(point="advance.before_commit", action="stop", **scene.play(w, forks))
    forks.wait(stopped)
    for row in Worker.objects.exclude(pk=w.me.id):
        w.silence(row.pk)
    scenes.finish(w)
    forks.go_on(stopped)
    (run,) = Run.objects.all()
    assert [e.seq for e in w.events(run.pk)] == list(range(1, run.head_seq + 1))
    assert scenes.ends(w) == scene.end


def test_extra_139_what_was_approved_is_what_is_sent(w: World) -> None:
    """And langchain 40166, pydantic-ai 6968: other bytes than those signed are another request."""
    scenes._asked_for_signatures(w, "approver_b", "approver_c")
    effect = Effect.objects.get()
    Effect.objects.filter(pk=effect.pk).update(body=effect.body.replace("120500", "920500"))
    dispatch(effect.pk)
    assert w.sandbox.requests() == [] and Effect.objects.get().state == EffectState.AWAITING_APPROVAL


def test_pydantic_ai_8060_only_a_full_set_of_signatures_is_a_yes(w: World) -> None:
    """And 3350: pending stays pending, also after every worker was another one."""
    scenes._half_signed(w)
    w.dies(w.me)
    with w.as_worker(w.worker()):
        w.drive(jump=timedelta(hours=1))
    assert w.sandbox.requests() == [] and Approval.objects.get().state == "pending"


def test_pydantic_ai_6580_the_answer_may_arrive_at_any_process(w: World, forks: Workers) -> None:
    """And temporal 1660: a decision names a row; no process needs to hold the run in its memory."""
    scene = SCENES["sign"]
    asked = scene.play(w, forks)
    assert forks.wait(forks.start(**asked)) == {"code": 0}
    assert Approval.objects.get().state == "granted"
    scenes.finish(w)
    assert scenes.ends(w) == scene.end


def test_temporal_700_cancelled_is_said_when_it_is_so(w: World) -> None:
    """Until what was sent is settled, the state is that a cancel was asked for."""
    w.sandbox.dial("cards-eu", reply="drop", times=1)
    run = w.accept("test.many", "card")
    w.advance(run)
    w.cancel(run)
    w.drive()
    assert w.run(run).state == RunState.CANCELLING and w.effect(run).state == EffectState.UNKNOWN


def test_temporal_8129_a_second_attempt_is_not_a_second_row_there(w: World) -> None:
    """The first attempt's answer was lost; the second carries the same key, and the ledger has one entry."""
    w.sandbox.dial("mail", reply="drop", times=1)
    run = w.accept("test.many", "mail")
    w.drive(jump=timedelta(minutes=5))
    effect = w.effect(run)
    assert (effect.state, effect.attempts, w.applied(effect)) == (EffectState.SUCCEEDED, 2, 1)


def test_dbos_804_the_dead_owners_run_is_found_by_one_sweep(w: World, forks: Workers) -> None:
    """And 716: nothing strands for want of somebody who remembers it."""
    assert forks.kill(point="advance.leased", **SCENES["order"].play(w, forks))
    w.beat()
    w.rung.clear()
    counts = Sweep().run_once()
    assert counts["buried"] == 1 and counts["orphans"] == 1
    assert [task for task, _ in w.rung] == ["advance"]


def test_dbos_688_recoveries_are_counted_and_end_with_a_person(w: World, forks: Workers) -> None:
    run = scenes.accept(w, "orders.cancel", scenes.order("payments"))
    for _ in range(3):
        assert forks.kill(point="checkpoint.after_load")
    w.drive()
    assert w.run(run).state == RunState.QUARANTINED and w.reviews(run) == [ReviewKind.QUARANTINED]


def test_dbos_805_what_waits_blocks_nobody(w: World) -> None:
    """A run that waits holds no worker: the one behind it ends meanwhile."""
    waits = w.accept("test.waiter", mode="event")
    behind = w.accept("test.chain", "pay")
    w.drive()
    assert (w.run(waits).state, w.run(waits).lease_owner) == (RunState.WAITING, None)
    assert w.run(behind).state == RunState.COMPLETED


def test_celery_5935_a_second_delivery_finds_a_live_lease(w: World) -> None:
    """And celery 3270, 2481, kombu 337: a message that comes again while the first works does nothing."""
    run = w.accept("test.chain", "pay", "pay")
    came = []

    def again() -> None:
        with w.as_worker(w.worker()):
            came.append(w.advance(run))

    failpoints.arm("send.after", again)
    assert w.advance(run) == "completed"
    assert came == ["leased", "leased"]
    assert len(w.sandbox.requests()) == 2


def test_celery_1628_a_lost_worker_leaves_an_unknown_outcome(w: World, forks: Workers) -> None:
    """And 5641: neither done nor to be done again, and redelivery does not go on for ever."""
    assert forks.kill(point="send.after", **SCENES["cards"].play(w, forks))
    w.drive()
    effect = Effect.objects.get()
    assert effect.state == EffectState.UNKNOWN
    assert Attempt.objects.get().state == AttemptState.LOST and len(w.sandbox.requests()) == 1


def test_celery_4426_a_finished_task_that_is_delivered_again_is_nothing(w: World) -> None:
    """And 4671, 3796, 3802: after a restart the same messages come again."""
    run = w.accept("test.chain", "pay")
    assert w.advance(run) == "completed"
    before = len(w.events(run))
    assert w.advance(run) == RunState.COMPLETED
    assert dispatch(w.effect(run).pk) == EffectState.SUCCEEDED
    assert len(w.events(run)) == before


def test_celery_4300_what_was_revoked_does_not_run(w: World) -> None:
    """And 1007, 1246: a cancel is a state that is read under the lock before the send, not a message to a worker."""
    run = w.accept("test.many", "slow")
    w.advance(run)
    w.cancel(run)
    assert dispatch(w.effect(run).pk) != EffectState.SUCCEEDED
    w.drive()
    assert w.sandbox.requests() == [] and w.run(run).state == RunState.CANCELLED


def test_kombu_533_a_timer_is_a_row_not_a_message(w: World) -> None:
    """And celery 4991: with every message gone, what is due is found by the record."""
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    w.rung.clear()
    w.drive(jump=timedelta(minutes=11))
    assert w.run(run).state == RunState.COMPLETED


def test_celery_8976_a_doorbell_rings_after_the_commit(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its PR 8491: whoever is rung finds the row; what is rolled back rings nobody."""
    seen: list[bool] = []
    monkeypatch.setattr(doorbells, "_ringers", [lambda ring: seen.append(Run.objects.filter(pk=ring.run).exists())])
    with pytest.raises(RuntimeError), transaction.atomic():
        w.accept("test.chain", "pay")
        raise RuntimeError
    assert seen == []
    w.accept("test.chain", "pay")
    assert seen == [True]


def test_agent_framework_3938_a_retried_turn_begins_at_the_first_unfinished_effect(w: World, forks: Workers) -> None:
    """And agno 10366, crewAI 5802: the refund is done, the e-mail is not; only the e-mail goes out again."""
    scene = SCENES["order"]
    assert forks.kill(point="send.before", nth=2, **scene.play(w, forks))
    scenes.finish(w)
    assert scenes.ends(w) == scene.end
    refunds = [a for a in w.sandbox.requests() if a["headers"]["Idempotency-Key"] == "refund:ch_1"]
    assert len(refunds) == 1


def test_dbos_759_an_empty_id_names_nothing(w: World) -> None:
    """An id that is empty would make strangers the same: neither a key nor an act can be."""
    run = w.accept("test.many", "pay")
    request = contracts.ask("pay", "ch_1")
    row = {**Run.objects.filter(pk=run).values().get()}
    nameless = replace(request, contract=replace(request.contract, key=lambda run, p: ""))
    with pytest.raises(KeyInvalid):
        intents.key_of(row, nameless, clock.now())
