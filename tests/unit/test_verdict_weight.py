"""When one person's decision suffices: the whole table, without a database (invariant 4, D3)."""

from __future__ import annotations

from uuid import UUID

import pytest

from recovery.contract.effects import EffectContract
from recovery.engine.judging import Case
from recovery.engine.snapshot import EvidenceView
from recovery.engine.verdicts import Weight, verdict_digest, weigh
from runs.states import Claim, EffectState, EvidenceKind, Strength, VerdictSays
from tests.unit import samples

HAPPENED, NOT, PART = VerdictSays.HAPPENED, VerdictSays.DID_NOT_HAPPEN, VerdictSays.IN_PART
# The lost try ended at second 10, the lag is 30 s: "not found" counts from second 40 on, twice, 30 s apart.


def weight(
    says: VerdictSays,
    *evidence: EvidenceView,
    ticked: tuple[int, ...] | None = None,
    by: EffectContract | None = None,
) -> Weight:
    chosen = range(len(evidence)) if ticked is None else ticked
    snap = samples.snap(EffectState.UNKNOWN, samples.lost(), evidence=evidence)
    case = Case(snap, by or samples.facts_only(), samples.at(3600))
    return weigh(case, says, [evidence[n].id for n in chosen])


@pytest.mark.parametrize("kind", [EvidenceKind.READBACK, EvidenceKind.ANSWER, EvidenceKind.CALLBACK])
@pytest.mark.parametrize("strength", list(Strength))
@pytest.mark.parametrize("claim", list(Claim))
@pytest.mark.parametrize("says", [HAPPENED, PART])
def test_one_machine_evidence_carries_exactly_its_own_claim(
    kind: EvidenceKind, strength: Strength, claim: Claim, says: VerdictSays
) -> None:
    carries = claim == (Claim.HAPPENED if says == HAPPENED else Claim.IN_PART)
    strong = strength in (Strength.PROVES, Strength.AGREES)
    assert weight(says, samples.evidence(60, claim, strength, kind)).second is not (carries and strong)


@pytest.mark.parametrize("says", list(VerdictSays))
@pytest.mark.parametrize("claim", list(Claim))
def test_a_word_never_carries(says: VerdictSays, claim: Claim) -> None:
    word = samples.evidence(60, claim, Strength.WORD, EvidenceKind.STATEMENT)
    assert weight(says, word) == Weight(True, "word_only")
    strong = samples.evidence(60, claim, Strength.PROVES, EvidenceKind.STATEMENT)
    assert weight(says, strong, strong).second is True


def test_what_is_not_ticked_does_not_carry() -> None:
    assert weight(HAPPENED, samples.evidence(60, Claim.HAPPENED), ticked=()) == Weight(True, "word_only")


def test_two_counting_not_founds_carry() -> None:
    assert weight(NOT, samples.not_found(40), samples.not_found(70)).second is False


@pytest.mark.parametrize(
    ("times", "code"),
    [
        ((40,), "not_found_too_few"),
        ((39.9, 70), "not_found_too_few"),
        ((20, 30, 39), "not_found_too_few"),
        ((40, 69.9), "not_found_too_close"),
    ],
)
def test_too_few_too_early_too_close(times: tuple[float, ...], code: str) -> None:
    found = weight(NOT, *(samples.not_found(t) for t in times))
    assert (found.second, found.code) == (True, code)


def test_one_not_found_ticked_twice_is_one() -> None:
    one = samples.not_found(75)
    assert weight(NOT, one, ticked=(0, 0)).code == "not_found_too_few"


@pytest.mark.parametrize("claim", [Claim.HAPPENED, Claim.IN_PART, Claim.PENDING])
def test_anything_against_it_needs_a_second_person_ticked_or_not(claim: Claim) -> None:
    pair = (samples.not_found(40), samples.not_found(70))
    against = samples.evidence(90, claim, Strength.AGREES, EvidenceKind.CALLBACK)
    assert weight(NOT, *pair, against, ticked=(0, 1)).code == "evidence_against"
    contradicts = samples.evidence(90, Claim.NOT_FOUND, Strength.CONTRADICTS)
    assert weight(NOT, *pair, contradicts, ticked=(0, 1)).code == "evidence_against"
    silent = samples.silent(90)
    assert weight(NOT, *pair, silent, ticked=(0, 1)).second is False


def test_without_a_readback_nobody_decides_absence_alone() -> None:
    pair = (samples.not_found(40), samples.not_found(70))
    assert weight(NOT, *pair, by=samples.neither()).second is True


def test_the_digest_binds_each_part_and_not_the_order_of_evidence() -> None:
    ids = [UUID(int=1), UUID(int=2)]
    base = {
        "effect": UUID(int=9),
        "version": 3,
        "says": NOT,
        "reason": "r",
        "evidence": ids,
        "person": UUID(int=5),
    }
    digest = verdict_digest(**base)  # type: ignore[arg-type]
    assert verdict_digest(**{**base, "evidence": ids[::-1]}) == digest  # type: ignore[arg-type]
    changes: list[tuple[str, object]] = [
        ("effect", UUID(int=8)),
        ("version", 4),
        ("says", HAPPENED),
        ("reason", "s"),
        ("evidence", ids[:1]),
        ("person", UUID(int=6)),
    ]
    for name, value in changes:
        assert verdict_digest(**{**base, name: value}) != digest, name  # type: ignore[arg-type]
