"""Outcomes nobody knows: evidence first, then the same key, then a person; never a guess (invariant 4)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from recovery import failpoints
from recovery.actions import effects as actions
from recovery.engine import reconcile
from runs import clock
from runs.models import Evidence
from runs.states import AttemptState, Claim, EffectState, EventKind, ReviewKind, RunState, Strength, WaitingOn
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later


def unknown(w: World, name: str, provider: str, reply: str = "drop") -> object:
    """A run whose one effect was applied and whose answer was lost."""
    w.sandbox.dial(provider, reply=reply, times=1)
    run = w.accept("test.many", name)
    assert w.advance(run) == "waits: unknown"
    effect = w.effect(run)
    assert (effect.state, w.run(run).waiting_on) == (EffectState.UNKNOWN, WaitingOn.UNKNOWN)
    return run


@pytest.mark.parametrize("reply", ["drop", "reset", "error500", "garbage"])
def test_payments_finds_it_by_our_reference(w: World, reply: str) -> None:
    """Fault 12: the answer is lost, the effect is there; one look proves it, nothing is sent again."""
    run = unknown(w, "pay", "payments", reply)
    w.drive()
    effect = w.effect(run)
    assert (effect.state, effect.reason["code"]) == (EffectState.SUCCEEDED, "proved")
    assert w.run(run).state == RunState.COMPLETED
    assert len(w.sandbox.requests()) == 1
    proof = Evidence.objects.get(effect=effect, strength=Strength.PROVES)
    assert str(proof.pk) in w.run(run).ended_how["verified"]


def test_cards_agree_and_a_person_decides(w: World) -> None:
    """Equal facts are no proof: nothing is sent again, nothing settles, a review is open."""
    run = unknown(w, "card", "cards-eu")
    w.drive(jump=timedelta(hours=1))
    effect = w.effect(run)
    assert effect.state == EffectState.UNKNOWN
    assert effect.decision["reason"] == "agrees_not_proof"
    assert w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN]
    assert len(w.sandbox.requests()) == 1


def test_mail_is_sent_again_under_the_same_key(w: World) -> None:
    """Keys and no readback: the same bytes again; the ledger says that it took effect once."""
    run = unknown(w, "mail", "mail")
    w.drive(jump=timedelta(minutes=1))
    effect = w.effect(run)
    assert (effect.state, effect.attempts) == (EffectState.SUCCEEDED, 2)
    assert [r["verdict"] for r in w.sandbox.requests()] == ["applied", "replayed"]
    assert len({r["body"] for r in w.sandbox.requests()}) == 1
    assert w.applied(effect) == 1


def test_a_notice_goes_to_a_person_at_once(w: World) -> None:
    """Neither key nor readback: it can be neither repeated nor checked (faults rule 11)."""
    run = unknown(w, "notice", "notices")
    assert w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN]
    w.drive(jump=timedelta(days=1))
    assert w.effect(run).state == EffectState.UNKNOWN
    assert len(w.sandbox.requests()) == 1


def test_a_notice_whose_sender_died_before_it_claimed_is_sent_again(w: World) -> None:
    """Committed and not claimed: no byte can have left (DESIGN section 5)."""
    run = w.accept("test.many", "notice")
    die(w, run, "advance.after_commit")
    effect = w.effect(run)
    assert w.attempts(effect)[0].state == AttemptState.COMMITTED
    w.drive(jump=timedelta(minutes=1))
    assert [a.state for a in w.attempts(effect)] == [AttemptState.NOT_SENT, AttemptState.ANSWERED]
    assert w.run(run).state == RunState.COMPLETED
    assert w.applied(effect) == 1


def test_a_notice_whose_sender_died_after_it_claimed_goes_to_a_person(w: World) -> None:
    """Claimed: a byte may have left, and nobody can say."""
    run = w.accept("test.many", "notice")
    die(w, run, "send.before")
    effect = w.effect(run)
    assert w.attempts(effect)[0].state == AttemptState.CLAIMED
    w.drive(jump=timedelta(hours=1))
    assert w.effect(run).state == EffectState.UNKNOWN
    assert w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN]
    assert w.sandbox.requests() == []


class Death(BaseException):
    """The worker is gone; nothing of it runs any more."""


def die(w: World, run: object, point: str) -> None:
    """The worker dies at ``point``; another one is at work from now on."""

    def end() -> None:
        failpoints.disarm()
        raise Death

    failpoints.arm(point, end)
    gone = w.worker()
    with w.as_worker(gone), pytest.raises(Death):
        w.advance(run)  # type: ignore[arg-type]
    w.dies(gone)


def test_not_found_twice_after_the_lag_is_known_not_to_have_happened(w: World) -> None:
    """Fault 20: only after everything that could arrive had, plus the lag, twice. Then the step asks again, as a
    new effect with the key ``{key}/2``.
    """
    run = w.accept("test.many", "card", again=1)
    die(w, run, "send.before")
    w.drive()
    first = w.effect(run)
    assert (first.state, first.decision["reason"]) == (EffectState.UNKNOWN, "not_found_yet")
    w.drive(jump=timedelta(minutes=5))
    first, second = w.effects(run)
    assert (first.state, first.reason["code"]) == (EffectState.NOT_APPLIED, "not_found_twice")
    seen = list(Evidence.objects.filter(effect=first, claim=Claim.NOT_FOUND).order_by("id"))
    (attempt,) = w.attempts(first)
    assert len(seen) >= 3, "the first look came before the lag and counts for nothing"
    counting = [e for e in seen if str(e.pk) in first.decision["evidence"]]
    assert all(e.received_at >= attempt.expires_at + timedelta(seconds=30) for e in counting)
    assert (second.generation, second.sent_key) == (2, f"{second.key}/2")
    assert second.key == first.key
    assert w.applied(second) == 1 and w.applied(first) == 0
    assert w.heard(run) == [["not_applied"], ["succeeded"]]


def test_payments_sends_again_what_it_does_not_find(w: World) -> None:
    """Keys and readback: not found, so the same key again; it may well be the first to arrive."""
    run = w.accept("test.many", "pay")
    die(w, run, "send.before")
    w.drive(jump=timedelta(minutes=1))
    effect = w.effect(run)
    assert (effect.state, effect.attempts, effect.generation) == (EffectState.SUCCEEDED, 2, 1)
    assert w.applied(effect) == 1


def test_a_readback_that_is_down_changes_nothing_until_it_is_up(w: World) -> None:
    """Fault 21: stays unknown, keeps ageing, the run does not fail."""
    w.sandbox.dial("cards-eu", readback="down")
    run = unknown(w, "card", "cards-eu")
    w.sandbox.dial("cards-eu", readback="down")
    w.drive(jump=timedelta(minutes=2))
    effect = w.effect(run)
    assert effect.state == EffectState.UNKNOWN and effect.checks >= 2
    assert effect.decision["reason"] == "check_unanswered"
    assert w.reviews(run) == []
    w.drive(jump=timedelta(minutes=15))
    assert w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN], "its age asks a person (review_after)"
    w.sandbox.dial("cards-eu", readback="ok")
    w.drive(jump=timedelta(minutes=6))
    assert w.effect(run).decision["reason"] == "agrees_not_proof"


def test_a_check_without_an_answer_is_no_new_version(w: World) -> None:
    """DESIGN section 3: a check without an answer is no new evidence; a person's open page stays fresh."""
    w.sandbox.dial("cards-eu", readback="down")
    run = unknown(w, "card", "cards-eu")
    before = w.effect(run).version
    w.drive()
    assert w.effect(run).version == before
    w.sandbox.dial("cards-eu", readback="ok")
    actions.check(w.effect(run).pk, actor=w.s.oncall_g, act=act("check"))
    assert w.effect(run).version == before + 1


def test_a_slow_answer_past_the_timeout_is_unknown(w: World) -> None:
    """Fault 12: never failed. The other side was only slow; a look proves that it happened."""
    w.sandbox.dial("payments", reply="slow", delay=0.6, times=1)
    run = w.accept("test.many", "brief")
    w.advance(run)
    assert w.effect(run).state == EffectState.UNKNOWN
    w.drive(jump=timedelta(minutes=1))
    assert w.effect(run).state == EffectState.SUCCEEDED
    assert w.applied(w.effect(run)) == 1


def test_a_late_answer_is_kept_and_settles_what_is_still_unknown(w: World) -> None:
    """Invariant 6: another worker gave the attempt up; the answer that comes after is evidence, read first."""
    run = w.accept("test.many", "card")
    failpoints.arm("advance.before_outcome", lambda: given_up(w, run))
    assert w.advance(run) in ("stale", "another was first")
    effect = w.effect(run)
    late = Evidence.objects.get(effect=effect, attempt__isnull=False)
    assert (effect.state, late.claim, late.strength) == (EffectState.UNKNOWN, Claim.HAPPENED, Strength.PROVES)
    assert w.attempts(effect)[0].state == AttemptState.LATE
    w.drive()
    assert (w.effect(run).state, w.run(run).state) == (EffectState.SUCCEEDED, RunState.COMPLETED)
    assert w.applied(effect) == 1


def given_up(w: World, run: object) -> None:
    """Everybody takes this worker for dead while it waits for its answer."""
    failpoints.disarm()
    me, other = w.me, w.worker()
    w.dies(me)
    with w.as_worker(other):
        (attempt,) = w.attempts(w.effect(run))  # type: ignore[arg-type]
        reconcile.lose(attempt.pk)
    w.me = other


def test_a_late_answer_changes_no_settled_effect_and_no_ended_run(w: World) -> None:
    """Invariants 5 and 6: it agrees with what was found out meanwhile, so only the evidence is new."""
    run = w.accept("test.many", "pay")

    def settled_by_another() -> None:
        given_up(w, run)
        with w.as_worker(w.me):
            w.drive()
            assert w.run(run).state == RunState.COMPLETED

    failpoints.arm("advance.before_outcome", settled_by_another)
    assert w.advance(run) == "stale"
    ended, effect = w.run(run), w.effect(run)
    w.drive()
    after = w.effect(run)
    assert (after.reason, after.settled_at, after.result) == (effect.reason, effect.settled_at, effect.result)
    assert after.reason["code"] == "proved"
    assert (w.run(run).state, w.run(run).ended_at) == (RunState.COMPLETED, ended.ended_at)
    assert Evidence.objects.filter(effect=effect, kind="answer").count() == 1


def test_a_late_answer_against_a_settled_effect_disputes_it(w: World) -> None:
    """DESIGN section 4: contradicting evidence moves a settled effect to disputed, also under an ended run."""
    run = w.accept("test.many", "card")

    def not_found_by_another() -> None:
        given_up(w, run)
        w.sandbox.dial("cards-eu", readback="lag", readback_lag=3600)
        with w.as_worker(w.me):
            w.drive(jump=timedelta(minutes=10))
            assert w.effect(run).state == EffectState.NOT_APPLIED
            assert w.run(run).state == RunState.FAILED

    failpoints.arm("advance.before_outcome", not_found_by_another)
    w.advance(run)
    w.drive()
    assert w.effect(run).state == EffectState.DISPUTED
    assert w.run(run).state == RunState.FAILED, "an ended run stays ended (invariant 5)"
    assert w.reviews(run) == [ReviewKind.EVIDENCE_DISAGREES]


def test_seen_once_and_then_not_found_is_disputed(w: World) -> None:
    """No rule picks one of two words; the question of the first review is another one now."""
    run = unknown(w, "card", "cards-eu")
    w.drive()
    assert w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN]
    w.sandbox.dial("cards-eu", readback="lag", readback_lag=3600)
    w.drive(jump=timedelta(hours=1))
    effect = w.effect(run)
    assert effect.state == EffectState.DISPUTED
    assert w.reviews(run) == [ReviewKind.EVIDENCE_DISAGREES]
    assert w.run(run).waiting_on == WaitingOn.UNKNOWN
    assert len(w.sandbox.requests()) == 1


def test_a_person_checks_now(w: World) -> None:
    """Issue: "Check with … now" asks synchronously and may settle by evidence."""
    run = unknown(w, "pay", "payments")
    how = act("check")
    done = actions.check(w.effect(run).pk, actor=w.s.oncall_g, act=how)
    assert (done.facts["claim"], done.facts["state"]) == (Claim.HAPPENED, EffectState.SUCCEEDED)
    again = actions.check(w.effect(run).pk, actor=w.s.oncall_g, act=how)
    assert again.replayed and again.facts["evidence"] == done.facts["evidence"]
    assert Evidence.objects.filter(effect=w.effect(run)).count() == 1, "twice is once (invariant 15)"


def test_checking_a_settled_effect_keeps_how_it_was_settled(w: World) -> None:
    """A look at what is settled is evidence; the reason and the time of its end stay."""
    run = w.accept("test.many", "pay")
    w.drive()
    before = w.effect(run)
    actions.check(before.pk, actor=w.s.oncall_g, act=act("check"))
    after = w.effect(run)
    assert (after.state, after.reason, after.settled_at) == (before.state, before.reason, before.settled_at)
    assert after.version == before.version + 1


def test_nothing_is_resent_after_the_window_has_closed(w: World) -> None:
    """Fault 19: older than the promise's window, never again automatically."""
    run = unknown(w, "mail", "mail")
    later(hours=25)
    w.drive()
    effect = w.effect(run)
    assert (effect.state, effect.decision["reason"]) == (EffectState.UNKNOWN, "window_closed")
    assert w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN]
    assert len(w.sandbox.requests()) == 1


def test_each_look_is_one_line_and_the_first_says_since_when(w: World) -> None:
    """Invariant 9; the age of an unknown counts from when it became one."""
    before = clock.now()
    run = unknown(w, "card", "cards-eu")
    since = w.effect(run).unknown_since
    w.drive(jump=timedelta(minutes=3))
    effect = w.effect(run)
    assert effect.unknown_since == since and since is not None and since >= before
    assert len(w.events(run, EventKind.EFFECT_CHECKED)) == effect.checks
