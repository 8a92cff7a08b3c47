"""One worker's hold on one run: its row as last committed, what is not committed yet, and the commit itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from recovery import failpoints
from recovery.engine import memory, outbound
from recovery.engine.memory import Memory
from recovery.engine.workers import Me
from runs import clock, record
from runs.errors import LostRace
from runs.models import Effect, Run, Signal
from runs.record import Admission, Change, Committed, Entry
from runs.states import RunState


class Superseded(Exception):
    """The run is not running any more: a cancel request came first. What was known is committed or still buffered."""


@dataclass(slots=True)
class Session:
    """What one worker holds of a run between two commits.

    ``buffer``: entries that wait for the next commit (an outcome, a check's report). ``fresh``: the effect that this
    worker just settled, ``shown``: on which evidence. ``unsaved``: its answer while it is in memory only, ``settling``:
    the effect as it will be once the buffer is committed. ``consume``: the signal that the next commit uses up.
    """

    me: Me
    run: dict[str, Any]
    watch: clock.Watch
    memory: Memory = field(default_factory=lambda: Memory({}, ""))
    buffer: list[Entry] = field(default_factory=list)
    fresh: Effect | None = None
    shown: tuple[UUID, ...] = ()
    consume: Signal | None = None
    open: list[Mapping[str, Any]] = field(default_factory=list)
    ordinal: int | None = None
    unsaved: tuple[Effect, UUID, outbound.Sent] | None = None
    settling: Effect | None = None

    @property
    def id(self) -> UUID:
        return UUID(str(self.run["id"]))

    @property
    def workspace(self) -> UUID:
        return UUID(str(self.run["workspace_id"]))

    @property
    def deadline(self) -> datetime | None:
        value = self.run["deadline"]
        return datetime.fromisoformat(value) if isinstance(value, str) else value

    @property
    def running(self) -> bool:
        return bool(self.run["state"] == RunState.RUNNING)

    def next_ordinal(self) -> int:
        """The next place among the run's effects."""
        if self.ordinal is None:
            last = Effect.objects.filter(run_id=self.id).order_by("-ordinal").values_list("ordinal", flat=True)
            self.ordinal = next(iter(last[:1]), 0)
        self.ordinal += 1
        return self.ordinal

    def commit(
        self,
        entries: list[Entry],
        *,
        run: Mapping[str, Any],
        times: Mapping[str, float] | None = None,
        why: str = "",
        changes: tuple[Change, ...] = (),
        checkpoint: bool = True,
        soonest: bool = False,
        prior: RunState = RunState.RUNNING,
        admission: Admission | None = None,
    ) -> Committed:
        """Commit the buffer and ``entries`` with the run's own change, as the owner.

        ``prior``: the state the run must be in; a cancel request stops everything but settling it. Raises Superseded
        when the run is in another one, StaleOwner when this worker is not the owner.
        """
        step = {"step": self.memory.step} if self.memory.step else {}
        own = record.run_moves({**step, **run}, prior=[prior], times=times, soonest=soonest)
        used = [record.move("signal", self.consume.pk, None, {}, times={"consumed_at": 0})] if self.consume else []
        last = entries[-1]
        entries = [
            *self.buffer,
            *entries[:-1],
            Entry(last.kind, last.data, [*last.changes, *used, own, *changes]),
        ]
        sealed = memory.seal(self.run, self.memory, why, self.open, to=run) if checkpoint else None
        failpoints.hit("advance.before_commit")
        began = clock.elapsed()
        try:
            done = record.commit(
                record.Commit(
                    self.workspace,
                    self.id,
                    entries,
                    token=int(self.run["token"]),
                    checkpoint=sealed,
                    admission=admission,
                )
            )
        except LostRace as error:
            if error.facts.get("thing") == "run":
                raise Superseded from error
            raise
        failpoints.hit("advance.after_commit")
        if sealed is not None:
            leaving = "lease_owner" in run and run["lease_owner"] is None and "ended_at" not in (times or {})
            memory.committed(self.id, self.memory, sealed, leaving=leaving)
        self.buffer = []
        self.consume = None
        self.unsaved = self.settling = None
        self.take(done, began)
        return done

    def flush(self) -> None:
        """Commit what is buffered alone: the outcome must not wait for a slow step, a cancel, or a quarantine."""
        if not self.buffer:
            return
        failpoints.hit("advance.before_flush")
        began = clock.elapsed()
        done = record.commit(record.Commit(self.workspace, self.id, self.buffer, token=int(self.run["token"])))
        failpoints.hit("advance.after_flush")
        self.buffer = []
        self.unsaved = self.settling = None
        self.take(done, began)

    def take(self, done: Committed, began: float) -> None:
        """Carry on from a commit that was asked for at ``began``: its row and its time."""
        self.run.update(done.run)
        self.watch.set(done.at, began)

    def reload(self) -> None:
        """Commit what is buffered, and read the run again."""
        self.flush()
        row = Run.objects.filter(pk=self.id).values().get()
        self.run = {**row, "deadline": row["deadline"].isoformat() if row["deadline"] else None}
        self.fresh = None
