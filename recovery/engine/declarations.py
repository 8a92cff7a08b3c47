"""Keeping what authors declared: each contract of this code is stored by its digest, once, when a process starts.

An effect and a run name the digest that they began under; so it can be read later what was declared then, and whether a
version was changed in place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection

from recovery.contract import ComputeContract, EffectContract, registry
from recovery.contract.runs import RunType
from runs.models import ContractVersion
from runs.models.base import new_id

Kind = ContractVersion.Kind


@dataclass(frozen=True, slots=True)
class Declared:
    """One contract of this code, as it is stored."""

    kind: Kind
    name: str
    version: int
    digest: str
    declared: dict[str, Any]
    schema: dict[str, Any]


def of_this_code() -> Iterator[Declared]:
    """Every whole contract of an operation, a computation or a run type of this code, by name and version."""
    for contract in registry.effects():
        if not contract.missing and not contract.unknown:
            yield of_operation(contract)
    for compute in registry.computes():
        if not compute.missing and not compute.unknown:
            yield of_computation(compute)
    for run_type in registry.run_types():
        if not run_type.contract.missing:
            yield of_run_type(run_type)


def of_operation(contract: EffectContract) -> Declared:
    """The contract of an operation; its schema is that of the params."""
    schema = {"params": contract.schema}
    return Declared(Kind.OPERATION, contract.operation, contract.version, contract.digest, contract.declared, schema)


def of_computation(contract: ComputeContract) -> Declared:
    """The contract of a computation; its schemas are those of the params and of the output."""
    schema = {"params": contract.params.model_json_schema(), "output": contract.output.model_json_schema()}
    return Declared(Kind.COMPUTATION, contract.operation, contract.version, contract.digest, contract.declared, schema)


def of_run_type(run_type: RunType) -> Declared:
    """A run type; its schema is that of the data, and of each signal's payload."""
    signals = run_type.contract.ownership.signals
    schema = {
        "data": run_type.Data.model_json_schema(),
        "signals": {name: model.model_json_schema() for name, model in signals.items()},
    }
    return Declared(Kind.RUN_TYPE, run_type.name, run_type.version, run_type.digest, run_type.declared, schema)


def keep() -> int:
    """Store what is not stored yet; what is stored never changes. Returns how many were new. One statement a contract.

    Not history and no state: nothing of a workspace depends on these rows, so they are written beside the record.
    """
    stored = set(ContractVersion.objects.values_list("kind", "name", "version", "digest"))
    fresh = [one for one in of_this_code() if (one.kind, one.name, one.version, one.digest) not in stored]
    with connection.cursor() as cursor:
        for one in fresh:
            cursor.execute(
                "INSERT INTO runs_contractversion (id, kind, name, version, digest, declared, schema, first_seen_at)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s, runs_now()) ON CONFLICT DO NOTHING",
                [
                    *(new_id(), str(one.kind), one.name, one.version, one.digest),
                    *(json.dumps(one.declared), json.dumps(one.schema)),
                ],
            )
    return len(fresh)


def changed_in_place() -> list[tuple[str, int, list[str]]]:
    """Versions that were declared in more than one way: (name, version, digests, the earliest first)."""
    found: dict[tuple[str, str, int], list[str]] = {}
    for row in ContractVersion.objects.order_by("first_seen_at", "id"):
        found.setdefault((row.kind, row.name, row.version), []).append(row.digest)
    return [(name, version, digests) for (_kind, name, version), digests in found.items() if len(digests) > 1]
