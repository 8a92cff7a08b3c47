"""decide, where evidence speaks against a settled or agreed outcome, and for what was only taken. Pure."""

from __future__ import annotations

import pytest

from recovery.contract import OutcomeKind
from recovery.engine.decide import Verb, decide
from runs.states import AttemptState, Claim, EffectState, EvidenceKind, Strength
from tests.unit.samples import (
    answered,
    at,
    evidence,
    facts_only,
    keyed,
    keys_only,
    lost,
    not_found,
    snap,
)

E, A, Kind = EffectState, AttemptState, OutcomeKind
HAPPENED = Claim.HAPPENED
LATER = 3_600


def proof(s: float, claim: Claim = HAPPENED, kind: EvidenceKind = EvidenceKind.READBACK, **more: object):
    return evidence(s, claim, Strength.PROVES, kind, **more)


class TestContradiction:
    def test_proof_and_negative_after_the_lag_is_disputed(self) -> None:
        got = decide(snap(E.UNKNOWN, lost(), seen=[not_found(41), proof(80)]), facts_only(), at(81))
        assert (got.verb, got.becomes, got.reason) == (Verb.ASK, E.DISPUTED, "evidence_disagrees")

    def test_an_early_negative_is_only_lag(self) -> None:
        """A "not found" within the lag does not contradict anything."""
        got = decide(snap(E.UNKNOWN, lost(), seen=[not_found(12), proof(20)]), keyed(), at(21))
        assert got.settle_as == E.SUCCEEDED

    def test_seen_and_then_twice_not_found_is_disputed(self) -> None:
        """Agreeing facts that vanish: no rule picks one of the two."""
        seen = [evidence(12, HAPPENED), not_found(41), not_found(72)]
        assert decide(snap(E.UNKNOWN, lost(), seen=seen), facts_only(), at(73)).becomes == E.DISPUTED

    def test_our_reference_on_other_content_is_disputed(self) -> None:
        odd = evidence(12, HAPPENED, Strength.CONTRADICTS)
        assert decide(snap(E.UNKNOWN, lost(), seen=[odd]), keyed(), at(13)).becomes == E.DISPUTED

    @pytest.mark.parametrize("state", [E.NOT_APPLIED, E.CANCELLED, E.EXPIRED, E.REJECTED])
    def test_late_word_against_a_settled_effect_is_disputed(self, state: EffectState) -> None:
        """Walk d: the callback after the end is evidence; the effect is disputed, also under an ended run."""
        seen = [proof(200, kind=EvidenceKind.CALLBACK)]
        got = decide(snap(state, lost(), seen=seen, settled_at=at(100)), keyed(), at(201))
        assert got.becomes == E.DISPUTED

    @pytest.mark.parametrize("claim", [HAPPENED, Claim.NOT_FOUND, Claim.IN_PART])
    def test_what_was_mended_may_be_seen_or_not(self, claim: Claim) -> None:
        """It did happen, and mending it may have made it vanish: neither word contradicts that (invariant 16)."""
        seen = [evidence(200, claim), evidence(300, claim)]
        got = decide(snap(E.COMPENSATED, lost(), seen=seen, settled_at=at(100)), keyed(), at(301))
        assert (got.verb, got.becomes) == (Verb.WAIT, None)

    def test_old_evidence_does_not_reopen_what_a_person_decided(self) -> None:
        """Only what came after the settling counts against it."""
        seen = [proof(80, kind=EvidenceKind.CALLBACK)]
        got = decide(snap(E.NOT_APPLIED, lost(), seen=seen, settled_at=at(100)), keyed(), at(201))
        assert (got.verb, got.becomes) == (Verb.WAIT, None)

    def test_succeeded_is_disputed_by_not_found_after_the_lag_only(self) -> None:
        first = snap(E.SUCCEEDED, lost(), seen=[not_found(30)], settled_at=at(20))
        assert decide(first, keyed(), at(31)).becomes is None
        second = snap(E.SUCCEEDED, lost(), seen=[not_found(45)], settled_at=at(20))
        assert decide(second, keyed(), at(46)).becomes == E.DISPUTED

    def test_a_disputed_effect_stays_with_a_person(self) -> None:
        assert decide(snap(E.DISPUTED, lost()), keyed(), at(LATER)).verb == Verb.ASK


class TestAccepted:
    def test_is_read_and_never_sent_again(self) -> None:
        taken = answered(Kind.ACCEPTED)
        assert decide(snap(E.ACCEPTED, taken), keyed(), at(11)).verb == Verb.READ_BACK
        assert decide(snap(E.ACCEPTED, taken), keys_only(), at(LATER)).verb == Verb.WAIT

    def test_taken_and_then_not_found_is_disputed(self) -> None:
        seen = [not_found(41), not_found(72)]
        got = decide(snap(E.ACCEPTED, answered(Kind.ACCEPTED), seen=seen), keyed(), at(73))
        assert got.becomes == E.DISPUTED

    def test_silence_past_the_deadline_is_unknown(self) -> None:
        got = decide(snap(E.ACCEPTED, answered(Kind.ACCEPTED), deadline=at(100)), keys_only(), at(100))
        assert (got.verb, got.becomes) == (Verb.ASK, E.UNKNOWN)
