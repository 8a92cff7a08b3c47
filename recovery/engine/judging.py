"""One effect at one moment: what its attempts and its evidence amount to. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from recovery.contract.effects import EffectContract
from recovery.contract.failures import FailureClass
from recovery.contract.outcomes import OutcomeKind
from recovery.engine.snapshot import AttemptView, Decision, EvidenceView, Snapshot, Verb
from runs.states import (
    EFFECT_SETTLED,
    AttemptState,
    Claim,
    EffectState,
    EvidenceKind,
    ReviewKind,
    Strength,
)

_KNOWN_NOT_APPLIED = {
    OutcomeKind.NOT_SENT,
    OutcomeKind.TRANSIENT,
    OutcomeKind.OVERLOADED,
    OutcomeKind.REFUSED,
    OutcomeKind.INVALID,
    OutcomeKind.MISMATCH,
    OutcomeKind.CONFLICT,
}


class Case:
    """A snapshot, its contract and the time, with the questions decide asks of them."""

    def __init__(self, snap: Snapshot, contract: EffectContract, now: datetime) -> None:
        self.snap = snap
        self.contract = contract
        self.now = now
        self.attempts = sorted(snap.attempts, key=lambda one: one.n)

    # Attempts

    @property
    def last(self) -> AttemptView | None:
        """The latest attempt."""
        return self.attempts[-1] if self.attempts else None

    @cached_property
    def outstanding(self) -> list[AttemptView]:
        """Attempts before the last whose outcome nobody knows."""
        return [one for one in self.attempts[:-1] if self.may_have_happened(one)]

    def may_have_happened(self, attempt: AttemptView) -> bool:
        """Whether this attempt can have led to the effect, as far as its own answer tells."""
        if attempt.state == AttemptState.NOT_SENT:
            return False
        if attempt.state == AttemptState.COMMITTED and self.contract.claims_before_send:
            return False
        return attempt.outcome is None or attempt.outcome.kind not in _KNOWN_NOT_APPLIED

    @cached_property
    def tries(self) -> int:
        """Tries that count; being told to come later costs time, not tries."""
        return sum(1 for one in self.attempts if one.outcome is None or one.outcome.kind != OutcomeKind.OVERLOADED)

    @cached_property
    def could_arrive_until(self) -> datetime | None:
        """The latest moment at which any attempt could still reach the other side."""
        ends = []
        for one in self.attempts:
            if not self.may_have_happened(one):
                continue
            # Its own sender told how it ended: nothing of it leaves after that. Otherwise it may have been
            # paused and
            # believed dead, and its limit counts.
            own_word = one.outcome is not None and one.state != AttemptState.LATE
            if own_word and one.ended_at is not None:
                ends.append(one.ended_at)
            else:
                ends.append(max(one.expires_at, one.ended_at or one.expires_at))
        return max(ends, default=None)

    @property
    def was_taken(self) -> bool:
        """Whether the other side ever said that it took it (202)."""
        return any(one.outcome is not None and one.outcome.kind == OutcomeKind.ACCEPTED for one in self.attempts)

    # Evidence

    @cached_property
    def checks(self) -> list[EvidenceView]:
        """Readbacks since the last attempt began, oldest first; those without an answer too."""
        since = self.last.committed_at if self.last is not None else None
        found = [
            one
            for one in self.snap.evidence
            if one.kind == EvidenceKind.READBACK and (since is None or one.received_at >= since)
        ]
        return sorted(found, key=lambda one: one.received_at)

    @cached_property
    def proofs(self) -> list[EvidenceView]:
        """Evidence that settles by itself."""
        settling = {Claim.HAPPENED, Claim.REJECTED, Claim.IN_PART}
        return [
            one
            for one in self.snap.evidence
            if one.strength == Strength.PROVES and one.claim in settling and one.kind != EvidenceKind.STATEMENT
        ]

    def counts_as_negative(self, one: EvidenceView) -> bool:
        """Whether this "not found" was seen after everything that could arrive had, and the lag on top."""
        return (
            one.claim == Claim.NOT_FOUND
            and one.kind == EvidenceKind.READBACK
            and self.negative_from is not None
            and one.speaks_of >= self.negative_from
        )

    @cached_property
    def negative_from(self) -> datetime | None:
        """From when on a "not found" counts; None without a readback or an attempt."""
        readback = self.contract.reconcile
        if readback is None or self.could_arrive_until is None:
            return None
        lag = max(readback.lag, self.contract.promise.lag or timedelta(0))
        return self.could_arrive_until + lag

    @cached_property
    def negatives(self) -> list[EvidenceView]:
        """Counting "not found"s, each at least ``apart`` after the one before."""
        readback = self.contract.reconcile
        kept: list[EvidenceView] = []
        for one in sorted(self.snap.evidence, key=lambda one: one.speaks_of):
            if readback is None or not self.counts_as_negative(one):
                continue
            if not kept or one.speaks_of - kept[-1].speaks_of >= readback.apart:
                kept.append(one)
        return kept

    def contradiction(self) -> list[EvidenceView]:
        """Evidence that cannot all be true, or none."""
        against = [one for one in self.snap.evidence if one.strength == Strength.CONTRADICTS]
        if against:
            return against
        claims = {one.claim for one in self.proofs}
        if len(claims) > 1:
            return self.proofs
        if claims - {Claim.REJECTED} and self.negatives:
            return [*self.proofs, *self.negatives]
        return []

    # Limits

    @property
    def last_moment_to_send(self) -> datetime:
        """The deadline less the reserve for dealing with the answer."""
        return self.snap.deadline - self.contract.reserve

    @property
    def look_again(self) -> datetime:
        """When to look again at something that somebody else holds; a release rings earlier."""
        return min(self.now + timedelta(minutes=1), self.last_moment_to_send)

    @property
    def look_soon(self) -> datetime:
        """When to look again at a retry budget: it comes back with the calls of the next seconds."""
        return min(self.now + timedelta(seconds=15), self.last_moment_to_send)

    @property
    def key_protects(self) -> bool:
        """Whether the promise makes a repeat harmless now: keys, compared, in force, in the window of the
        first send."""
        promise = self.contract.promise
        if not promise.protects_resend(self.now):
            return False
        closes = self.window_closes
        # The bytes must arrive before the window closes, not only leave.
        return closes is None or self.now + self.contract.timeout < closes

    @property
    def window_closes(self) -> datetime | None:
        """When the other side may forget the key, counted from the first attempt."""
        if self.contract.promise.window is None or not self.attempts:
            return None
        return self.attempts[0].committed_at + self.contract.promise.window

    @property
    def approval_holds(self) -> bool:
        """R10: a resend needs what a first send needs. At ``execute_by`` itself it is over (R6)."""
        if not self.snap.needs_approval:
            return True
        by = self.snap.execute_by
        return by is not None and self.now < by and self.snap.approval_good

    def tries_left(self, kind: FailureClass) -> bool:
        """Whether class, attempts and total time allow one more send (invariant 10); the budget is waited for."""
        retry = self.contract.retry
        if not retry.allows(kind):
            return False
        if self.tries >= retry.attempts:
            return False
        return not self.attempts or self.now < self.attempts[0].committed_at + retry.total

    def pause_ends(self, retry_after: timedelta | None = None) -> datetime:
        """When the pause after the last attempt is over. The jitter is the effect's own: the same each
        time."""
        if self.last is None:
            return self.now
        rng = random.Random(f"{self.snap.effect}/{self.last.n}")
        since = self.last.ended_at or self.last.expires_at
        at = since + self.contract.retry.delay(len(self.attempts), rng, retry_after)
        return at if self.snap.not_before is None else max(at, self.snap.not_before)

    # Decisions

    def facts(self, **more: Any) -> dict[str, Any]:
        """What the sentences of a reason are filled with; JSON values, times in ISO 8601."""
        snap = self.snap
        told: dict[str, Any] = {
            "dependency": self.contract.dependency,
            "key": snap.key,
            "what": snap.what,
            "tries": len(self.attempts),
            "checks": len(self.checks),
            "deadline": snap.deadline,
            "run_deadline": snap.run_deadline,
            "group": self.contract.escalate_to,
            **self._readback_facts(),
            **more,
        }
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in told.items()
            if value is not None
        }

    def _readback_facts(self) -> dict[str, float]:
        readback = self.contract.reconcile
        if readback is None:
            return {}
        return {"lag_s": _plain(readback.lag), "apart_s": _plain(readback.apart)}

    def wait(self, reason: str, until: datetime | None, **more: Any) -> Decision:
        """Nothing to do before ``until``."""
        becomes = more.pop("becomes", None)
        facts = self.facts(at=until, **more)
        return Decision(verb=Verb.WAIT, reason=reason, facts=facts, not_before=until, becomes=self._change(becomes))

    def ask(
        self,
        reason: str,
        *,
        review: str = ReviewKind.OUTCOME_UNKNOWN,
        again: datetime | None = None,
        becomes: EffectState | None = None,
        evidence: Sequence[EvidenceView] = (),
        **more: Any,
    ) -> Decision:
        """A person decides; ``again`` is when Recourse looks again by itself meanwhile."""
        return Decision(
            verb=Verb.ASK,
            reason=reason,
            facts=self.facts(at=again, **more),
            not_before=again,
            becomes=self._change(becomes),
            evidence=tuple(one.id for one in evidence),
            review=str(review),
        )

    def act(self, verb: Verb, reason: str, becomes: EffectState | None = None, **more: Any) -> Decision:
        """Send, resend or read back now."""
        return Decision(verb=verb, reason=reason, facts=self.facts(at=self.now, **more), becomes=self._change(becomes))

    def settle(
        self,
        state: EffectState,
        reason: str,
        evidence: Sequence[EvidenceView] = (),
        *,
        result: dict[str, Any] | None = None,
        **more: Any,
    ) -> Decision:
        """The effect ends in ``state``, on this evidence."""
        # Invariant 4: a decision without evidence may end only what is known not to have left.
        assert state in EFFECT_SETTLED or state == EffectState.PARTIAL
        return Decision(
            verb=Verb.SETTLE,
            reason=reason,
            facts=self.facts(**more),
            settle_as=state,
            becomes=state,
            evidence=tuple(one.id for one in evidence),
            result=result,
        )

    def disputed(self, evidence: Sequence[EvidenceView]) -> Decision:
        """Evidence disagrees; only a person ends it."""
        if self.snap.state == EffectState.IN_FLIGHT:
            # The record goes from in flight to unknown first; the next look finds the dispute.
            return self.wait("evidence_disagrees", self.now, becomes=EffectState.UNKNOWN)
        return self.ask(
            "evidence_disagrees",
            review=ReviewKind.EVIDENCE_DISAGREES,
            becomes=EffectState.DISPUTED,
            evidence=evidence,
        )

    def _change(self, state: EffectState | None) -> EffectState | None:
        return None if state == self.snap.state else state


def _plain(length: timedelta) -> float:
    """Seconds, whole where they are whole: sentences say "30 s", not "30.0 s"."""
    total = length.total_seconds()
    return int(total) if total.is_integer() else total
