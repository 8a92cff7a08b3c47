"""Moving a run to a newer version of its type, or its data to a newer schema: by a declared path, or not at all.

Never the other way: what a newer version wrote is not written over by an older one. Everything is made in memory and
tried before anything is written; what breaks leaves the checkpoint as it is (check 1).
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.contract import canonical
from recovery.contract.pins import Migration
from recovery.contract.runs import RunType
from recovery.engine.memory import Memory


class NoPath(Exception):
    """Nothing leads from the older version to this one. ``facts``: kept and now."""

    def __init__(self, kept: int, now: int) -> None:
        super().__init__(f"nothing leads from version {kept} to {now}")
        self.facts: dict[str, Any] = {"kept": kept, "now": now}


class PathBroke(Exception):
    """An author's migration raised, or gave what this version does not take. ``evidence`` has the traceback."""

    def __init__(self, kept: int, now: int, error: Exception) -> None:
        super().__init__(f"from version {kept} to {now}: {error!r}")
        self.facts: dict[str, Any] = {"kept": kept, "now": now, "said": str(error)[:1000]}
        self.evidence = "".join(traceback.format_exception(error))


@dataclass(frozen=True, slots=True)
class Migrated:
    """A run moved in memory: its memory, and what the event says."""

    memory: Memory
    facts: dict[str, Any]


def schema_of(memory: Memory, run_type: RunType) -> int:
    """The schema version that the data was written under; what was written before versions were kept is current."""
    return int(memory.config.get("schema", run_type.contract.state_schema.version))


def data_to(run_type: RunType, memory: Memory) -> Migrated | None:
    """The data in this version's schema; None where it is already. Raises NoPath, PathBroke.

    Later data is not this function's: the caller leaves it alone.
    """
    kept, now = schema_of(memory, run_type), run_type.contract.state_schema.version
    if kept >= now:
        return None
    data = _data(run_type, memory.data, kept)
    moved = _with(memory, data=data)
    _must_fit(run_type, moved, kept, now)
    return Migrated(moved, {"what": "schema", "from": kept, "to": now})


def run_to(run_type: RunType, older: int, memory: Memory) -> Migrated:
    """The run of type version ``older`` as one of ``run_type``: its data, and each step that it has still to call.

    Raises NoPath, PathBroke.
    """
    path = run_type.contract.pins.migrates_from.get(older)
    now = run_type.version
    if path is None or older >= now:
        raise NoPath(older, now)
    schema, wanted = schema_of(memory, run_type), run_type.contract.state_schema.version
    if schema > wanted:
        raise NoPath(schema, wanted)
    data = _data(run_type, memory.data, schema) if schema < wanted else memory.data
    named: dict[str, str] = {}
    told = data
    for step in _steps(memory):
        named[step], told = _run(path, step, data, older, now)
    moved = _with(memory, data=told)
    moved.step = named.get(memory.step, memory.step)
    if moved.pending is not None:
        moved.pending.then = named[moved.pending.then]
        moved.pending.on = {signal: named[step] for signal, step in moved.pending.on.items()}
    if moved.waiting is not None:
        moved.waiting.then = named[moved.waiting.then]
    if moved.computing is not None:
        moved.computing.then = named[moved.computing.then]
    _must_fit(run_type, moved, older, now)
    facts = {"what": "type", "from": older, "to": now, "steps": named}
    if schema < wanted:
        facts["schema"] = {"from": schema, "to": wanted}
    return Migrated(moved, facts)


def _steps(memory: Memory) -> list[str]:
    """The steps that may still be called by name, the next one last: its data is what is kept."""
    steps = [] if memory.pending is None else [*memory.pending.on.values()]
    open_one = memory.pending or memory.computing or memory.waiting
    following = memory.step if open_one is None else open_one.then
    return list(dict.fromkeys([*(one for one in steps if one != following), following]))


def _with(memory: Memory, *, data: dict[str, Any]) -> Memory:
    moved = copy.deepcopy(memory)
    moved.data = data
    return moved


def _data(run_type: RunType, data: dict[str, Any], kept: int) -> dict[str, Any]:
    schema = run_type.contract.state_schema
    path = schema.migrates_from.get(kept)
    if path is None:
        raise NoPath(kept, schema.version)
    return by_path(path, copy.deepcopy(data), kept=kept, now=schema.version)


def by_path(path: Migration, data: dict[str, Any], *, kept: int, now: int) -> dict[str, Any]:
    """What an author's migration makes of ``data``. Raises PathBroke."""
    # Anything an author's function raises is told as theirs.
    try:
        made = path.by(data)
        canonical.check(made)
        if not isinstance(made, dict):
            raise TypeError(f"a migration of data gives data, not {type(made).__name__}")  # noqa: TRY301
    except Exception as error:
        raise PathBroke(kept, now, error) from error
    return made


def _run(path: Migration, step: str, data: Mapping[str, Any], kept: int, now: int) -> tuple[str, dict[str, Any]]:
    try:
        into, made = path.by(step, copy.deepcopy(dict(data)))
        canonical.check(made)
    except Exception as error:
        raise PathBroke(kept, now, error) from error
    return into, made


def _must_fit(run_type: RunType, memory: Memory, kept: int, now: int) -> None:
    """What was made is what this version takes: its data, its steps, the events it understands."""
    try:
        memory.data = run_type.dump(run_type.load(memory.data))
        named = _steps(memory)
        unknown = sorted(set(named) - set(run_type.steps))
        signals = [] if memory.waiting is None or memory.waiting.event is None else [memory.waiting.event]
        signals += [] if memory.pending is None else list(memory.pending.on)
        strange = sorted(set(signals) - set(run_type.contract.ownership.signals))
        if unknown or strange:
            raise LookupError(f"{run_type.name} v{run_type.version} has no {', '.join([*unknown, *strange])}")
    except Exception as error:
        raise PathBroke(kept, now, error) from error
