"""An older backup in the place of the record: noticed, nothing sent, read, released by two people."""

from __future__ import annotations

from datetime import timedelta

from runs.models import Recovered
from runs.states import EffectState, EventKind, RunState
from tests.recovery.stage import later
from tests.recovery.upkeep.backups import Backups, released, requests, restored, seen, swept


def test_what_happened_after_the_backup_is_known_again_and_nothing_happens_twice(b: Backups) -> None:
    """The whole way: a run half-way at the backup has ended since; it comes back half-way and ends without a send."""
    w = b.w
    seen(b)
    run = w.accept("test.chain", "pay", "pay")
    b.take()
    w.drive()
    assert w.run(run).state == RunState.COMPLETED and requests(w) == 2
    seen(b)
    b.put_back()
    assert w.run(run).state == RunState.ACCEPTED, "the record does not know"
    assert w.advance(run) == "not_compared", "nothing goes on before the first look"
    assert seen(b)["frozen"] == 2
    b.go_on()
    assert w.advance(run) == "frozen"
    assert requests(w) == 2
    restore = swept(b)
    assert restore.found["recovered"] == 2
    assert sorted(Recovered.objects.values_list("reference", flat=True)) == sorted(
        line["intent"] for line in w.sandbox.ledger()
    )
    assert w.advance(run) == "frozen", "swept is not released"
    released(b, restore)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert requests(w) == 2, "its steps were told what had happened"
    assert [(e.state, w.applied(e)) for e in w.effects(run)] == [(EffectState.SUCCEEDED, 1)] * 2
    assert Recovered.objects.filter(met_by=None).count() == 0


# What looked unsent


def test_what_was_ready_at_the_backup_and_sent_since_is_found(b: Backups) -> None:
    w = b.w
    run = w.accept("test.many", "slow")
    w.advance(run)
    seen(b)
    b.take()
    w.drive()
    assert w.run(run).state == RunState.COMPLETED and requests(w) == 1
    restored(b)
    assert w.effect(run).state == EffectState.READY
    assert w.dispatch(w.effect(run)) == "no permit: frozen", "frozen"
    restore = swept(b)
    assert w.effect(run).state == EffectState.SUCCEEDED
    assert restore.found["effects"] == {"succeeded": 1}
    kinds = [event.kind for event in w.events(run)]
    assert EventKind.EFFECT_RECOVERED in kinds
    released(b, restore)
    w.drive()
    assert (w.run(run).state, requests(w)) == (RunState.COMPLETED, 1)


def test_what_was_ready_and_not_sent_is_sent_once_after_the_release(b: Backups) -> None:
    """Liveness: "not found" leaves it as it was."""
    w = b.w
    run = w.accept("test.many", "slow")
    w.advance(run)
    seen(b)
    b.take()
    seen(b)
    restored(b)
    restore = swept(b)
    assert (w.effect(run).state, requests(w)) == (EffectState.READY, 0)
    assert restore.left == []
    released(b, restore)
    later(minutes=1)
    w.drive()
    assert (w.run(run).state, requests(w)) == (RunState.COMPLETED, 1)


def test_what_was_in_flight_is_read_and_not_sent_again(b: Backups) -> None:
    """Its sender worked on in a world that is gone; "not found" counts from the last moment it could arrive."""
    w = b.w
    w.sandbox.dial("payments", reply="drop", times=1)
    run = w.accept("test.many", "pay")
    w.advance(run)
    assert w.effect(run).state == EffectState.UNKNOWN
    seen(b)
    b.take()
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    sent = requests(w)
    restored(b)
    swept(b)
    tries = w.attempts(w.effect(run))
    assert [(t.n, t.state) for t in tries] == [(1, "lost"), (2, "lost")]
    assert (w.effect(run).state, requests(w)) == (EffectState.SUCCEEDED, sent)


# Neither key nor reference


def test_what_agrees_by_facts_is_a_persons_to_decide(b: Backups) -> None:
    """No key, no reference: the run asks again, and its authority is asked before a byte leaves."""
    w = b.w
    run = w.accept("test.many", "card")
    seen(b)
    b.take()
    w.drive()
    assert w.applied(w.effect(run)) == 1
    restored(b)
    released(b, swept(b))
    w.drive()
    assert (w.effect(run).state, requests(w)) == (EffectState.UNKNOWN, 1)
    assert w.reviews(run) == ["outcome_unknown"]


def test_what_is_not_found_by_facts_is_sent_after_two_looks(b: Backups) -> None:
    w = b.w
    run = w.accept("test.many", "card")
    seen(b)
    b.take()
    restored(b)
    released(b, swept(b))
    w.drive(jump=timedelta(minutes=5))
    assert (w.run(run).state, requests(w)) == (RunState.COMPLETED, 1)
    looks = [event for event in w.events(run, EventKind.EFFECT_CHECKED) if event.data.get("claim") == "not_found"]
    assert len(looks) >= 2


def test_what_cannot_be_asked_for_is_sent_by_no_rule(b: Backups) -> None:
    """Neither key nor readback, and its run was there before: a person says whether it happened."""
    w = b.w
    run = w.accept("test.many", "notice")
    seen(b)
    b.take()
    w.drive()
    restored(b)
    released(b, swept(b))
    w.drive()
    assert (w.effect(run).state, requests(w)) == (EffectState.UNKNOWN, 1)
    assert w.reviews(run) == ["outcome_unknown"]
    fresh = w.accept("test.many", "notice")
    w.drive()
    assert (w.run(fresh).state, requests(w)) == (RunState.COMPLETED, 2), "a run of after the restore is in no doubt"
