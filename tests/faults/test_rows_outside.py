"""Faults at the other side, in between, and of people, one test a row of docs/faults.md."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import httpx
import pytest

from recovery import failpoints
from recovery.engine.reconcile import lose
from runs.models import Approval, Attempt, Dependency, Evidence, Run
from runs.states import ATTEMPT_LIVE, AttemptState, Claim, EffectState, EventKind, ReviewKind, RunState
from tests.faults import deeds, scenes
from tests.faults.conftest import Workers
from tests.faults.scenes import SCENES
from tests.recovery.engine.world import World
from tests.recovery.signers import sign
from tests.recovery.stage import later


def _lost(w: World, name: str, provider: str) -> UUID:
    """A run whose one effect took effect and whose answer was lost."""
    w.sandbox.dial(provider, reply="drop", times=1)
    run = w.accept("test.many", name)
    w.advance(run)
    return run


@pytest.mark.parametrize("scene", ["order", "cards", "notice"])
def test_row_11_dead_after_the_send(w: World, forks: Workers, scene: str) -> None:
    """Unknown first. Then the same key, or a readback, or a person: as the contract allows; once by the ledger."""
    assert forks.kill(point="send.after", **SCENES[scene].play(w, forks))
    scenes.finish(w)
    (run,) = Run.objects.all()
    first = w.effects(run.pk)[0]
    assert w.applied(first) == 1
    if scene == "order":
        assert scenes.ends(w) == SCENES[scene].end
    else:
        assert (first.state, w.reviews(run.pk)) == (EffectState.UNKNOWN, [ReviewKind.OUTCOME_UNKNOWN])


def test_row_12_done_and_the_reply_lost(w: World) -> None:
    """A timeout is no failure: nothing on the way says failed, and evidence settles it."""
    run = _lost(w, "pay", "payments")
    w.drive(jump=timedelta(minutes=1))
    went = [m["to"] for e in w.events(run) for m in e.body["moves"] if m["t"] == "effect"]
    assert went == ["in_flight", "unknown", "succeeded"]
    assert w.applied(w.effect(run)) == 1


def test_row_14_refused_before_any_byte(w: World) -> None:
    """Known not sent: after a pause again, under the same key."""
    Dependency.objects.filter(name="payments").update(base_url="http://127.0.0.1:1/payments")
    run = w.accept("test.many", "pay")
    w.advance(run)
    effect = w.effect(run)
    assert [a.state for a in w.attempts(effect)] == [AttemptState.NOT_SENT]
    assert effect.state == EffectState.READY and w.sandbox.requests() == []


def test_row_16_told_to_come_later(w: World) -> None:
    """429 with Retry-After: no try is used up, the same key comes again, not before it was asked to."""
    w.sandbox.dial("payments", reply="overload", times=6, retry_after=7)
    run = w.accept("test.many", "pay")
    w.drive(jump=timedelta(minutes=5))
    effect = w.effect(run)
    assert effect.state == EffectState.SUCCEEDED and effect.attempts == 7, "more than the contract's four tries"
    assert len({a["headers"]["Idempotency-Key"] for a in w.sandbox.requests()}) == 1
    at = [a.committed_at for a in w.attempts(effect)]
    assert all(b - a >= timedelta(seconds=7) for a, b in zip(at, at[1:], strict=False))


def test_row_17_our_own_earlier_send_is_still_under_way_there(w: World) -> None:
    """409: no failure and no other key; it is asked about and settles as what it is."""
    w.sandbox.dial("payments", reply="slow", delay=3600, times=1)
    run = w.accept("test.many", ("pay", "ch_1"))

    def the_same_bytes() -> None:
        """An earlier send of this attempt, whose answer is a long time coming."""
        failpoints.disarm()
        (one,) = Attempt.objects.select_related("effect")
        headers = {"Idempotency-Key": one.effect.sent_key, "Recourse-Attempt": str(one.pk)}
        url, body = f"{w.sandbox.url}/payments/v1/refunds", one.effect.body.encode()
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(url, content=body, headers=headers, timeout=0.5, trust_env=False)
        assert w.sandbox.applied("refund:ch_1") == 1

    failpoints.arm("send.before", the_same_bytes)
    w.drive(jump=timedelta(minutes=5))
    effect = w.effect(run)
    assert (effect.state, w.applied(effect)) == (EffectState.SUCCEEDED, 1)
    assert "in_flight" in [a["verdict"] for a in w.sandbox.requests()]


def test_row_18_the_key_stands_for_other_bytes_there(w: World) -> None:
    """The effect halts with a review; nobody picks a new key by himself."""
    run = w.accept("test.many", ("pay", "ch_1"))

    def other_bytes() -> None:
        """On the way of this very attempt, somebody else's bytes arrive first."""
        failpoints.disarm()
        headers = {"Idempotency-Key": "refund:ch_1", "Recourse-Attempt": str(Attempt.objects.get().pk)}
        body = {"charge": "ch_1", "amount": 1, "currency": "EUR"}
        url = f"{w.sandbox.url}/payments/v1/refunds"
        assert httpx.post(url, json=body, headers=headers, trust_env=False).is_success

    failpoints.arm("send.before", other_bytes)
    w.drive(jump=timedelta(minutes=15))
    effect = w.effect(run)
    assert effect.decision["reason"] == "key_mismatch"
    assert w.reviews(run) != [] and w.run(run).state not in (RunState.COMPLETED, RunState.FAILED)
    assert {a["headers"]["Idempotency-Key"] for a in w.sandbox.requests()} == {effect.sent_key}


def test_row_19_unknown_past_the_providers_window(w: World) -> None:
    run = _lost(w, "mail", "mail")
    later(hours=25)
    w.drive(jump=timedelta(hours=2))
    assert w.effect(run).state == EffectState.UNKNOWN and len(w.sandbox.requests()) == 1
    assert w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN]


def test_row_20_not_found_while_they_lag(w: World, forks: Workers) -> None:
    """A "not found" before the lag is over is no answer: it stays unknown, and was applied all along."""
    w.sandbox.dial("cards-eu", readback="lag", readback_lag=3600.0)
    assert forks.kill(point="send.after", **SCENES["cards"].play(w, forks))
    w.drive()
    (run,) = Run.objects.all()
    effect = w.effect(run.pk)
    assert Evidence.objects.filter(effect=effect, claim=Claim.NOT_FOUND).exists()
    assert effect.state == EffectState.UNKNOWN and w.applied(effect) == 1


def test_row_21_nobody_answers_the_question(w: World) -> None:
    """It stays unknown and is asked again, with a person told; the run does not fail."""
    w.sandbox.dial("cards-eu", readback="down")
    run = _lost(w, "card", "cards-eu")
    w.drive(jump=timedelta(minutes=30))
    effect = w.effect(run)
    assert (effect.state, w.run(run).state) == (EffectState.UNKNOWN, RunState.WAITING)
    assert effect.checks >= 2 and w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN]
    assert set(Evidence.objects.filter(effect=effect).values_list("claim", flat=True)) == {Claim.UNAVAILABLE}
    w.sandbox.dial("cards-eu", readback="ok")
    w.drive(jump=timedelta(minutes=30))
    assert Evidence.objects.filter(effect=effect, claim=Claim.HAPPENED).exists()


def test_row_34_cancelled_while_the_send_is_under_way(w: World, forks: Workers) -> None:
    """Whoever was first under the run's lock: it was sent, so the cancel waits for its outcome."""
    scene = SCENES["overtaken"]
    assert forks.wait(forks.start(**scene.play(w, forks))) == {"code": 0}
    scenes.finish(w)
    assert scenes.ends(w) == [("cancelled", [scenes.REFUNDED])]


def test_row_35_an_answer_after_its_time(w: World, forks: Workers) -> None:
    """The attempt was given up: the answer is kept as evidence, and moves nothing that has ended."""
    scene = SCENES["late"]
    assert forks.wait(forks.start(**scene.play(w, forks))) == {"code": 0}
    scenes.finish(w)
    assert scenes.ends(w) == scene.end
    (run,) = Run.objects.all()
    assert any(e.data.get("late") for e in w.events(run.pk, EventKind.EVIDENCE_RECEIVED))


def test_row_40_a_run_that_kills_whoever_touches_it(w: World, forks: Workers) -> None:
    """The try is counted before the work: after three it is set aside for a person, and others go on."""
    poison = scenes.accept(w, "orders.cancel", scenes.order("payments"))
    killed = 0
    while w.run(poison).state != RunState.QUARANTINED and killed < 6:
        killed += forks.kill(point="advance.before_step")
    assert killed == 3 and w.reviews(poison) == [ReviewKind.QUARANTINED]
    other = w.accept("test.chain", "pay")
    w.drive()
    assert w.run(other).state == RunState.COMPLETED


def test_row_42_only_one_layer_tries_again(w: World) -> None:
    """Calls are as many as the contract's tries, not their product over layers."""
    w.sandbox.dial("payments", reply="refuse")
    run = w.accept("test.many", "pay")
    w.drive(jump=timedelta(hours=1))
    effect = w.effect(run)
    assert len(w.sandbox.requests()) == effect.attempts == 4


def test_row_50_an_approval_runs_out_between_signing_and_sending(w: World) -> None:
    scenes._asked_for_signatures(w, "approver_b", "approver_c")
    later(hours=2)
    w.drive()
    (run,) = Run.objects.all()
    assert w.sandbox.requests() == [] and w.effect(run.pk).state == EffectState.AWAITING_APPROVAL
    assert w.reviews(run.pk) != []


def test_row_51_a_signer_loses_the_right(w: World) -> None:
    scenes._signer_left(w)
    w.drive()
    assert w.sandbox.requests() == []
    w.s.approvers.members.add(w.s.approver_f)
    sign(Approval.objects.get(), w.s.approver_f)
    w.drive()
    assert scenes.ends(w) == scenes.COMPLETED


def test_row_52_other_content_than_was_signed(w: World) -> None:
    """A change after the signatures is a new revision: they are void, and nothing goes out on them."""
    scenes._asked_for_signatures(w, "approver_b", "approver_c")
    deeds.change({"what": "change", "act": "6d9f5a1e-6f0a-4d0f-8b0e-1f6d1a2b3c4d"})
    w.drive()
    assert w.sandbox.requests() == []
    assert list(Approval.objects.order_by("revision").values_list("state", flat=True)) == ["superseded", "pending"]


def test_row_53_an_approval_is_used_twice(w: World, forks: Workers) -> None:
    """Killed right after the claim that used it up: what follows is the same send, under the same key."""
    scene = SCENES["signed"]
    assert forks.kill(point="dispatch.after_claim", **scene.play(w, forks))
    assert Approval.objects.get().state == "consumed"
    scenes.finish(w)
    assert scenes.ends(w) == scene.end
    used = [m for e in w.events(Run.objects.get().pk) for m in e.body["moves"] if m["to"] == "consumed"]
    assert len(used) == 1


def test_row_33_success_after_the_cancel(w: World, forks: Workers) -> None:
    """The run stays cancelled; what happened is named as what is left."""
    assert forks.kill(point="send.after", **SCENES["order"].play(w, forks))
    deeds.cancel({"what": "cancel", "act": "6d9f5a1e-6f0a-4d0f-8b0e-1f6d1a2b3c4e"})
    for one in Attempt.objects.filter(state__in=ATTEMPT_LIVE).values_list("pk", flat=True):
        lose(one)
    scenes.finish(w)
    (run,) = Run.objects.all()
    assert run.state == RunState.CANCELLED
    assert [one["state"] for one in run.ended_how["left"]] == ["succeeded"]
