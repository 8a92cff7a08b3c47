"""What is wrong with a run type's pins and its paths from older versions.

Each path is tried on its sample at each start: one that was never walked is none, and is refused before a run meets it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from recovery.contract import canonical
from recovery.contract.pins import OF_RECOURSE, Migration, Pin, Pins, StateSchema
from recovery.contract.runs import REVALIDATED, Proof, RunContract, RunType

Wrong = tuple[str, str, str]
"""Id without app, field, what is wrong."""


def path_findings(cls: type[RunType], contract: RunContract) -> Iterator[Wrong]:
    """Everything that is wrong with pins, paths, proofs, revalidation, ``replan`` and ``context_bytes``."""
    schema, pins = contract.state_schema, contract.pins
    if isinstance(pins, Pins):
        yield from _pins(pins)
    for name in contract.revalidation if isinstance(contract.revalidation, tuple) else ():
        if name not in REVALIDATED:
            yield "E004", "contract.revalidation", f"{name!r} is none of {', '.join(REVALIDATED)}"
    proofs: tuple[Any, ...] = contract.proofs if isinstance(contract.proofs, tuple) else ()
    if any(not isinstance(one, Proof) for one in proofs):
        yield "E004", "contract.proofs", "needs Proof(name, last)"
    if cls.replan is not None and cls.replan not in cls.steps:
        yield "E010", "replan", f"there is no step {cls.replan!r}"
    if cls.context_bytes < 1:
        yield "E004", "context_bytes", "must be at least 1"
    if isinstance(schema, StateSchema):
        yield from _schema(cls, schema)
    if isinstance(pins, Pins):
        yield from _paths(cls, "contract.pins", pins.migrates_from, cls.version, of_type=True)


def _pins(pins: Pins) -> Iterator[Wrong]:
    field = "contract.pins"
    seen: set[str] = set()
    for one in pins.pinned:
        part = one.part if isinstance(one, Pin) else one
        if part in seen:
            yield "E004", field, f"{part} is pinned twice"
        seen.add(part)
        if isinstance(one, Pin):
            yield from (("E004", field, text) for text in one.problems())
        elif one not in OF_RECOURSE:
            yield "E004", field, f"{one!r} needs a Pin; by name there are {' and '.join(sorted(OF_RECOURSE))}"


def _schema(cls: type[RunType], schema: StateSchema) -> Iterator[Wrong]:
    field = "contract.state_schema"
    if schema.version < 1:
        yield "E004", field, "version starts at 1"
    yield from _paths(cls, field, schema.migrates_from, schema.version, of_type=False)


def _paths(cls: type[RunType], field: str, paths: Mapping[int, Any], newest: int, *, of_type: bool) -> Iterator[Wrong]:
    for older, path in paths.items():
        if not isinstance(path, Migration):
            yield "E013", field, f"from {older}: needs a Migration with a sample"
        elif older >= newest:
            yield "E013", field, f"from {older}: is not older than {newest}; nothing is moved back"
        else:
            yield from _tried(cls, field, older, path, of_type=of_type)


def _tried(cls: type[RunType], field: str, older: int, path: Migration, *, of_type: bool) -> Iterator[Wrong]:
    # An author's function on an author's sample: whatever it raises is what is wrong with it.
    try:
        sample = copy.deepcopy(path.sample)
        step, data = path.by(*sample) if of_type else (None, path.by(sample))
        canonical.check(data)
        cls.Data.model_validate(data)
    except Exception as error:
        yield "E013", field, f"from {older}: its sample does not come through: {str(error).splitlines()[0][:200]}"
        return
    if of_type and step not in cls.steps:
        yield "E013", field, f"from {older}: leads to {step!r}, and there is no such step"
