"""What the record says after a move: only what is new is read, folded and kept."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection

from runs.history import fold
from runs.models import Checkpoint, Effect, Event, Run, Workspace
from runs.states import RUN_ENDED

if TYPE_CHECKING:
    from recovery.simulation.world import World

_RUN = (
    *("id", "workspace_id", "type", "type_version", "state", "waiting_on", "wait_event", "wake_at", "lease_owner"),
    *("token", "tries", "head_seq", "head_hash", "ended_at", "ended_how", "resumed_at"),
)
_EFFECT = (
    *("id", "run_id", "workspace_id", "operation", "contract_version", "key", "sent_key", "generation", "state"),
    *("attempts", "intent_digest", "deadline", "next_check_at", "not_before", "mends_id"),
)


@dataclass
class History:
    """One chain as far as it was read: where it ends, what folding it gives.

    ``leased``: who has the lease. ``sealed``: how many checkpoints, the last by ``owner`` at ``sealed_at``.
    """

    seq: int = 0
    hash: str = ""
    states: dict[tuple[str, str], str] = field(default_factory=dict)
    ended: str = ""
    token: int = 0
    leased: str = ""
    checked: bool = True
    sealed: int = 0
    sealed_at: datetime | None = None
    owner: str = ""


@dataclass
class Seen:
    """``runs`` and ``effects`` as they stand, ``new`` the events since the last look, ``changed`` their runs."""

    world: World
    runs: dict[UUID, dict[str, Any]] = field(default_factory=dict)
    effects: dict[UUID, dict[str, Any]] = field(default_factory=dict)
    histories: dict[UUID, History] = field(default_factory=dict)
    new: list[Event] = field(default_factory=list)
    changed: set[UUID] = field(default_factory=set)
    sealed: dict[UUID, set[datetime]] = field(default_factory=dict)
    last: int = 0
    commits: int = 0
    blobs: int = 0
    permits: int = 0
    last_sealed: int = 0

    def refresh(self) -> bool:
        """Read what is new. False where nothing is: no commit, nothing new."""
        if self.commits == self.world.commits:
            self.new, self.changed = [], set()
            return False
        self.commits = self.world.commits
        self.new = list(Event.objects.filter(pk__gt=self.last).order_by("pk"))
        self.changed = {event.run_id for event in self.new if event.run_id is not None}
        if not self.new:
            return False
        self.last = self.new[-1].pk
        if self.changed:
            self.runs |= {row["id"]: row for row in Run.objects.filter(pk__in=self.changed).values(*_RUN)}
            rows = Effect.objects.filter(run_id__in=self.changed).values(*_EFFECT)
            self.effects |= {row["id"]: row for row in rows}
            self._checkpoints()
        return True

    def _checkpoints(self) -> None:
        self.sealed = {}
        if self.blobs == self.world.sealed:
            return
        self.blobs = self.world.sealed
        for pk, run, at in Checkpoint.objects.filter(pk__gt=self.last_sealed).values_list("pk", "run_id", "at"):
            self.sealed.setdefault(run, set()).add(at)
            self.last_sealed = max(self.last_sealed, pk)

    def chain_of(self, event: Event) -> History:
        """The chain that an event belongs to."""
        return self.histories.setdefault(event.run_id or event.workspace_id, History())

    def head(self, chain: UUID) -> tuple[int, str]:
        """What the row of a run or workspace says of its chain's end."""
        if chain in self.runs:
            return self.runs[chain]["head_seq"], self.runs[chain]["head_hash"]
        row: tuple[int, str] = Workspace.objects.values_list("head_seq", "head_hash").get(pk=chain)
        return row

    def of_run(self, run: UUID) -> list[dict[str, Any]]:
        """The run's own effects."""
        return [effect for effect in self.effects.values() if effect["run_id"] == run]

    def open_runs(self) -> list[dict[str, Any]]:
        """Runs that have not ended, oldest first."""
        return [row for _id, row in sorted(self.runs.items()) if row["state"] not in RUN_ENDED]

    def everything(self) -> None:
        """Look at every run once more, whether something was written about it or not."""
        self.changed = set(self.runs)
        self.runs = {row["id"]: row for row in Run.objects.values(*_RUN)}

    def tables(self) -> dict[UUID, dict[tuple[str, str], str]]:
        """The state of everything of the changed runs, by the tables, in one query."""
        found: dict[UUID, dict[tuple[str, str], str]] = {
            run: {("run", str(run)): self.runs[run]["state"]} for run in self.changed
        }
        with connection.cursor() as cursor:
            cursor.execute(_projection(), {"runs": list(self.changed)})
            for thing, run, id, state in cursor.fetchall():
                found[run][thing, str(id)] = state
        return found


_text = ""


def _projection() -> str:
    """One statement over every table that has states, from the projections that folding compares with."""
    global _text
    if not _text:
        parts = []
        for thing, (model, path) in fold._PROJECTIONS.items():
            table = model._meta.db_table
            owner, _, _column = path.rpartition("__")
            if owner:
                parent = model._meta.get_field(owner).related_model._meta.db_table  # type: ignore[union-attr]
                join, run = f" JOIN {parent} p ON p.id = t.{owner}_id", "p.run_id"
            else:
                join, run = "", f"t.{path}"
            parts.append(f"SELECT '{thing}', {run}, t.id, t.state FROM {table} t{join} WHERE {run} = ANY(%(runs)s)")
        _text = " UNION ALL ".join(parts)
    return _text


def digest(text: str) -> str:
    """The hash of an event's text, as the chain has it."""
    return hashlib.sha256(text.encode()).hexdigest()
