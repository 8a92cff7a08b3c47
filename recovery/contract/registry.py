"""Finding every ``contracts.py`` and looking operations and run types up by name and version.

Discovery imports the module of each installed app, as Django finds ``admin.py``, and never raises: what is
wrong is kept as a problem, which ``recovery.checks`` turns into a system check that names it.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from django.apps import AppConfig, apps
from django.utils.module_loading import module_has_submodule

from recovery.contract.computes import ComputeContract
from recovery.contract.effects import EffectContract
from recovery.contract.errors import UnknownOperation, UnknownRunType
from recovery.contract.fields import Compensation, VerifiedBy
from recovery.contract.inspection import Finding, effect_findings, run_type_findings
from recovery.contract.runs import RunType

MODULE = "contracts"
BUILT_IN = "recovery.compensation"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a declaration. ``id`` as ``recovery.E002``; ``subject`` operation or run type with
    version."""

    id: str
    app: str
    subject: str
    field: str
    text: str

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.app, self.subject, self.field) if part)
        return f"{where}: {self.text}"


class Registry:
    """Contracts and run types of one installation."""

    def __init__(self) -> None:
        self._effects: dict[tuple[str, int], EffectContract] = {}
        self._computes: dict[tuple[str, int], ComputeContract] = {}
        self._run_types: dict[tuple[str, int], RunType] = {}
        self._problems: list[Problem] = []
        self._found_in: dict[int, str] = {}
        self.discovered = False

    def discover(self, configs: Iterable[AppConfig] | None = None) -> None:
        """Import each app's ``contracts`` and register what it declares. A second call does nothing."""
        if self.discovered:
            return
        self.discovered = True
        # What every installation has, whatever its apps declare.
        self.register_module(importlib.import_module(BUILT_IN), "recovery")
        for config in apps.get_app_configs() if configs is None else configs:
            if config.module is None or not module_has_submodule(config.module, MODULE):
                continue
            name = f"{config.name}.{MODULE}"
            try:
                module = importlib.import_module(name)
            except Exception as error:
                # An author's module may fail in any way; it must be named, and must not hide the others.
                last = traceback.extract_tb(error.__traceback__)[-1]
                self._add(
                    Finding("E001", "", "", f"{name} cannot be imported: {error!r} (line {last.lineno})"),
                    config.label,
                )
                continue
            self.register_module(module, config.label)

    def register_module(self, module: ModuleType, app: str) -> None:
        """Register every contract and run type that is an attribute of ``module``."""
        for value in list(vars(module).values()):
            if isinstance(value, EffectContract):
                self.add_effect(value, app)
            elif isinstance(value, ComputeContract):
                self.add_compute(value, app)
            elif isinstance(value, type) and issubclass(value, RunType) and value is not RunType:
                self.add_run_type(value, app)

    def add_effect(self, contract: EffectContract, app: str) -> None:
        """Register one contract; the same object again is nothing new."""
        if self._known(contract, app):
            return
        for finding in effect_findings(contract):
            self._add(finding, app)
        version: Any = contract.version
        if not isinstance(version, int):
            return
        identity = (contract.operation, contract.version)
        if identity in self._effects:
            other = self._found_in[id(self._effects[identity])]
            self._twice(f"{contract.operation} v{contract.version}", other, app)
            return
        self._effects[identity] = contract

    def add_compute(self, contract: ComputeContract, app: str) -> None:
        """Register one computation; the same object again is nothing new."""
        if self._known(contract, app):
            return
        subject = f"{contract.operation} v{contract.version}"
        for field, text in contract.problems():
            self._add(Finding("E002" if field in contract.missing else "E004", subject, field, text), app)
        version: Any = contract.version
        if not isinstance(version, int):
            return
        if (contract.operation, version) in self._computes:
            self._twice(subject, self._found_in[id(self._computes[contract.operation, version])], app)
            return
        self._computes[contract.operation, version] = contract

    def add_run_type(self, cls: type[RunType], app: str) -> None:
        """Register one run type; the same class again is nothing new."""
        if self._known(cls, app):
            return
        for finding in run_type_findings(cls):
            self._add(finding, app)
        name: Any = cls.name
        version: Any = cls.version
        if not isinstance(name, str) or not isinstance(version, int):
            return
        identity = (cls.name, cls.version)
        if identity in self._run_types:
            other = self._found_in[id(type(self._run_types[identity]))]
            self._twice(f"{cls.name} v{cls.version}", other, app)
            return
        self._run_types[identity] = cls()

    def _known(self, thing: Any, app: str) -> bool:
        # Two apps may import one contract; it belongs to the first that has it.
        if id(thing) in self._found_in:
            return True
        self._found_in[id(thing)] = app
        return False

    def _twice(self, subject: str, other: str, app: str) -> None:
        self._add(Finding("E005", subject, "version", f"declared twice, first by {other}"), app)

    def _add(self, finding: Finding, app: str) -> None:
        self._problems.append(Problem(f"recovery.{finding.id}", app, finding.subject, finding.field, finding.text))

    def effect_contract(self, operation: str, version: int | None = None) -> EffectContract:
        """The contract of ``operation``, the newest unless ``version`` is given. Raises UnknownOperation."""
        found = self._effects.get(self._identity(self._effects, operation, version))
        if found is None:
            told = operation if version is None else f"{operation} v{version}"
            raise UnknownOperation(f"no contract of {told} is declared", operation=operation, version=version)
        return found

    def compute_contract(self, operation: str, version: int | None = None) -> ComputeContract:
        """The contract of a computation, the newest unless ``version`` is given. Raises UnknownOperation."""
        found = self._computes.get(self._identity(self._computes, operation, version))
        if found is None:
            told = operation if version is None else f"{operation} v{version}"
            raise UnknownOperation(f"no computation {told} is declared", operation=operation, version=version)
        return found

    def run_type(self, name: str, version: int | None = None) -> RunType:
        """The run type ``name``, the newest unless ``version`` is given. Raises UnknownRunType."""
        found = self.find_run_type(name, version)
        if found is None:
            told = name if version is None else f"{name} v{version}"
            raise UnknownRunType(f"no run type {told} is declared", type=name, version=version)
        return found

    def find_run_type(self, name: str, version: int | None = None) -> RunType | None:
        """The run type ``name``, the newest unless ``version`` is given; None where this code does not have it."""
        return self._run_types.get(self._identity(self._run_types, name, version))

    def run_type_for(self, name: str, version: int) -> RunType:
        """The run type ``name`` in ``version``, or the newest one that takes its runs over. Raises UnknownRunType."""
        newest = self.run_type(name)
        if (name, version) not in self._run_types and version in newest.contract.pins.migrates_from:
            return newest
        return self.run_type(name, version)

    @staticmethod
    def _identity(kept: dict[tuple[str, int], Any], name: str, version: int | None) -> tuple[str, int]:
        if version is not None:
            return name, version
        return name, max((v for n, v in kept if n == name), default=0)

    def effects(self) -> Iterator[EffectContract]:
        """All contracts, by operation and version."""
        return (self._effects[key] for key in sorted(self._effects))

    def computes(self) -> Iterator[ComputeContract]:
        """All contracts of computations, by operation and version."""
        return (self._computes[key] for key in sorted(self._computes))

    def run_types(self) -> Iterator[RunType]:
        """All run types, by name and version."""
        return (self._run_types[key] for key in sorted(self._run_types))

    def problems(self) -> list[Problem]:
        """Everything that is wrong, in the order it was found; references between declarations come last."""
        return [*self._problems, *self._reference_problems()]

    def _reference_problems(self) -> Iterator[Problem]:
        operations = {operation for operation, _version in self._effects}
        for contract in self.effects():
            rule = contract.compensation
            if not isinstance(rule, Compensation):
                continue
            told = [f"no operation {name!r} is declared" for name in (rule.by, *rule.after) if name not in operations]
            if not told and rule.verified_by is VerifiedBy.READBACK and self.effect_contract(rule.by).reconcile is None:
                told = [f"{rule.by} has no readback that could verify it"]
            for text in told:
                where = self._found_in[id(contract)], f"{contract.operation} v{contract.version}"
                yield Problem("recovery.E012", *where, "compensation", text)


_registry = Registry()

discover = _registry.discover
effect_contract = _registry.effect_contract
compute_contract = _registry.compute_contract
run_type = _registry.run_type
run_type_for = _registry.run_type_for
find_run_type = _registry.find_run_type
effects = _registry.effects
computes = _registry.computes
run_types = _registry.run_types
problems = _registry.problems
register_module = _registry.register_module
