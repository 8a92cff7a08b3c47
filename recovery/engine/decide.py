"""What happens next to one effect: ``decide(snapshot, contract, now)``, pure and total.

The rules are those of DESIGN section 5 (retry, reconcile), of the fault matrix and of R10. Nothing here
sleeps, asks or writes; the same snapshot at the same time gives the same decision.
"""

from __future__ import annotations

from datetime import datetime

from recovery.contract.effects import EffectContract
from recovery.contract.outcomes import Outcome, OutcomeKind
from recovery.engine.judging import Case
from recovery.engine.sending import before_send, send_again
from recovery.engine.snapshot import AttemptView, Decision, Snapshot, Verb
from recovery.engine.unknown import decide_accepted, decide_unknown
from runs.states import (
    ATTEMPT_LIVE,
    EFFECT_SETTLED,
    AttemptState,
    Claim,
    EffectState,
    EvidenceKind,
    ReviewKind,
    Strength,
)

__all__ = ["Decision", "Snapshot", "Verb", "decide"]


def decide(snap: Snapshot, contract: EffectContract, now: datetime) -> Decision:
    """The next thing to do about the effect in ``snap`` at ``now`` (database time)."""
    case = Case(snap, contract, now)
    if snap.state == EffectState.PARTIAL:
        return case.wait("answered_in_part", None)
    if snap.state in EFFECT_SETTLED:
        return _settled(case)
    if snap.state == EffectState.DISPUTED:
        return case.ask("evidence_disagrees", review=ReviewKind.EVIDENCE_DISAGREES)
    if snap.state == EffectState.PLANNED:
        return _planned(case)
    if snap.state == EffectState.AWAITING_APPROVAL:
        return _awaiting(case)
    if snap.state == EffectState.READY:
        return before_send(case)
    if snap.state == EffectState.ACCEPTED:
        return decide_accepted(case)
    if snap.state == EffectState.UNKNOWN:
        return decide_unknown(case)
    return _in_flight(case)


def _settled(case: Case) -> Decision:
    """Settled stays settled, but for the authority's later word against it (also under an ended run)."""
    snap = case.snap
    since = snap.settled_at
    heard = [
        one
        for one in snap.evidence
        if one.kind != EvidenceKind.STATEMENT and since is not None and one.received_at > since
    ]
    if snap.state == EffectState.SUCCEEDED:
        against = [
            one
            for one in heard
            if one.strength == Strength.CONTRADICTS
            or (one.claim == Claim.REJECTED and one.strength == Strength.PROVES)
            or (one.claim == Claim.NOT_FOUND and case.counts_as_negative(one))
        ]
    elif snap.state in (EffectState.DECLINED, EffectState.COMPENSATED):
        # What was mended did happen, and may be gone by now: neither word contradicts it.
        against = []
    else:
        against = [one for one in heard if one.claim in (Claim.HAPPENED, Claim.IN_PART)]
    if against:
        return case.disputed(against)
    return case.wait("settled", None)


def _planned(case: Case) -> Decision:
    """An item of a plan whose turn has not come; its run asks for it when it has."""
    if case.snap.cancelling:
        return case.settle(EffectState.CANCELLED, "cancelled_before_sending")
    if case.now >= case.last_moment_to_send:
        return case.settle(EffectState.EXPIRED, "deadline_passed")
    return case.wait("planned", case.last_moment_to_send)


def _awaiting(case: Case) -> Decision:
    if case.snap.cancelling:
        return case.settle(EffectState.CANCELLED, "cancelled_before_sending")
    if case.now >= case.last_moment_to_send:
        return case.settle(EffectState.EXPIRED, "deadline_passed")
    if case.snap.approve_by is not None and case.now >= case.snap.approve_by:
        return case.ask("approval_expired", review=ReviewKind.SIGNATURES_NEEDED, again=case.last_moment_to_send)
    again = min(at for at in (case.snap.approve_by, case.last_moment_to_send) if at is not None)
    signers = case.contract.approval.group if case.contract.approval is not None else case.contract.escalate_to
    return case.ask("signatures_needed", review=ReviewKind.SIGNATURES_NEEDED, again=again, group=signers)


def _in_flight(case: Case) -> Decision:
    last = case.last
    if last is None:
        # In flight without an attempt is no state the record can reach; the safe reading is "nobody knows".
        return decide_unknown(case)
    if last.state in ATTEMPT_LIVE:
        return _still_out(case, last)
    if last.state == AttemptState.NOT_SENT and not case.outstanding:
        return send_again(case, "not_sent", None)
    if last.state == AttemptState.ANSWERED and last.outcome is not None:
        return _answered(case, last.outcome)
    return decide_unknown(case)


def _still_out(case: Case, last: AttemptView) -> Decision:
    if case.proofs or case.contradiction():
        # Word of it came before the answer did; the answer will only confirm it.
        return decide_unknown(case)
    gone = not last.sender_alive or case.now >= last.expires_at
    if not gone:
        return case.wait("in_flight", last.expires_at)
    if case.contract.claims_before_send and last.state == AttemptState.COMMITTED and not case.outstanding:
        # This contract commits "claimed" right before the first byte; without it nothing can have left.
        return send_again(case, "never_claimed", None)
    return decide_unknown(case)


_SETTLES = {
    OutcomeKind.SUCCEEDED: (EffectState.SUCCEEDED, "answered"),
    OutcomeKind.PARTIAL: (EffectState.PARTIAL, "answered_in_part"),
    OutcomeKind.REJECTED: (EffectState.REJECTED, "refused_by_dependency"),
    OutcomeKind.REFUSED: (EffectState.REJECTED, "not_authorised"),
    OutcomeKind.INVALID: (EffectState.REJECTED, "request_invalid"),
    OutcomeKind.CONFLICT: (EffectState.REJECTED, "state_moved_on"),
}


def _answered(case: Case, outcome: Outcome) -> Decision:
    """The last attempt has an answer. With an earlier one outstanding only an answer about the key counts."""
    kind = outcome.kind
    against = case.contradiction()
    if against:
        return case.disputed(against)
    if case.outstanding and not _about_the_key(case, kind):
        return decide_unknown(case)
    if kind in _SETTLES:
        state, reason = _SETTLES[kind]
        return case.settle(
            state,
            reason,
            [one for one in case.snap.evidence if one.kind == EvidenceKind.ANSWER],
            result=outcome.result,
            code=outcome.code,
        )
    if kind == OutcomeKind.ACCEPTED:
        return decide_accepted(case)
    if kind in (OutcomeKind.TRANSIENT, OutcomeKind.OVERLOADED, OutcomeKind.NOT_SENT):
        reason = "overloaded" if kind == OutcomeKind.OVERLOADED else "not_taken"
        return send_again(case, reason, outcome)
    return decide_unknown(case)


def _about_the_key(case: Case, kind: OutcomeKind) -> bool:
    """Whether this answer speaks of the intent and not only of this request.

    Under a key that is compared, in its window, success and a business refusal are the stored result of the
    key. 401, 429 and malformed are answered in front of that layer: they say nothing of the earlier send. Nor
    does a conflict: what moved the authority's state may have been that very send.
    """
    if kind in (OutcomeKind.SUCCEEDED, OutcomeKind.PARTIAL, OutcomeKind.ACCEPTED):
        return True
    return kind == OutcomeKind.REJECTED and case.key_protects
