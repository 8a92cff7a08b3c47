"""What was found after a restore and the record did not know: kept, and met by whoever asks again."""

from __future__ import annotations

from datetime import timedelta

from recovery.actions import runs as run_actions
from runs.models import Recovered
from runs.states import EffectState, RunState
from tests.recovery.stage import act
from tests.recovery.upkeep.backups import Backups, released, requests, restored, seen, swept


def test_what_a_lost_run_did_is_kept_and_meets_whoever_asks_again(b: Backups) -> None:
    w = b.w
    w.accept("test.waiter", mode="event")
    seen(b)
    b.take()
    lost = w.accept("test.many", ("pay", "ch_lost"))
    w.drive()
    assert w.run(lost).state == RunState.COMPLETED
    restored(b)
    restore = swept(b)
    kept = Recovered.objects.get()
    assert (kept.workspace_id, kept.reference, kept.met_by) == (w.s.here.pk, "refund:ch_lost", None)
    released(b, restore)
    again = w.accept("test.many", ("pay", "ch_lost"))
    w.drive()
    assert (w.run(again).state, requests(w)) == (RunState.COMPLETED, 1)
    kept.refresh_from_db()
    assert kept.met_by == w.effect(again).pk
    (evidence,) = w.effect(again).evidence.all()
    assert (evidence.kind, evidence.strength) == ("readback", "proves")


def test_other_content_under_a_found_key_is_not_taken_for_it(b: Backups) -> None:
    w = b.w
    w.accept("test.waiter", mode="event")
    seen(b)
    b.take()
    w.accept("test.many", ("pay", "ch_lost"), amount=8400)
    w.drive()
    restored(b)
    released(b, swept(b))
    again = w.accept("test.many", ("pay", "ch_lost"), amount=9900)
    w.drive()
    effect = w.effect(again)
    assert effect.state != EffectState.SUCCEEDED
    assert w.sandbox.applied("refund:ch_lost") == 1
    assert w.reviews(again), "a person is told"


def test_a_later_generation_that_was_found_is_the_one_that_happened(b: Backups) -> None:
    """The first send was refused and its key freed: asking anew with the bare key would be a second effect."""
    w = b.w
    run = w.accept("test.many", ("pay", "ch_g"), again=1)
    seen(b)
    b.take()
    w.sandbox.dial("payments", reply="refuse", times=4)
    w.drive(jump=timedelta(hours=1))
    assert [line["applied"] for line in w.sandbox.ledger()][-1] == 1
    assert w.run(run).state == RunState.COMPLETED
    (done,) = [e for e in w.effects(run) if e.state == EffectState.SUCCEEDED]
    assert done.sent_key == "refund:ch_g/2"
    sent = requests(w)
    restored(b)
    released(b, swept(b))
    w.drive()
    assert (w.run(run).state, requests(w)) == (RunState.COMPLETED, sent)
    assert [e.sent_key for e in w.effects(run)] == ["refund:ch_g/2"]


def test_an_account_that_others_use_too_is_not_listed(b: Backups) -> None:
    """Nothing crosses a workspace (invariant 14); the key still makes the repeat harmless."""
    w = b.w
    run = w.accept("test.many", "pay")
    run_actions.accept(w.s.there, "test.waiter", {"mode": "event"}, actor=w.s.outsider_e, act=act("accept"))
    seen(b)
    b.take()
    w.drive()
    restored(b)
    released(b, swept(b))
    assert not Recovered.objects.exists()
    w.advance(run)
    assert w.run(run).state == RunState.COMPLETED
    assert w.applied(w.effect(run)) == 1
