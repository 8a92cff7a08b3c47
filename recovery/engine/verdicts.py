"""When a decision about an unknown outcome needs a second person; pure but for :func:`drop_proposed`.

Machine evidence may carry a decision alone; a person's word alone does not (D3): "did not happen" lets the
run ask again, so it weighs as much as a signature.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from recovery.contract import canonical
from recovery.engine.judging import Case
from recovery.engine.snapshot import EvidenceView
from runs import record
from runs.models import Verdict
from runs.record import Change
from runs.states import Claim, EffectState, EvidenceKind, Strength, VerdictSays, VerdictState

DECIDABLE: Final = frozenset({EffectState.UNKNOWN, EffectState.DISPUTED, EffectState.ACCEPTED})
"""States in which a person may say what happened."""

BECOMES: Final[Mapping[str, EffectState]] = {
    VerdictSays.HAPPENED: EffectState.SUCCEEDED,
    VerdictSays.DID_NOT_HAPPEN: EffectState.NOT_APPLIED,
    VerdictSays.IN_PART: EffectState.PARTIAL,
}

SAID: Final[Mapping[str, Claim]] = {
    VerdictSays.HAPPENED: Claim.HAPPENED,
    VerdictSays.DID_NOT_HAPPEN: Claim.NOT_FOUND,
    VerdictSays.IN_PART: Claim.IN_PART,
}
"""What a person's statement claims."""

_SUPPORTS = frozenset({Strength.PROVES, Strength.AGREES})


@dataclass(frozen=True, slots=True)
class Weight:
    """Whether a second person must confirm, with the code and facts that say why."""

    second: bool
    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def weigh(case: Case, says: VerdictSays, ticked: Collection[UUID]) -> Weight:
    """How much the evidence with ids ``ticked`` carries of ``says``.

    happened, in part: one answer, readback or callback that proves or agrees. did not happen: two "not
    found", after everything that could arrive had and the promised lag on top, far enough apart, and nothing
    that speaks against it.
    """
    chosen = [one for one in case.snap.evidence if one.id in ticked]
    if says == VerdictSays.DID_NOT_HAPPEN:
        return _did_not_happen(case, chosen)
    wanted = SAID[says]
    carrying = [one for one in chosen if _by_machine(one) and one.strength in _SUPPORTS and one.claim == wanted]
    if carrying:
        return Weight(False, "machine_evidence", {"evidence": [str(one.id) for one in carrying]})
    return Weight(True, "word_only" if not any(map(_by_machine, chosen)) else "evidence_does_not_carry")


def _did_not_happen(case: Case, chosen: list[EvidenceView]) -> Weight:
    against = [one for one in case.snap.evidence if _by_machine(one) and _speaks_for_it(one)]
    if against:
        return Weight(True, "evidence_against", {"evidence": [str(one.id) for one in against]})
    absent = [one for one in chosen if one.kind == EvidenceKind.READBACK and one.claim == Claim.NOT_FOUND]
    if not absent:
        return Weight(True, "word_only")
    counting = sorted((one for one in absent if case.counts_as_negative(one)), key=lambda one: one.speaks_of)
    readback = case.contract.reconcile
    facts = {
        "not_found": len(absent),
        "counting": len(counting),
        "from": None if case.negative_from is None else case.negative_from.isoformat(),
    }
    if readback is None or len(counting) < 2:
        return Weight(True, "not_found_too_few", facts)
    if counting[-1].speaks_of - counting[0].speaks_of < readback.apart:
        return Weight(True, "not_found_too_close", {**facts, "apart_s": readback.apart.total_seconds()})
    return Weight(False, "not_found_twice", facts)


def _by_machine(one: EvidenceView) -> bool:
    return one.kind != EvidenceKind.STATEMENT


def _speaks_for_it(one: EvidenceView) -> bool:
    if one.strength == Strength.CONTRADICTS:
        return True
    return one.strength in _SUPPORTS and one.claim in (Claim.HAPPENED, Claim.IN_PART, Claim.PENDING)


def drop_proposed(effect: UUID) -> list[Change]:
    """The changes that end a proposal which evidence overtook, for the commit that settles the effect without
    it.
    """
    waiting = Verdict.objects.filter(effect_id=effect, state=VerdictState.PROPOSED).values_list("pk", flat=True)
    changes: list[Change] = []
    for verdict in waiting:
        ended = {"state": VerdictState.REFUSED, "confirm_reason": ""}
        times = {"confirmed_at": 0.0}
        changes.append(record.move("verdict", verdict, (VerdictState.PROPOSED,), ended, times=times))
        changes.append(record.close_reviews(verdict))
    return changes


def verdict_digest(
    *, effect: UUID, version: int, says: str, reason: str, evidence: Collection[UUID], person: UUID
) -> str:
    """What the second person confirms: exactly this decision on exactly this state of the effect."""
    return canonical.digest(
        {
            "effect": str(effect),
            "evidence": sorted(str(one) for one in evidence),
            "person": str(person),
            "reason": reason,
            "says": str(says),
            "version": version,
        }
    )
