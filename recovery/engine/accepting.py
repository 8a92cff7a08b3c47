"""A run that does not exist yet: its row, its first event, its first checkpoint. For people, clients and parents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from recovery.contract import canonical
from recovery.contract.runs import FIRST_STEP, RunType
from recovery.engine import intents, memory
from recovery.engine.memory import Memory
from runs import record
from runs.checkpoints import tokens
from runs.models.base import new_id
from runs.record import Entry, Sealed
from runs.states import EventKind, RunState

TIMES = {"accepted_at": 0.0, "wake_at": 0.0}
"""A run is due as soon as it is accepted."""


@dataclass(frozen=True, slots=True)
class Newborn:
    """What ``record.accept`` takes: the row's columns, the first entry, the checkpoint."""

    id: UUID
    row: dict[str, Any]
    entry: Entry
    checkpoint: Sealed


def newborn(
    run_type: RunType,
    input: Mapping[str, Any],
    *,
    workspace: UUID,
    now: datetime,
    deadline: datetime | None,
    **columns: Any,
) -> Newborn:
    """A run of ``run_type`` with ``input``; without ``deadline`` the type's own counts from ``now``.

    ``columns``: whose it is (``principal``, ``started_by_id``, ``goal``, ``priority``, ``parent_id`` ...). Raises
    ParamsInvalid naming each field.
    """
    loaded = run_type.load(input)
    with tokens.within(workspace):
        data = run_type.dump(loaded)
    own = run_type.contract.ownership.deadline
    row: dict[str, Any] = {
        "id": new_id(),
        "workspace_id": workspace,
        "type": run_type.name,
        "type_version": run_type.version,
        "contract_digest": run_type.digest,
        "config": run_type.config,
        "title": intents.english(run_type.describe(loaded))[:300],
        "references": run_type.references(loaded),
        "deadline": deadline or (now + own if own is not None else None),
        "state": RunState.ACCEPTED,
        "step": FIRST_STEP,
        **columns,
    }
    sealed = memory.seal(record.full_row("run", row), Memory(data, FIRST_STEP), "accepted")
    told = {
        "type": run_type.name,
        "version": run_type.version,
        "goal": row.get("goal", ""),
        "input": canonical.digest(data),
    }
    if row.get("parent_id") is not None:
        told |= {"parent": str(row["parent_id"]), "key": row["child_key"]}
    return Newborn(row["id"], row, Entry(EventKind.RUN_ACCEPTED, told), sealed)
