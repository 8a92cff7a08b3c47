"""Check 5: who and what a run that goes on still may. Reads only; each look gives what was lost, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from recovery.contract import registry
from recovery.contract.errors import ContractError
from recovery.engine import approvals, outbound
from recovery.engine.approvals.quorum import standing
from runs import access
from runs.models import Approval, Dependency, Effect, Person
from runs.states import EFFECT_OPEN, ApprovalState

Run = Mapping[str, Any]


def _identity(run: Run, effects: Sequence[Effect]) -> list[str]:
    """The person who started it has an account that is active."""
    if run["started_by_id"] is None:
        return []
    person = Person.objects.get(pk=run["started_by_id"])
    return [] if person.is_active else [person.name]


def _permission(run: Run, effects: Sequence[Effect]) -> list[str]:
    """That person may still start runs here."""
    if run["started_by_id"] is None:
        return []
    person = Person.objects.get(pk=run["started_by_id"])
    return [] if access.can(person, UUID(str(run["workspace_id"])), "start") else [person.name]


def _policy(run: Run, effects: Sequence[Effect]) -> list[str]:
    """What is still to be sent stands under the contract that it was asked for under: same version, same data."""
    lost = []
    for effect in effects:
        if effect.state not in EFFECT_OPEN:
            continue
        try:
            contract = registry.effect_contract(effect.operation, effect.contract_version)
        except ContractError:
            continue  # check 6 says so
        if contract.digest != effect.contract_digest:
            lost.append(f"{effect.operation} v{effect.contract_version}")
    return lost


def _approvals(run: Run, effects: Sequence[Effect]) -> list[str]:
    """Each signature that a granted request rests on still counts (R5)."""
    lost: list[str] = []
    granted = Approval.objects.filter(effect__in=[e.pk for e in effects], state=ApprovalState.GRANTED)
    for approval in granted.select_related("group", "run"):
        signed = standing(approval)
        good = {one.pk for one in approvals.rule_of(approval).good(signed)}
        if len(good) < approval.needed:
            lost.extend(one.person.name for one in signed if one.pk not in good)
    return lost


def _secrets(run: Run, effects: Sequence[Effect]) -> list[str]:
    """The credentials that what is open is sent with, and that its dependencies have now, are here, by their alias."""
    used = {e.dependency_id for e in effects}
    now = Dependency.objects.filter(workspace_id=run["workspace_id"], pk__in=used).values_list("credential", flat=True)
    lost = set()
    for alias in {str(e.request["credential"]) for e in effects if e.state in EFFECT_OPEN} | set(now):
        try:
            outbound.authorization(alias)
        except outbound.CredentialMissing:
            lost.add(alias)
    return sorted(lost)


def _data(run: Run, effects: Sequence[Effect]) -> list[str]:
    """The dependencies that it has worked with are still this workspace's, under the same credential."""
    lost = []
    here = {d.pk: d for d in Dependency.objects.filter(workspace_id=run["workspace_id"])}
    for effect in effects:
        dependency = here.get(effect.dependency_id)
        if dependency is None:
            lost.append(effect.operation)
        elif effect.state in EFFECT_OPEN and dependency.credential != effect.request["credential"]:
            lost.append(dependency.name)
    return sorted(set(lost))


LOOKS: Final[dict[str, Callable[[Run, Sequence[Effect]], list[str]]]] = {
    "identity": _identity,
    "permission": _permission,
    "policy": _policy,
    "approvals": _approvals,
    "secrets": _secrets,
    "data": _data,
}
"""One look for each of ``REVALIDATED``."""


def lost(names: Sequence[str], run: Run, effects: Sequence[Effect]) -> dict[str, list[str]]:
    """What each look that the run contract names has found to be lost; nothing for those that hold."""
    found = {name: LOOKS[name](run, effects) for name in LOOKS if name in names}
    return {name: what for name, what in found.items() if what}
