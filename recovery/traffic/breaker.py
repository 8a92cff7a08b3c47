"""The breaker of a capacity: whether it is called at all, decided on counters that the record keeps.

Closed, open, half open with one probe, closed. Each move stands in the chain of every workspace that uses the capacity.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from recovery import failpoints
from recovery.engine.changes import open_review, reason
from recovery.traffic.admission import WAITING
from runs import clock, record
from runs.errors import LostRace
from runs.models import Capacity, Dependency, Effect, Review
from runs.record import Change, Commit, Entry
from runs.states import BreakerState, EventKind, ReviewKind

LONGEST_PAUSE: Final = 300.0
"""Seconds; the pause before a probe doubles up to it."""

REVIEW_DUE: Final = 1200.0
"""Seconds in which somebody should have looked at a dependency that is not called."""


@dataclass(frozen=True, slots=True)
class Step:
    """What the breaker becomes, and for how many seconds (open) it stays so at least."""

    to: BreakerState
    pause: float = 0.0


def next_step(c: Capacity, now: datetime) -> Step | None:
    """What the breaker of ``c`` should become at ``now``; None: it stays. Pure."""
    if c.state == BreakerState.CLOSED:
        ended, failed = c.ended + c.last_ended, c.failed + c.last_failed
        if ended >= c.breaker_least and failed >= c.breaker_share * ended:
            return _opened(c)
    elif c.state == BreakerState.OPEN:
        if c.reopen_at is None or now >= c.reopen_at:
            return Step(BreakerState.HALF_OPEN)
    elif c.probe is not None and c.probe_ok is not None:
        return Step(BreakerState.CLOSED) if c.probe_ok else _opened(c)
    return None


def _opened(c: Capacity) -> Step:
    return Step(BreakerState.OPEN, min(c.breaker_pause * 2 ** min(c.opened, 16), LONGEST_PAUSE))


def look(capacity: UUID) -> str:
    """Move the breaker if it is due. Returns its state afterwards. Any number of callers at once move it once."""
    row = Capacity.objects.get(pk=capacity)
    step = next_step(row, clock.now())
    if step is None:
        return row.state
    if not _moved(row, step):
        return Capacity.objects.values_list("state", flat=True).get(pk=capacity)
    return step.to


def look_at_all(now: datetime) -> int:
    """Every breaker that is due, for the sweep: whoever should have moved it may be dead. Returns how many moved."""
    steps = [(c, next_step(c, now)) for c in Capacity.objects.all()]
    return sum(_moved(c, step) for c, step in steps if step is not None)


def _moved(c: Capacity, step: Step) -> bool:
    try:
        _move(c, step)
    except LostRace:
        return False
    return True


def _move(c: Capacity, step: Step) -> None:
    """One transaction: a line in each workspace's chain, in order of their ids, and with the last the move itself."""
    of: dict[UUID, list[Dependency]] = defaultdict(list)
    for one in Dependency.objects.filter(capacity=c).order_by("workspace_id", "name"):
        of[one.workspace_id].append(one)
    facts = {
        "capacity": c.name,
        "from": c.state,
        "to": step.to,
        "ended": c.ended + c.last_ended,
        "failed": c.failed + c.last_failed,
        "pause_s": step.pause,
    }
    with transaction.atomic():
        for workspace in sorted(of):
            changes = [change for one in of[workspace] for change in _review(one, step.to)]
            if workspace == max(of):
                changes.append(_change(c, step))
            data = {**facts, "dependencies": [one.name for one in of[workspace]]}
            record.commit(Commit(workspace, None, [Entry(EventKind.BREAKER_MOVED, data, changes)]))
        failpoints.hit("breaker.before_commit")
    failpoints.hit("breaker.after_commit")


def _change(c: Capacity, step: Step) -> Change:
    change: dict[str, Any] = {"state": step.to, "probe": None, "probe_ok": None, "reopen_at": None}
    times = {"moved_at": 0.0}
    if step.to == BreakerState.OPEN:
        change["opened"] = c.opened + 1
        times["reopen_at"] = step.pause
    elif step.to == BreakerState.CLOSED:
        # What failed before says nothing about how it is now.
        change |= {"opened": 0, "ended": 0, "failed": 0, "last_ended": 0, "last_failed": 0}
    return record.move("breaker", c.pk, [c.state], change, times=times)


def _review(one: Dependency, to: BreakerState) -> list[Change]:
    if to == BreakerState.CLOSED and one.held_at is None:
        return [record.close_reviews(one.pk, [ReviewKind.NOT_SENDING])]
    if to == BreakerState.OPEN and waits(one):
        return [not_sending(one, "breaker_open")]
    return []


def waits(one: Dependency) -> int:
    """How many effects of the dependency wait to be sent or found out about."""
    return Effect.objects.filter(WAITING, dependency=one).count()


def not_sending(one: Dependency, code: str) -> Change:
    """The one review about a dependency that is not called while work waits, whatever the number of runs."""
    return open_review(
        ReviewKind.NOT_SENDING,
        one.pk,
        workspace=one.workspace_id,
        run=None,
        why=reason(code, dependency=one.name),
        due_in=REVIEW_DUE,
    )


def tell_who_waits() -> int:
    """Open the review of each dependency that is held or open-circuited and has work by now. Returns how many."""
    told = 0
    for one in Dependency.objects.select_related("capacity"):
        code = "dependency_held" if one.held_at else "breaker_open"
        if (one.held_at is None and one.capacity.state != BreakerState.OPEN) or _is_told(one):
            continue
        count = waits(one)
        if count:
            said = {"dependency": one.name, "waiting": count}
            entry = Entry(EventKind.DEPENDENCY_WAITED, said, [not_sending(one, code)])
            with failpoints.committing("waiting"):
                record.commit(Commit(one.workspace_id, None, [entry]))
            told += 1
    return told


def _is_told(one: Dependency) -> bool:
    return Review.objects.filter(kind=ReviewKind.NOT_SENDING, subject=one.pk, state="open").exists()
