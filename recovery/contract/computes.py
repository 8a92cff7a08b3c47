"""``compute(...)``: the contract of a recorded computation, such as a model call or an expensive read.

It changes nothing outside, so a lost one is ``lost`` and never unknown. Another sample may still give another output:
how many the product can bear is declared (``samples``), the output that was accepted is recorded and used for ever,
and what shapes it (model, seed, parameters) is pinned with it.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, Final

from django.utils.functional import Promise as LazyText
from pydantic import BaseModel, ValidationError

from recovery.contract import canonical
from recovery.contract.declared import bare_schema, declared
from recovery.contract.effects import MISSING, fields_of
from recovery.contract.errors import ContractIncomplete, ParamsInvalid
from recovery.contract.outcomes import Http
from recovery.contract.retry import Backoff
from recovery.ports.base import Port


@dataclass(frozen=True)
class ComputeContract:
    """The declared contract of a computation; calling it with params makes a request. No field has a default.

    ``params``, ``output``: Pydantic models; an answer that does not fit ``output`` is no accepted output. ``outcomes``:
    what an answer proves. ``timeout``: of one call, longer than 10 s is handed to the senders. ``deadline``: for all
    tries together, from the first. ``samples``: how many answers may be asked for when one is lost or does not fit; 1
    means that a person decides. ``backoff``: after a call that was not taken. ``pinned``: what shapes the output, as
    data (model, seed, temperature …), kept with each call. ``unit``: what is reserved and spent, as ``tokens``;
    ``reserve(params)`` and ``spent(result)`` count it, ``limit``: the most that one run may spend on it, or None.
    """

    operation: str
    version: int
    params: type[BaseModel]
    output: type[BaseModel]
    dependency: str
    port: Port
    describe: Any
    outcomes: Http
    timeout: timedelta
    deadline: timedelta
    samples: int
    backoff: Backoff
    pinned: Mapping[str, Any]
    unit: str
    reserve: Callable[[Any], int]
    spent: Callable[[dict[str, Any]], int]
    limit: int | None
    # not of the author
    declared_in: str
    missing: tuple[str, ...]
    unknown: tuple[str, ...]

    def __call__(self, **params: Any) -> ComputeRequest:
        """A request. Raises ParamsInvalid naming each field, ContractIncomplete."""
        if self.missing:
            told = ", ".join(self.missing)
            raise ContractIncomplete(f"{self.operation}: missing {told}", operation=self.operation, missing=told)
        try:
            return ComputeRequest(self, self.params(**params))
        except ValidationError as error:
            raise ParamsInvalid(self.operation, fields_of(error)) from error

    @cached_property
    def declared(self) -> dict[str, Any]:
        """The declarative part: JSON values, no sentence, no code."""
        skipped = {"declared_in", "missing", "unknown", "params", "output"}
        told = {f.name: declared(getattr(self, f.name)) for f in dataclasses.fields(self) if f.name not in skipped}
        schemas = {name: bare_schema(getattr(self, name).model_json_schema()) for name in ("params", "output")}
        return told | schemas

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the declarative part, hex."""
        return canonical.digest(self.declared)

    def problems(self) -> Iterator[tuple[str, str]]:
        """What is wrong with the declaration: the field and a sentence, one each."""
        for name in self.missing:
            yield name, "is missing; no field has a default"
        for name in self.unknown:
            yield name, "is not a field of a computation"
        if self.missing:
            return
        if self.samples < 1:
            yield "samples", "is at least 1"
        if not timedelta(0) < self.timeout < self.deadline:
            yield "timeout", "is longer than nothing and shorter than the deadline"
        if self.limit is not None and self.limit < 1:
            yield "limit", "is at least 1, or None"
        if not isinstance(self.describe, LazyText):
            yield "describe", "is a lazily translated sentence (gettext_lazy)"
        yield from (("outcomes", text) for text in self.outcomes.problems())


@dataclass(frozen=True)
class ComputeRequest:
    """One computation that a step asks for: a contract and validated params."""

    contract: ComputeContract
    params: BaseModel

    @cached_property
    def data(self) -> dict[str, Any]:
        """The params as JSON values. Raises CanonicalError with the path."""
        data = self.params.model_dump(mode="json")
        canonical.check(data)
        return data

    @cached_property
    def digest(self) -> str:
        """Of operation, version, params and what is pinned: what the output is an answer to."""
        asked = {"operation": self.contract.operation, "version": self.contract.version, "params": self.data}
        return canonical.digest({**asked, "pinned": dict(self.contract.pinned)})


FIELDS: Final = tuple(
    f.name
    for f in dataclasses.fields(ComputeContract)
    if f.name not in ("operation", "declared_in", "missing", "unknown")
)


def compute(operation: str, **fields: Any) -> ComputeContract:
    """Declare the computation ``operation``. Never raises: what is missing or unknown is named by a system check."""
    return ComputeContract(
        operation=operation,
        declared_in=sys._getframe(1).f_globals.get("__name__", ""),
        missing=tuple(name for name in FIELDS if name not in fields),
        unknown=tuple(sorted(set(fields) - set(FIELDS))),
        **{name: fields.get(name, MISSING) for name in FIELDS},
    )
