"""An outcome nobody knows: evidence first, then reading, then the same key, then a person. Pure.

Only evidence ends it (invariant 4). No rule here looks at age to decide what happened; age only decides when
a person is asked.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from recovery.contract.failures import FailureClass
from recovery.contract.outcomes import OutcomeKind
from recovery.engine.judging import Case
from recovery.engine.snapshot import Decision, EvidenceView, Verb
from runs.states import Claim, EffectState, EvidenceKind, ReviewKind, Strength

_BY_CLAIM = {
    Claim.HAPPENED: (EffectState.SUCCEEDED, "proved"),
    Claim.REJECTED: (EffectState.REJECTED, "refusal_proved"),
    Claim.IN_PART: (EffectState.PARTIAL, "proved_in_part"),
}


def decide_unknown(case: Case) -> Decision:
    """An effect that is unknown, or in flight with an attempt that was lost."""
    settled = _by_evidence(case)
    if settled is not None:
        return settled
    if _mismatch(case):
        return case.ask("key_mismatch", becomes=EffectState.UNKNOWN)
    if case.attempts and not any(case.may_have_happened(one) for one in case.attempts):
        # A late answer told it: the only request that left was turned away before anything was done.
        told = [one for one in case.snap.evidence if one.kind == EvidenceKind.ANSWER]
        last = case.attempts[-1].outcome
        failure = last.failure_class if last is not None else None
        return case.settle(EffectState.NOT_APPLIED, "turned_away", told, failure=failure and str(failure))
    read_at = _next_check(case)
    latest = None if read_at is None else _latest(case)
    if latest is not None and latest.claim == Claim.PENDING:
        return _read_or(case, read_at, "still_pending", "still_pending")
    if latest is not None and latest.claim == Claim.HAPPENED and latest.strength == Strength.AGREES:
        # It looks as if it happened: another send could only do harm, and looking again proves no more.
        return _read_or(case, read_at, "agrees_not_proof", "agrees_not_proof", ask_now=True, evidence=[latest])
    if read_at is not None and latest is None:
        # Reconcile before any other write.
        return case.act(Verb.READ_BACK, "check_first", becomes=EffectState.UNKNOWN)
    resend = _resend(case)
    if resend is not None:
        return resend
    if read_at is not None:
        reason = "not_found_once" if case.negatives else "not_found_yet"
        if latest is not None and latest.claim == Claim.UNAVAILABLE:
            reason = "check_unanswered"
        if case.snap.cancelling:
            reason = "cancelling_checks"
        return _read_or(case, read_at, reason, "checks_go_on")
    return case.ask(_why_stuck(case), becomes=EffectState.UNKNOWN, closed=case.window_closes)


def decide_accepted(case: Case) -> Decision:
    """The other side took it and will say later. Nothing is sent again."""
    settled = _by_evidence(case)
    if settled is not None:
        return settled
    if case.now >= case.snap.deadline:
        return case.ask("taken_and_silent", becomes=EffectState.UNKNOWN, again=_next_check(case))
    read_at = _next_check(case)
    if read_at is not None and case.now >= read_at:
        return case.act(Verb.READ_BACK, "taken", becomes=EffectState.ACCEPTED)
    until = case.snap.deadline if read_at is None else min(read_at, case.snap.deadline)
    return case.wait("taken", until, becomes=EffectState.ACCEPTED)


def _by_evidence(case: Case) -> Decision | None:
    against = case.contradiction()
    if against:
        return case.disputed(against)
    if case.proofs:
        first = min(case.proofs, key=lambda one: one.received_at)
        state, reason = _BY_CLAIM[first.claim]
        return case.settle(state, reason, case.proofs, result=first.result, seen=first.received_at)
    agreeing = any(one.claim == Claim.HAPPENED and one.strength == Strength.AGREES for one in case.snap.evidence)
    if len(case.negatives) < 2:
        return None
    if agreeing or case.was_taken:
        # Once seen, or once taken, and now not found: no rule picks one of the two.
        return case.disputed([one for one in case.snap.evidence if one.claim != Claim.UNAVAILABLE])
    first, second = case.negatives[0], case.negatives[-1]
    return case.settle(
        EffectState.NOT_APPLIED,
        "not_found_twice",
        [first, second],
        first=first.received_at,
        second=second.received_at,
    )


def _mismatch(case: Case) -> bool:
    last = case.last
    return last is not None and last.outcome is not None and last.outcome.kind == OutcomeKind.MISMATCH


def _latest(case: Case) -> EvidenceView | None:
    """The latest check that counts as having looked: made after the last attempt began."""
    return case.checks[-1] if case.checks else None


def _next_check(case: Case) -> datetime | None:
    """When to read next; None where nothing can be read."""
    readback = case.contract.reconcile
    if readback is None:
        return None
    latest = _latest(case)
    if latest is None:
        return case.now
    pause = readback.backoff.ceiling(len(case.checks))
    at = latest.received_at + pause
    if latest.claim == Claim.NOT_FOUND and case.negative_from is not None:
        if case.counts_as_negative(latest):
            return latest.received_at + readback.apart if len(case.negatives) == 1 else at
        # Looking before the lag is over proves nothing; so the next look is the first that can.
        behind = latest.received_at - latest.speaks_of
        return max(case.negative_from + behind, latest.received_at + min(pause, readback.apart))
    return at


def _read_or(
    case: Case,
    read_at: datetime | None,
    wait_reason: str,
    ask_reason: str,
    *,
    ask_now: bool = False,
    evidence: list[EvidenceView] | None = None,
) -> Decision:
    """Read when due; until then wait, or ask once the limit is over (or at once) while the checks go on."""
    if read_at is not None and case.now >= read_at:
        return case.act(Verb.READ_BACK, wait_reason, becomes=EffectState.UNKNOWN)
    if ask_now or _limit_over(case):
        return case.ask(
            ask_reason,
            review=ReviewKind.OUTCOME_UNKNOWN,
            becomes=EffectState.UNKNOWN,
            again=read_at,
            evidence=evidence or (),
        )
    until = read_at
    if until is not None and case.snap.unknown_since is not None:
        until = min(until, case.snap.unknown_since + case.contract.review_after)
    return case.wait(wait_reason, until, becomes=EffectState.UNKNOWN, next_check=read_at)


def _limit_over(case: Case) -> bool:
    since = case.snap.unknown_since
    return since is not None and case.now >= since + case.contract.review_after


def _resend(case: Case) -> Decision | None:
    """The same bytes under the same key, if the promise protects it and everything a first send needs
    holds."""
    if (
        case.snap.cancelling
        or not case.key_protects
        or not case.approval_holds
        or not case.tries_left(FailureClass.UNKNOWN)
        or case.now >= case.last_moment_to_send
    ):
        return None
    last = case.last
    if last is None or not _is_over(case):
        return None
    outcome = last.outcome
    told = None if outcome is None or outcome.retry_after_s is None else timedelta(seconds=outcome.retry_after_s)
    at = case.pause_ends(told)
    closes = case.window_closes
    if at >= case.last_moment_to_send or (closes is not None and at + case.contract.timeout >= closes):
        return None
    if case.snap.paused:
        # Reading goes on; what can only be sent again waits for whoever paused the run.
        readable = case.contract.reconcile is not None
        return None if readable else _wait_or_ask(case, "run_paused", case.look_again)
    if case.snap.held:
        return _wait_or_ask(case, "dependency_held", case.look_again)
    if not case.snap.budget_left:
        return _wait_or_ask(case, "budget_used_up", case.look_soon)
    if case.now < at:
        return _wait_or_ask(case, "pause_same_key", at)
    return case.act(Verb.RESEND, "same_key_again", becomes=EffectState.UNKNOWN)


def _wait_or_ask(case: Case, reason: str, at: datetime) -> Decision:
    if _limit_over(case):
        return case.ask(reason, becomes=EffectState.UNKNOWN, again=at)
    return case.wait(reason, at, becomes=EffectState.UNKNOWN)


def _is_over(case: Case) -> bool:
    """Two sends of one effect never overlap: the last must have ended, or its limit passed, or its sender
    died."""
    last = case.last
    if last is None:
        return False
    return last.ended_at is not None or not last.sender_alive or case.now >= last.expires_at


def _why_stuck(case: Case) -> str:
    promise = case.contract.promise
    if case.snap.cancelling and promise.keys:
        return "cancelling_reads_only"
    if not case.contract.can_check:
        return "no_way_to_check"
    if not promise.in_force(case.now):
        return "promise_ended"
    if promise.keys and promise.compares != "body":
        return "key_not_compared"
    if promise.keys and not case.key_protects:
        return "window_closed"
    if not case.approval_holds:
        return "approval_over"
    return "own_moves_used_up"
