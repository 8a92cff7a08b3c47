"""Parents and children by the record: who is still alive below a run, and waking a parent when its child has ended.

A child's end only rings: the parent reads the child's row. What a dead process did not ring, the sweep finds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from recovery import failpoints
from runs import record
from runs.errors import RunsError
from runs.models import Run
from runs.record import Commit, Entry
from runs.states import RUN_ENDED, EventKind, RunState, WaitingOn

log = logging.getLogger("recourse.children")

MOVING: Final = (RunState.ACCEPTED, RunState.RUNNING, RunState.WAITING, RunState.PAUSING)
"""States of a child that a pause of its parent waits for: they can still send, or have something in flight."""

LISTENS: Final = (RunState.RUNNING, RunState.WAITING, RunState.PAUSING, RunState.CANCELLING, RunState.COMPENSATING)
"""States of a parent that goes on with a child's end. A paused or quarantined one finds it when a person lets it go
on."""


def alive(run: UUID) -> list[Run]:
    """Children of ``run`` that have not ended, oldest first."""
    return list(Run.objects.filter(parent_id=run).exclude(state__in=RUN_ENDED).order_by("id"))


def named(children: Iterable[Run]) -> list[dict[str, Any]]:
    """Children as an event or an end lists them."""
    return [{"run": str(c.pk), "title": c.title, "state": str(c.state)} for c in children]


def ring_parent(child: Mapping[str, Any]) -> None:
    """Wake the parent of ``child`` (a run's row that has just ended or paused), if it has one that listens.

    A commit of the parent's own, after the child's: no transaction holds two runs.
    """
    parent = child.get("parent_id")
    if parent is not None:
        _wake(UUID(str(child["workspace_id"])), UUID(str(parent)))


def wake_parents(now: datetime, limit: int) -> int:
    """Wake runs that wait for a child and have none alive (or, pausing, none that moves). Returns how many."""
    child = Run.objects.filter(parent_id=OuterRef("pk"))
    over = ~Exists(child.exclude(state__in=RUN_ENDED))
    still = ~Exists(child.filter(state__in=MOVING))
    rows = (
        Run.objects.filter(waiting_on=WaitingOn.CHILD, lease_owner=None)
        .filter(Q(wake_at=None) | Q(wake_at__gt=now))
        .filter(
            Q(over, state__in=[RunState.WAITING, RunState.CANCELLING]) | Q(still, state=RunState.PAUSING),
        )
        .values_list("workspace_id", "pk")
    )
    return sum(_wake(workspace, run) for workspace, run in rows[:limit])


def _wake(workspace: UUID, parent: UUID) -> int:
    change = record.run_moves({}, prior=LISTENS, times={"wake_at": 0})
    try:
        with failpoints.committing("wake"):
            record.commit(Commit(workspace, parent, [Entry(EventKind.RUN_WOKEN, {"by": "a child"}, [change])]))
    except RunsError as error:
        log.info("run %s is not woken by its child: %s", parent, error)
        return 0
    return 1
