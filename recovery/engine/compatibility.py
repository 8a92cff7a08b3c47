"""Check 6: does this code still fit the run? Versions of its configuration, of its contracts, and what it can reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recovery.contract import registry
from recovery.contract.errors import ContractError
from recovery.contract.pins import Moved, OnChange, compare
from recovery.contract.runs import RunType
from runs.models import Dependency, Effect
from runs.states import EFFECT_OPEN


@dataclass(frozen=True, slots=True)
class Fit:
    """What was found. ``moved``: parts of the configuration that are others now. ``contract``: the declarative part of
    this version was changed in place. ``newer``: a newer version of the run type takes this one over, and its author
    wants a person to say when. ``missing``: contracts of open effects that this code does not have, and dependencies
    that the workspace does not have.
    """

    moved: tuple[Moved, ...]
    contract: tuple[str, str] | None
    newer: int | None
    missing: tuple[str, ...]

    @property
    def asks(self) -> bool:
        """Whether a person has to say something."""
        asked = any(one.answer == OnChange.ASK for one in self.moved)
        return asked or self.contract is not None or self.newer is not None or bool(self.missing)

    def facts(self) -> dict[str, Any]:
        """As the report keeps it."""
        changed = None if self.contract is None else {"kept": self.contract[0], "now": self.contract[1]}
        return {
            "moved": [one.as_json() for one in self.moved],
            "contract": changed,
            "newer": self.newer,
            "missing": list(self.missing),
        }

    def config(self, kept: Mapping[str, str], now: Mapping[str, str], *, told: bool) -> dict[str, str]:
        """The run's versions from here on: what migrates, what was never pinned, and, with a person's word (``told``),
        what asked.
        """
        takes = {OnChange.MIGRATE, OnChange.ASK} if told else {OnChange.MIGRATE}
        taken = {one.part: one.now for one in self.moved if one.answer in takes}
        return {**now, **kept, **taken}


def fit(run: Mapping[str, Any], run_type: RunType, effects: Sequence[Effect]) -> Fit:
    """How this code fits ``run`` (its row). One query."""
    pins = run_type.contract.pins
    changed = pins.contract and run["contract_digest"] != run_type.digest
    return Fit(
        tuple(compare(pins, run["config"], run_type.config)),
        (run["contract_digest"], run_type.digest) if changed else None,
        _newer(run_type),
        tuple(_missing(run, effects)),
    )


def _newer(run_type: RunType) -> int | None:
    newest = registry.run_type(run_type.name)
    pins = newest.contract.pins
    takes_over = newest.version > run_type.version and run_type.version in pins.migrates_from
    return newest.version if takes_over and pins.on_change("workflow") == OnChange.ASK else None


def _missing(run: Mapping[str, Any], effects: Sequence[Effect]) -> list[str]:
    missing = set()
    here = set(Dependency.objects.filter(workspace_id=run["workspace_id"]).values_list("name", flat=True))
    for effect in effects:
        if effect.state not in EFFECT_OPEN:
            continue
        try:
            contract = registry.effect_contract(effect.operation, effect.contract_version)
        except ContractError:
            missing.add(f"{effect.operation} v{effect.contract_version}")
            continue
        if contract.dependency not in here:
            missing.add(contract.dependency)
    return sorted(missing)
