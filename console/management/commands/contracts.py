"""`manage.py contracts`: what this code declares: versions, digests, what is missing, differences, JSON Schema."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from recovery.contract import registry
from recovery.contract.differences import differences
from recovery.engine import declarations
from recovery.engine.declarations import Declared
from runs.models import ContractVersion

DRAFT = "https://json-schema.org/draft/2020-12/schema"


class Command(BaseCommand):
    """Lists contracts, or shows one. NAME is an operation or a run type; NAME@2 its version, NAME@9f3c its digest."""

    help = "List what authors declared; --diff two of them, print the JSON --schema of one, the age of --proofs."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--diff", nargs=2, metavar=("A", "B"), help="what differs between two, as NAME@VERSION")
        what.add_argument("--schema", metavar="NAME", help="JSON Schema of params, or of data and signals")
        what.add_argument("--declared", metavar="NAME", help="the declarative part that the digest covers")
        what.add_argument("--proofs", action="store_true", help="which drills show each run type, and how old they are")
        what.add_argument("--stored", action="store_true", help="everything that this installation ever ran")
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        as_json = options["json"]
        if options["diff"]:
            self._diff(*options["diff"], as_json=as_json)
        elif options["schema"]:
            self._print(self._schema(options["schema"]))
        elif options["declared"]:
            self._print(_find(options["declared"]).declared)
        elif options["proofs"]:
            self._table(list(_proofs(timezone.now().date())), as_json=as_json)
        elif options["stored"]:
            self._table(list(_stored()), as_json=as_json)
        else:
            self._table(list(_listed()), as_json=as_json)

    def _print(self, value: Any) -> None:
        self.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str))

    def _table(self, rows: list[dict[str, Any]], *, as_json: bool) -> None:
        if as_json:
            self._print(rows)
            return
        if not rows:
            self.stdout.write("none")
            return
        shown = [{name: _cell(value) for name, value in row.items()} for row in rows]
        widths = {name: max(len(name), *(len(row[name]) for row in shown)) for name in shown[0]}
        for line in [{name: name for name in widths}, *shown]:
            self.stdout.write("  ".join(line[name].ljust(width) for name, width in widths.items()).rstrip())

    def _diff(self, first: str, second: str, *, as_json: bool) -> None:
        was, now = _find(first), _find(second)
        found = differences(was.declared, now.declared)
        if as_json:
            self._print([one.as_json() for one in found])
            return
        self.stdout.write(f"{was.name} v{was.version} {was.digest[:8]} -> {now.name} v{now.version} {now.digest[:8]}")
        for one in found:
            self.stdout.write(f"  {one}")
        if not found:
            self.stdout.write("  nothing differs in what is declared")

    def _schema(self, name: str) -> dict[str, Any]:
        one = _find(name)
        id = f"urn:recourse:{one.kind}:{one.name}:{one.version}"
        parts = {part: schema for part, schema in one.schema.items() if part != "signals"}
        parts |= {f"signals:{name}": schema for name, schema in one.schema.get("signals", {}).items()}
        return {part: {"$schema": DRAFT, "$id": f"{id}:{part}", **schema} for part, schema in parts.items()}


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None or value == "" else str(value)


def _find(asked: str) -> Declared:
    """A contract by NAME (the newest), NAME@version, or NAME@beginning of a digest: of this code, or stored."""
    name, _, which = asked.partition("@")
    here = [one for one in declarations.of_this_code() if one.name == name]
    if not which and here:
        return max(here, key=lambda one: one.version)
    for one in here:
        if which in (str(one.version), one.digest) or (len(which) >= 4 and one.digest.startswith(which)):
            return one
    rows = ContractVersion.objects.filter(name=name)
    by = (
        rows.filter(version=int(which)) if which.isdigit() and len(which) < 4 else rows.filter(digest__startswith=which)
    )
    row = by.order_by("-first_seen_at", "-id").first()
    if row is None:
        raise CommandError(f"no contract {asked!r} is declared in this code or stored in this installation")
    kind = ContractVersion.Kind(row.kind)
    return Declared(kind, row.name, row.version, row.digest, row.declared, row.schema)


def _listed() -> Iterator[dict[str, Any]]:
    wrong: dict[str, list[str]] = {}
    for problem in registry.problems():
        wrong.setdefault(problem.subject, []).append(f"{problem.field} ({problem.id})")
    declared = [("operation", one) for one in registry.effects()] + [
        ("computation", one) for one in registry.computes()
    ]
    for kind, contract in declared:
        whole = not contract.missing and not contract.unknown
        yield {
            "kind": kind,
            "name": contract.operation,
            "version": contract.version,
            "digest": contract.digest[:8] if whole else None,
            "dependency": contract.dependency if whole else None,
            "wrong": wrong.pop(f"{contract.operation} v{contract.version}", []),
        }
    for run_type in registry.run_types():
        yield {
            "kind": "run_type",
            "name": run_type.name,
            "version": run_type.version,
            "digest": run_type.digest[:8] if not run_type.contract.missing else None,
            "dependency": None,
            "wrong": wrong.pop(f"{run_type.name} v{run_type.version}", []),
        }
    for subject, what in wrong.items():
        yield {
            "kind": "not usable",
            "name": subject,
            "version": None,
            "digest": None,
            "dependency": None,
            "wrong": what,
        }


def _proofs(today: date) -> Iterator[dict[str, Any]]:
    for run_type in registry.run_types():
        for proof in run_type.contract.proofs:
            age = None if proof.last is None else (today - proof.last).days
            yield {
                "name": run_type.name,
                "version": run_type.version,
                "proof": proof.name,
                "last": None if proof.last is None else proof.last.isoformat(),
                "days": "never shown" if age is None else age,
            }


def _stored() -> Iterator[dict[str, Any]]:
    here = {one.digest for one in declarations.of_this_code()}
    twice = {(name, version) for name, version, _digests in declarations.changed_in_place()}
    for row in ContractVersion.objects.order_by("kind", "name", "version", "first_seen_at"):
        yield {
            "kind": row.kind,
            "name": row.name,
            "version": row.version,
            "digest": row.digest[:8],
            "first_seen": row.first_seen_at.isoformat(timespec="seconds"),
            "in_this_code": "yes" if row.digest in here else "no",
            "note": "changed in place" if (row.name, row.version) in twice else "",
        }
