"""decide, rule by rule: what happens next to one effect. Pure; each test names the promise it holds."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from recovery.contract import FailureClass, OutcomeKind, hours, minutes, seconds
from recovery.engine.decide import Verb, decide
from runs.states import AttemptState, Claim, EffectState, EvidenceKind, Strength
from tests.unit.samples import (
    KEYS,
    RETRY,
    answered,
    at,
    attempt,
    evidence,
    facts_only,
    keyed,
    keys_only,
    lost,
    neither,
    not_found,
    silent,
    snap,
)

E, A, Kind = EffectState, AttemptState, OutcomeKind
HAPPENED = Claim.HAPPENED
LATER = 3_600


def proof(s: float, claim: Claim = HAPPENED, kind: EvidenceKind = EvidenceKind.READBACK, **more: object):
    return evidence(s, claim, Strength.PROVES, kind, **more)


class TestReady:
    def test_is_sent(self) -> None:
        """A ready effect with nothing against it is sent."""
        assert decide(snap(E.READY), keyed(), at(0)).verb == Verb.SEND

    def test_is_cancelled_before_sending(self) -> None:
        """Cancelling stops what is not sent (DESIGN, Cancel)."""
        got = decide(snap(E.READY, cancelling=True), keyed(), at(0))
        assert (got.verb, got.settle_as) == (Verb.SETTLE, E.CANCELLED)

    @pytest.mark.parametrize(("left", "verb"), [(301, Verb.SEND), (300, Verb.SETTLE), (299, Verb.SETTLE)])
    def test_expires_when_deadline_less_reserve_is_reached(self, left: int, verb: Verb) -> None:
        """Invariant 12 and "deadline minus reserve passed before the first send": expired, at the limit
        too."""
        got = decide(snap(E.READY, deadline=at(left)), keyed(), at(0))
        assert got.verb == verb
        assert got.settle_as in (None, E.EXPIRED)

    @pytest.mark.parametrize("by", [None, at(0), at(-1)])
    def test_is_not_sent_without_a_granted_approval_in_time(self, by) -> None:
        """Invariant 8, R6: at execute_by itself it is over; the effect waits for a new request."""
        got = decide(snap(E.READY, needs_approval=True, execute_by=by), keyed(), at(0))
        assert (got.verb, got.becomes) == (Verb.ASK, E.AWAITING_APPROVAL)

    def test_is_not_sent_when_a_signer_lost_the_right(self) -> None:
        """Invariant 8, R5: eligibility at dispatch."""
        got = decide(snap(E.READY, needs_approval=True, execute_by=at(60), approval_good=False), keyed(), at(0))
        assert got.becomes == E.AWAITING_APPROVAL

    def test_waits_for_its_pause_and_for_a_hold(self) -> None:
        """A pause and a hold send nothing."""
        assert decide(snap(E.READY, not_before=at(5)), keyed(), at(0)).not_before == at(5)
        assert decide(snap(E.READY, held=True), keyed(), at(0)).reason == "dependency_held"


class TestAwaitingApproval:
    def test_only_the_own_deadline_expires_it(self) -> None:
        """An expired approval leaves the effect waiting, with a review; the deadline makes it expired."""
        late = decide(snap(E.AWAITING_APPROVAL, approve_by=at(0)), keyed(), at(1))
        assert (late.verb, late.becomes, late.reason) == (Verb.ASK, None, "approval_expired")
        over = decide(snap(E.AWAITING_APPROVAL, deadline=at(300)), keyed(), at(0))
        assert over.settle_as == E.EXPIRED


class TestInFlight:
    def test_waits_while_the_sender_lives_and_the_limit_is_not_reached(self) -> None:
        got = decide(snap(E.IN_FLIGHT, attempt(state=A.COMMITTED)), keyed(), at(14))
        assert (got.verb, got.not_before, got.becomes) == (Verb.WAIT, at(15), None)

    @pytest.mark.parametrize(("alive", "when"), [(False, 1), (True, 15)])
    @pytest.mark.parametrize("make", [keyed, facts_only, keys_only])
    def test_dead_sender_or_passed_limit_is_unknown(self, make, alive: bool, when: float) -> None:
        """Fault 11: after a committed attempt nobody knows; never failed (invariant 4)."""
        got = decide(snap(E.IN_FLIGHT, attempt(state=A.COMMITTED, sender_alive=alive)), make(), at(when))
        assert got.becomes == E.UNKNOWN
        assert got.verb != Verb.SETTLE

    def test_never_claimed_is_known_not_sent(self) -> None:
        """Fault 10: neither key nor readback, death before `claimed`: known not sent, sent again."""
        got = decide(snap(E.IN_FLIGHT, attempt(state=A.COMMITTED, sender_alive=False)), neither(), at(1))
        assert (got.verb, got.becomes) == (Verb.WAIT, E.READY)

    def test_claimed_asks_at_once(self) -> None:
        """Faults, rule 11: neither key nor readback, died after `claimed`: send once, ask a person."""
        got = decide(snap(E.IN_FLIGHT, attempt(state=A.CLAIMED, sender_alive=False)), neither(), at(1))
        assert (got.verb, got.becomes, got.reason) == (Verb.ASK, E.UNKNOWN, "no_way_to_check")

    @pytest.mark.parametrize(
        ("kind", "state", "reason"),
        [
            (Kind.SUCCEEDED, E.SUCCEEDED, "answered"),
            (Kind.REJECTED, E.REJECTED, "refused_by_dependency"),
            (Kind.REFUSED, E.REJECTED, "not_authorised"),
            (Kind.INVALID, E.REJECTED, "request_invalid"),
            (Kind.PARTIAL, E.PARTIAL, "answered_in_part"),
        ],
    )
    def test_an_answer_settles(self, kind: OutcomeKind, state: EffectState, reason: str) -> None:
        got = decide(snap(E.IN_FLIGHT, answered(kind)), keyed(), at(10))
        assert (got.verb, got.settle_as, got.reason) == (Verb.SETTLE, state, reason)

    def test_not_sent_is_sent_again_after_a_pause(self) -> None:
        """Fault 14: refused connection: known not sent, with backoff, same key."""
        got = decide(snap(E.IN_FLIGHT, attempt(state=A.NOT_SENT, kind=Kind.NOT_SENT)), keyed(), at(10))
        assert (got.verb, got.becomes) == (Verb.WAIT, E.READY)
        assert got.not_before is not None and at(10) <= got.not_before <= at(12)

    def test_not_sent_ends_as_not_applied_when_the_tries_are_used_up(self) -> None:
        """Invariant 10: attempts are bounded."""
        tries = [attempt(n, A.NOT_SENT, began=n * 20, kind=Kind.NOT_SENT) for n in (1, 2, 3)]
        got = decide(snap(E.IN_FLIGHT, *tries), keyed(), at(70))
        assert got.settle_as == E.NOT_APPLIED

    def test_not_sent_ends_as_not_applied_when_the_time_is_used_up(self) -> None:
        """Invariant 10: total time is bounded, from the first send."""
        got = decide(snap(E.IN_FLIGHT, attempt(state=A.NOT_SENT, kind=Kind.NOT_SENT)), keyed(), at(1800))
        assert got.settle_as == E.NOT_APPLIED

    def test_overload_counts_against_time_and_honours_retry_after(self) -> None:
        """Fault 16: 429 burns no try; never earlier than Retry-After."""
        tries = [answered(Kind.OVERLOADED, n, began=n * 20, retry_after=90) for n in range(1, 9)]
        got = decide(snap(E.IN_FLIGHT, *tries), keyed(), at(170))
        assert (got.verb, got.becomes) == (Verb.WAIT, E.READY)
        assert got.not_before is not None and got.not_before >= at(8 * 20 + 10 + 90)

    def test_proof_that_comes_before_the_answer_settles(self) -> None:
        """Fault 27: a callback before the reply."""
        got = decide(
            snap(E.IN_FLIGHT, attempt(state=A.COMMITTED), seen=[proof(2, kind=EvidenceKind.CALLBACK)]),
            keyed(),
            at(3),
        )
        assert got.settle_as == E.SUCCEEDED

    @pytest.mark.parametrize("kind", [Kind.OVERLOADED, Kind.TRANSIENT, Kind.REFUSED, Kind.INVALID, Kind.IN_FLIGHT])
    def test_an_answer_in_front_of_the_key_says_nothing_of_an_earlier_lost_send(self, kind) -> None:
        """Invariant 4: a 429 or 401 to the second send does not settle what the first may have done."""
        got = decide(snap(E.IN_FLIGHT, lost(1), answered(kind, 2, began=20)), keyed(), at(31))
        assert got.becomes == E.UNKNOWN
        assert got.verb != Verb.SETTLE

    def test_not_sent_after_a_lost_send_stays_unknown(self) -> None:
        """Invariant 4: the second connection failed; the first send is as unknown as before."""
        got = decide(snap(E.IN_FLIGHT, lost(1), attempt(2, A.NOT_SENT, began=20, kind=Kind.NOT_SENT)), keyed(), at(31))
        assert got.becomes == E.UNKNOWN

    def test_a_business_refusal_under_the_key_settles_what_came_before(self) -> None:
        """Under a compared key in its window the stored result of the key is the intent's result."""
        got = decide(snap(E.IN_FLIGHT, lost(1), answered(Kind.REJECTED, 2, began=20)), keyed(), at(31))
        assert got.settle_as == E.REJECTED


class TestUnknown:
    def test_reads_before_any_other_write(self) -> None:
        """DESIGN, failure classes: unknown: reconcile before any other write."""
        assert decide(snap(E.UNKNOWN, lost()), keyed(), at(11)).verb == Verb.READ_BACK

    @pytest.mark.parametrize(
        ("claim", "state"),
        [(HAPPENED, E.SUCCEEDED), (Claim.REJECTED, E.REJECTED), (Claim.IN_PART, E.PARTIAL)],
    )
    def test_proof_settles(self, claim: Claim, state: EffectState) -> None:
        got = decide(snap(E.UNKNOWN, lost(), seen=[proof(12, claim)]), keyed(), at(13))
        assert got.settle_as == state
        assert got.evidence

    def test_a_statement_never_settles(self) -> None:
        """A person's word is a verdict's business, not decide's (second person, D3)."""
        word = evidence(12, HAPPENED, Strength.WORD, EvidenceKind.STATEMENT)
        assert decide(snap(E.UNKNOWN, lost(), seen=[word]), facts_only(), at(13)).verb != Verb.SETTLE

    def test_agreeing_facts_are_not_proof(self) -> None:
        """Screens 1.4: agrees in all facts, no reference: a person decides; checks go on meanwhile."""
        got = decide(snap(E.UNKNOWN, lost(), seen=[evidence(12, HAPPENED)]), facts_only(), at(12))
        assert (got.verb, got.reason, got.becomes) == (Verb.ASK, "agrees_not_proof", None)
        assert got.not_before is not None and got.not_before > at(12)

    def test_not_found_with_a_protecting_key_sends_again(self) -> None:
        """Fault 11: in window and body-checked: same key again."""
        got = decide(snap(E.UNKNOWN, lost(), seen=[not_found(12)]), keyed(), at(60))
        assert (got.verb, got.reason) == (Verb.RESEND, "same_key_again")

    def test_unanswered_check_with_a_protecting_key_sends_again(self) -> None:
        """Fault 21 with keys: the readback is down, the key still protects."""
        assert decide(snap(E.UNKNOWN, lost(), seen=[silent(12)]), keyed(), at(60)).verb == Verb.RESEND

    def test_keys_without_readback_send_again_after_the_pause(self) -> None:
        assert decide(snap(E.UNKNOWN, lost()), keys_only(), at(10)).verb in (Verb.WAIT, Verb.RESEND)
        assert decide(snap(E.UNKNOWN, lost()), keys_only(), at(60)).verb == Verb.RESEND

    @pytest.mark.parametrize(
        ("contract", "more"),
        [
            (keys_only(), {"cancelling": True}),
            (keys_only(promise=replace(KEYS, window=minutes(20))), {}),
            (keys_only(promise=replace(KEYS, compares="nothing")), {}),
            (keys_only(promise=replace(KEYS, until=date(2026, 11, 29))), {}),
            (keys_only(retry=replace(RETRY, attempts=1)), {}),
            (keys_only(retry=replace(RETRY, total=minutes(15))), {}),
            (keys_only(retry=replace(RETRY, classes=frozenset({FailureClass.TRANSIENT}))), {}),
            (keys_only(), {"deadline": at(1200 + 300)}),
            (keys_only(), {"needs_approval": True, "execute_by": at(1200)}),
            (keys_only(), {"needs_approval": True, "execute_by": at(9999), "approval_good": False}),
            (keys_only(), {"budget_left": False}),
            (neither(), {}),
            (facts_only(), {}),
        ],
    )
    def test_is_never_sent_again_where_one_condition_fails(self, contract, more) -> None:
        """Invariants 8 and 10, R10, faults 19: window, promise, tries, time, deadline, approval,
        cancelling."""
        seen = [silent(1190)] if contract.reconcile else []
        got = decide(snap(E.UNKNOWN, lost(), seen=seen, **more), contract, at(1200))
        assert got.verb in (Verb.ASK, Verb.WAIT, Verb.READ_BACK)

    def test_the_same_case_with_all_conditions_is_sent_again(self) -> None:
        """The test above bites: with nothing failing the answer is another."""
        assert decide(snap(E.UNKNOWN, lost()), keys_only(), at(1200)).verb == Verb.RESEND

    def test_bytes_must_arrive_before_the_window_closes(self) -> None:
        """Fault 19: counted from the first attempt, less the time that a send may take."""
        contract = keys_only(promise=replace(KEYS, window=hours(1)), retry=replace(RETRY, total=hours(2), attempts=9))
        tries = [lost(1), lost(2, began=1000)]
        assert decide(snap(E.UNKNOWN, *tries), contract, at(3589)).verb == Verb.RESEND
        assert decide(snap(E.UNKNOWN, *tries), contract, at(3590)).reason == "window_closed"

    def test_nothing_overlaps(self) -> None:
        """Two sends of one effect never overlap: a live attempt of a living sender is not doubled."""
        got = decide(snap(E.UNKNOWN, attempt(state=A.COMMITTED)), keys_only(), at(5))
        assert got.verb != Verb.RESEND

    def test_mismatch_halts(self) -> None:
        """Fault 18: no automatic new key, nothing sent, a person looks."""
        got = decide(snap(E.IN_FLIGHT, answered(Kind.MISMATCH)), keyed(), at(10))
        assert (got.verb, got.reason, got.becomes) == (Verb.ASK, "key_mismatch", E.UNKNOWN)

    def test_pending_waits(self) -> None:
        """If the operation is still pending, wait; never send."""
        got = decide(snap(E.UNKNOWN, lost(), seen=[evidence(12, Claim.PENDING)]), keyed(), at(12.5))
        assert (got.verb, got.reason) == (Verb.WAIT, "still_pending")

    def test_asks_when_the_limit_is_over_and_goes_on_checking(self) -> None:
        """A review when the time limit is over; the checks go on."""
        seen = [silent(s) for s in (12, 14, 18, 26, 42, 74, 138, 266, 522)]
        got = decide(snap(E.UNKNOWN, lost(), seen=seen), facts_only(), at(611))
        assert (got.verb, got.reason, got.not_before) == (Verb.ASK, "checks_go_on", at(522 + 300))
        assert decide(snap(E.UNKNOWN, lost(), seen=seen), facts_only(), at(823)).verb == Verb.READ_BACK

    def test_waits_no_longer_than_the_limit(self) -> None:
        """The next look is at the limit at the latest, so that the review is opened in time."""
        seen = [silent(s) for s in (12, 14, 18, 26, 42, 74, 138, 266, 522)]
        assert decide(snap(E.UNKNOWN, lost(), seen=seen), facts_only(), at(523)).not_before == at(610)

    def test_a_late_answer_that_it_was_turned_away_ends_it(self) -> None:
        """A 503 that came after the attempt was given up proves that the only request was not taken."""
        late = attempt(state=A.LATE, kind=Kind.TRANSIENT)
        told = evidence(40, Claim.UNAVAILABLE, Strength.NONE, EvidenceKind.ANSWER)
        got = decide(snap(E.UNKNOWN, late, seen=[told]), neither(), at(41))
        assert (got.settle_as, got.reason) == (E.NOT_APPLIED, "turned_away")
        other = decide(snap(E.UNKNOWN, lost(1), replace(late, n=2), seen=[told]), neither(), at(41))
        assert other.verb == Verb.ASK


class TestNotFound:
    """Fault 20: "not found" counts twice, after the lag, from the latest moment it could still arrive."""

    def test_twice_after_the_lag_settles(self) -> None:
        seen = [not_found(41), not_found(72)]
        got = decide(snap(E.UNKNOWN, lost(), seen=seen), facts_only(), at(72))
        assert (got.settle_as, got.reason) == (E.NOT_APPLIED, "not_found_twice")
        assert set(got.evidence) == {seen[0].id, seen[1].id}

    @pytest.mark.parametrize(
        "seen",
        [
            [not_found(41)],
            [not_found(12), not_found(39), not_found(72)],
            [not_found(41), not_found(42)],
            [not_found(41), not_found(72, observed_at=at(30))],
            [not_found(41), silent(72)],
        ],
        ids=[
            "once",
            "once after the lag",
            "too close",
            "their answer speaks of earlier",
            "the second unanswered",
        ],
    )
    def test_less_than_that_does_not(self, seen) -> None:
        got = decide(snap(E.UNKNOWN, lost(), seen=seen), facts_only(), at(73))
        assert got.verb != Verb.SETTLE

    def test_counts_from_the_limit_where_the_sender_did_not_tell(self) -> None:
        """A sender believed dead may only have been paused: the attempt's limit counts, not when it was
        missed."""
        dead = attempt(state=A.LOST, sender_alive=False, ended_at=at(2))
        early = [not_found(35), not_found(70)]
        assert decide(snap(E.UNKNOWN, dead, seen=early), facts_only(), at(70)).verb != Verb.SETTLE
        later = [not_found(46), not_found(77)]
        assert decide(snap(E.UNKNOWN, dead, seen=later), facts_only(), at(77)).settle_as == E.NOT_APPLIED

    def test_waits_until_looking_can_prove_something(self) -> None:
        """Before the lag is over the next look is the first that counts."""
        got = decide(snap(E.UNKNOWN, lost(), seen=[not_found(11)]), facts_only(), at(11))
        assert (got.verb, got.not_before) == (Verb.WAIT, at(40))
        again = decide(snap(E.UNKNOWN, lost(), seen=[not_found(11), not_found(40)]), facts_only(), at(41))
        assert (again.reason, again.not_before) == ("not_found_once", at(70))

    def test_a_new_send_makes_earlier_looks_worthless(self) -> None:
        """A second attempt may still arrive: what was not found before it proves nothing about it."""
        seen = [not_found(41), not_found(72)]
        got = decide(snap(E.UNKNOWN, lost(1), lost(2, began=80), seen=seen), keyed(), at(91))
        assert got.verb == Verb.READ_BACK

    def test_settles_while_cancelling_too(self) -> None:
        """Walk d: cancelling only reads, and two negatives after the lag end it."""
        seen = [not_found(41), not_found(72)]
        got = decide(snap(E.UNKNOWN, lost(), seen=seen, cancelling=True), keyed(), at(72))
        assert got.settle_as == E.NOT_APPLIED
        once = decide(snap(E.UNKNOWN, lost(), seen=seen[:1], cancelling=True), keyed(), at(42))
        assert (once.verb, once.reason) == (Verb.WAIT, "cancelling_checks")


def test_same_snapshot_same_decision() -> None:
    """decide is pure: jitter is the effect's own, not the moment's."""
    case = snap(E.IN_FLIGHT, attempt(state=A.NOT_SENT, kind=Kind.NOT_SENT))
    assert decide(case, keyed(), at(10)) == decide(case, keyed(), at(10))


def test_pauses_grow_with_full_jitter() -> None:
    """Backoff doubles to its cap; jitter spreads over the whole of it."""
    contract = keyed(retry=replace(RETRY, attempts=50, total=hours(20)))
    for n in range(1, 12):
        tries = [attempt(k, A.NOT_SENT, began=0, kind=Kind.NOT_SENT) for k in range(1, n + 1)]
        got = decide(snap(E.IN_FLIGHT, *tries), contract, at(10))
        assert got.not_before is not None
        assert seconds(0) <= got.not_before - at(10) <= min(seconds(2) * 2 ** (n - 1), seconds(60))
