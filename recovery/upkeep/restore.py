"""Noticing that an older database was put in the record's place, and freezing what it would otherwise send again.

Each sweep compares the database with what was last seen of it. Until a server that was started anew has been compared
once, the writer's function commits no attempt (``runs_holds``), so nothing can slip through before the first look.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction

from recovery import failpoints
from recovery.engine import lookfirst, workers
from recovery.engine.changes import open_review, reason
from recovery.upkeep import outside
from recovery.upkeep.outside import Marker
from runs import clock, epochs, record
from runs.epochs import Here
from runs.models import Epoch, Event, Restore, Workspace
from runs.models.base import new_id
from runs.record import Commit, Entry
from runs.restored import RestoreState
from runs.states import EventKind, ReviewKind

log = logging.getLogger("recourse.restore")

MARK_EVERY = 5.0
"""Seconds after which the mark grows also where nothing happened; otherwise with each pass that saw something new."""

DUE_IN = 1200.0
UNSEEN = 16
"""Epochs that are left out where nobody knows the last one: tokens begin above whatever was given out (fault 39)."""


@dataclass(slots=True)
class Watch:
    """What this process marked last."""

    event: int = -1
    at: float = -1e9
    identity: str = ""

    def look(self) -> int:
        """Compare and mark, or begin a new epoch. Returns how many workspaces a restore has frozen now."""
        where, epoch, path = epochs.here(), epochs.current(), outside.place()
        event, _at = epochs.last_event()
        seen = epoch.identity == where.identity == self.identity
        if seen and event == self.event and time.monotonic() - self.at < MARK_EVERY:
            return 0
        marker, cause = compare(where, epoch, path)
        if cause:
            log.error("the record is not the one last seen (%s): nothing is sent until it was looked through", cause)
            return begin(cause, where, epoch, marker)
        mark = max(epoch.mark, marker.mark if marker else 0) + 1
        epochs.confirm(epoch, where, mark)
        if path is not None and not _write(path, marked(epoch.pk, mark, where)):
            # The record must not be ahead of what is kept outside for longer than a process may die.
            epochs.confirm(epoch, where, epoch.mark)
            return 0
        self.event, self.at, self.identity = event, time.monotonic(), where.identity
        return 0


def frozen() -> list[UUID]:
    """Workspaces for which nothing is sent and no run goes on: nobody need be rung for them."""
    held = Restore.objects.exclude(state=RestoreState.RELEASED)
    return list(held.values_list("workspace_id", flat=True))


def _write(path: Path, marker: Marker) -> bool:
    failpoints.hit("mark.before_write")
    try:
        outside.write(path, marker)
        failpoints.hit("mark.after_write")
    except OSError as error:
        log.error("what was last seen of the record cannot be kept: %s", error)
        return False
    return True


def compare(where: Here, epoch: Epoch, path: Path | None) -> tuple[Marker | None, str]:
    """What was last seen, and how this database contradicts it: a stable word, empty where it does not."""
    marker = None
    try:
        marker = outside.read(path) if path is not None else None
    except outside.MarkerUnreadable as error:
        log.error("what was last seen of the record cannot be read: %s", error)
        if epoch.mark > 1:
            return None, "marker_unreadable"
    if path is not None and marker is None and epoch.mark > 1:
        # This record was marked, and the mark is gone: nobody can say whether it is the newest one.
        return None, "marker_missing"
    if epoch.system_identifier != where.system:
        return marker, "other_system"
    if epoch.timeline != where.timeline:
        return marker, "other_timeline"
    if marker is not None and (marker.epoch > epoch.pk or (marker.epoch == epoch.pk and marker.mark > epoch.mark)):
        return marker, "older_record"
    if marker is not None and marker.epoch == epoch.pk and epoch.identity != where.identity and not _has(marker):
        return marker, "other_history"
    return marker, ""


def _has(marker: Marker) -> bool:
    """Whether each workspace's own chain has the line that was its last one then. Read where the server is new."""
    for workspace, (seq, hash) in marker.heads.items():
        if seq and not Event.objects.filter(workspace_id=workspace, run=None, seq=seq, hash=hash).exists():
            return False
    return True


def marked(epoch: int, mark: int, where: Here) -> Marker:
    """The marker of the record as it stands."""
    event, at = epochs.last_event()
    rows = Workspace.objects.values_list("pk", "head_seq", "head_hash")
    heads = {str(pk): (seq, hash) for pk, seq, hash in rows}
    return Marker(epoch, mark, event, at.isoformat() if at else None, where.system, where.timeline, heads)


def begin(cause: str, where: Here, epoch: Epoch, marker: Marker | None) -> int:
    """Begin a new epoch: each workspace is frozen, its chain names what was last seen outside, its people are told.

    The chain goes on from where the backup left it; nothing is computed anew.
    """
    failpoints.hit("epoch.before_write")
    with transaction.atomic():
        spaces = _begin(cause, where, epoch, marker)
        failpoints.hit("epoch.before_commit")
    failpoints.hit("epoch.after_commit")
    return spaces


def _begin(cause: str, where: Here, epoch: Epoch, marker: Marker | None) -> int:
    _id, backup_at = epochs.last_event()
    now = clock.now()
    number = max(epoch.pk, marker.epoch if marker else epoch.pk + UNSEEN) + 1
    epochs.begin(number, where, max(epoch.mark, marker.mark if marker else 0) + 1, now)
    kept = None if marker is None else marker.as_json()
    spaces = list(Workspace.objects.order_by("pk").values_list("pk", flat=True))
    for workspace in spaces:
        seen = None if kept is None else {**kept, "heads": {}, "head": kept["heads"].get(str(workspace))}
        row = {
            "id": new_id(),
            "workspace_id": workspace,
            "epoch": number,
            "state": RestoreState.FROZEN,
            "cause": cause,
            "outside": seen,
            "backup_at": backup_at or now,
            "began_at": now,
        }
        _freeze(workspace, row)
    # The workers of before are forgotten, this one too: it takes another name under the new epoch.
    workers.rename()
    lookfirst.forget()
    return len(spaces)


def _freeze(workspace: UUID, row: dict[str, Any]) -> None:
    told = {"epoch": row["epoch"], "cause": row["cause"], "backup_at": row["backup_at"].isoformat()}
    review = open_review(
        ReviewKind.HISTORY_ALARM,
        row["id"],
        workspace=workspace,
        run=None,
        high=True,
        why=reason("record_restored", **told),
        due_in=DUE_IN,
    )
    data = {**told, "restore": str(row["id"]), "outside": row["outside"]}
    record.commit(Commit(workspace, None, [Entry(EventKind.EPOCH_BEGUN, data, [record.new("restore", row), review])]))
