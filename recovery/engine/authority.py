"""Asking the authority again about what a run relied on: is the earlier result still valid (check 3)?

An operation's contract names the value of the authority's answer that is the version of its state
(``Authority.version_field``). The version seen when an effect settled is kept in the checkpoint; after a gap the same
record is read again and the two are compared. Reads only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from recovery.contract import EffectContract, canonical, registry
from recovery.contract.errors import CanonicalError, ContractError
from recovery.contract.readback import BY_REFERENCE, ReadbackAnswer
from recovery.engine import reading
from runs.models import Attempt, Dependency, Effect, Evidence
from runs.states import Claim, EffectState, EvidenceKind, Strength

READ_AT_MOST: Final = 5
"""Effects that one set of checks reads again, the latest first: a worker waits for each answer."""


@dataclass(frozen=True, slots=True)
class Reread:
    """One effect asked about again. ``valid``: None where the authority did not answer, or may be behind."""

    effect: UUID
    dependency: str
    then: str | None
    now: str | None
    claim: str
    valid: bool | None

    def as_json(self) -> dict[str, Any]:
        return {
            "effect": str(self.effect),
            "dependency": self.dependency,
            "then": self.then,
            "now": self.now,
            "claim": self.claim,
            "valid": self.valid,
        }


def version_in(contract: EffectContract, key: str, kind: str, raw: str) -> str | None:
    """The version of the authority's state that a stored answer or readback tells; None where it tells none."""
    if contract.authority is None or kind not in (EvidenceKind.ANSWER, EvidenceKind.READBACK):
        return None
    # Functions of the contract's author meet a body of the other side: whatever they raise, it tells no version.
    try:
        told = canonical.parse(raw, nfc=False)
        if kind == EvidenceKind.READBACK:
            told = _record(contract, told, key)
        for part in contract.authority.version_field.split("."):
            told = told[part]
    except (CanonicalError, LookupError, TypeError, ValueError, AttributeError):
        return None
    return told if isinstance(told, str) else None if told is None else canonical.dumps(told).decode()


def _record(contract: EffectContract, body: Any, key: str) -> Any:
    readback = contract.reconcile
    if readback is None:
        raise LookupError("nothing is read back")
    items = list(readback.items(body))
    if readback.proof == BY_REFERENCE and readback.reference is not None:
        items = [item for item in items if readback.reference(item) == key]
    (one,) = items
    return one


def seen(effects: Iterable[Effect]) -> dict[str, str]:
    """The versions that the evidence of settled ``effects`` tells, by effect; those without an authority are left out.

    One query for each effect whose contract names an authority, none for the others.
    """
    found: dict[str, str] = {}
    for effect in effects:
        contract = _contract(effect)
        if contract is None or contract.authority is None or effect.state != EffectState.SUCCEEDED:
            continue
        rows = Evidence.objects.filter(effect_id=effect.pk).exclude(strength=Strength.NONE).order_by("-id")
        for kind, raw in rows.values_list("kind", "raw")[:5]:
            version = version_in(contract, effect.sent_key, kind, raw)
            if version is not None:
                found[str(effect.pk)] = version
                break
    return found


def reread(effects: Sequence[Effect], known: Mapping[str, str]) -> list[Reread]:
    """Ask the authority about each of ``effects`` that succeeded and can be asked about; at most READ_AT_MOST of them.

    ``known``: versions as last seen. No transaction may be open: this calls out.
    """
    asked: list[Reread] = []
    for effect in reversed(effects):
        contract = _contract(effect)
        if contract is None or contract.authority is None or contract.reconcile is None:
            continue
        if effect.state != EffectState.SUCCEEDED or len(asked) == READ_AT_MOST:
            continue
        then = known.get(str(effect.pk)) or seen([effect]).get(str(effect.pk))
        asked.append(_reread(effect, contract, then))
    return asked[::-1]


def _reread(effect: Effect, contract: EffectContract, then: str | None) -> Reread:
    answer = _ask(effect, contract)
    claim = str(answer.claim)
    if answer.claim == Claim.UNAVAILABLE:
        return Reread(effect.pk, contract.dependency, then, None, claim, None)
    now = version_in(contract, effect.sent_key, EvidenceKind.READBACK, answer.raw)
    if answer.claim == Claim.NOT_FOUND and effect.settled_at is not None:
        readback = contract.reconcile
        lag = max(readback.lag if readback is not None else timedelta(0), contract.promise.lag or timedelta(0))
        if answer.observed_at < effect.settled_at + lag:
            # What it answers may be older than what happened.
            return Reread(effect.pk, contract.dependency, then, now, claim, None)
    there = answer.claim in (Claim.HAPPENED, Claim.PENDING) and answer.strength != Strength.CONTRADICTS
    same = then is None or now is None or then == now
    return Reread(effect.pk, contract.dependency, then, now, claim, there and same)


def _ask(effect: Effect, contract: EffectContract) -> ReadbackAnswer:
    assert contract.reconcile is not None
    first = Attempt.objects.filter(effect_id=effect.pk).order_by("n").values_list("committed_at", flat=True).first()
    return reading.read(effect, contract, contract.reconcile, Dependency.objects.get(pk=effect.dependency_id), first)


def _contract(effect: Effect) -> EffectContract | None:
    try:
        return registry.effect_contract(effect.operation, effect.contract_version)
    except ContractError:
        return None
