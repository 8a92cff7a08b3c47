"""The sweep: each second, what is due by the record is rung again. Nothing is lost with a lost message.

One process at a time does it, by an advisory lock. It pages, and whoever is rung checks again under the lock. Rings
are remembered for a while, so that a call under way is not rung each second.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now

from recovery import bells, failpoints
from recovery.engine import approvals, computing, lineage, mending_runs, workers
from recovery.engine.changes import UNCHECKED
from recovery.traffic import breaker, drains, feeding
from recovery.upkeep import notify, restore
from runs import clock, record
from runs.errors import RunsError
from runs.models import Attempt, Call, Checkpoint, Effect, EffectLink, Notice, Restore, Run, Worker
from runs.record import DEAD_AFTER, Commit, Entry
from runs.restored import RestoreState
from runs.states import (
    ATTEMPT_LIVE,
    EFFECT_OPEN,
    RUN_ENDED,
    CallState,
    EffectState,
    EventKind,
    NoticeState,
    RunState,
    WaitingOn,
)

log = logging.getLogger("recourse.sweep")

PAGE = 500
RING_AGAIN = {
    "advance": 3.0,
    "dispatch": 3.0,
    "reconcile": 20.0,
    "lose": 3.0,
    "notify": 30.0,
    "ask": 3.0,
    "recover": 6.0,
    "mend": 5.0,
}
"""Seconds before the same row is rung again."""

FURTHEST = 20 * PAGE
"""Rows that one pass looks at: what was rung lately or cannot go now must not hide what stands behind it."""

ON_EFFECTS = (WaitingOn.UNKNOWN, WaitingOn.APPROVAL, WaitingOn.IN_FLIGHT)

QUORUMS_EVERY = 30.0
"""Seconds between two looks at who may sign."""

PLANS_EVERY = 30.0
"""Seconds between two looks at plans that are over, for word that came from outside since."""

LOCK = 7_265_636_875
"""Key of the advisory lock that makes the sweep one."""


@dataclass(slots=True)
class Sweep:
    """What this process has rung lately, by task and row; ``frozen``: workspaces that a restore holds."""

    rung: dict[tuple[str, str], float] = field(default_factory=dict)
    quorums_at: float = -1e9
    plans_at: float = -1e9
    frozen: list[UUID] = field(default_factory=list)
    watch: restore.Watch = field(default_factory=restore.Watch)

    def run_once(self) -> dict[str, int]:
        """One pass. Returns counts by what was done."""
        failpoints.hit("sweep.before_pass")
        now = clock.now()
        self.frozen = restore.frozen()
        parts: dict[str, Callable[[], int]] = {
            # First: nothing is sent from a record that was not compared with what was last seen of it.
            "frozen": self.watch.look,
            "recover": self._recover,
            "buried": workers.bury_dead_here,
            "runs": lambda: self._due_runs(now),
            "orphans": self._orphans,
            "attempts": lambda: self._lost_attempts(now),
            "breakers": lambda: breaker.look_at_all(now),
            "drains": lambda: self._drains(now),
            "ready": lambda: self._ready(now),
            "not sending": breaker.tell_who_waits,
            "checks": lambda: self._to_check(now),
            "links": lambda: self._links(now),
            "children": lambda: lineage.wake_parents(now, PAGE),
            "plans": self._plans,
            "expired": lambda: approvals.expire_due(now, PAGE),
            "quorums": lambda: self._quorums(now),
            "calls": lambda: self._calls(now),
            "lost calls": lambda: self._lost_calls(now),
            "notices": lambda: self._notices(now),
        }
        counts = {name: _part(name, part) for name, part in parts.items()}
        self._forget()
        failpoints.hit("sweep.after_pass")
        return counts

    def _ring(self, task: str, *args: str) -> int:
        mark = (task, args[-1])
        if time.monotonic() - self.rung.get(mark, -1e9) < RING_AGAIN[task]:
            return 0
        failpoints.hit("sweep.before_ring")
        if bells.publish(task, *args):
            failpoints.hit("sweep.after_ring")
            self.rung[mark] = time.monotonic()
            return 1
        return 0

    def _ring_all(self, task: str, rows: QuerySet[Any, Any]) -> int:
        """Ring for the first PAGE rows of ``rows`` (tuples of ids) that were not rung lately."""
        rang = 0
        for row in rows[:FURTHEST].iterator(chunk_size=PAGE):
            rang += self._ring(task, *map(str, row))
            if rang >= PAGE:
                break
        return rang

    def _forget(self) -> None:
        horizon = time.monotonic() - max(RING_AGAIN.values())
        for mark in [m for m, at in self.rung.items() if at < horizon]:
            del self.rung[mark]

    def _recover(self) -> int:
        return self._ring_all("recover", Restore.objects.filter(state=RestoreState.FROZEN).values_list("pk"))

    def _due_runs(self, now: datetime) -> int:
        due = Run.objects.filter(wake_at__lte=now, lease_owner=None).order_by("wake_at")
        # What moves under it still wakes a run that is quarantined; only a person takes it out.
        due = due.exclude(state=RunState.QUARANTINED).exclude(workspace__in=self.frozen)
        return self._ring_all("advance", due.values_list("workspace_id", "id"))

    def _orphans(self) -> int:
        """Runs whose owner is dead."""
        alive = Worker.objects.filter(pk=OuterRef("lease_owner"), seen_at__gt=Now() - timedelta(seconds=DEAD_AFTER))
        left = Run.objects.filter(lease_owner__isnull=False).filter(~Exists(alive)).exclude(state__in=RUN_ENDED)
        left = left.exclude(workspace__in=self.frozen)
        return self._ring_all("advance", left.values_list("workspace_id", "id"))

    def _lost_attempts(self, now: datetime) -> int:
        alive = Worker.objects.filter(pk=OuterRef("worker"), seen_at__gt=Now() - timedelta(seconds=DEAD_AFTER))
        live = Attempt.objects.filter(state__in=list(ATTEMPT_LIVE))
        gone = live.filter(Q(expires_at__lte=now) | ~Exists(alive)).order_by("expires_at")
        return self._ring_all("lose", gone.values_list("pk"))

    def _ready(self, now: datetime) -> int:
        """What is rung is what goes next: its capacity has room for it (recovery/traffic/feeding.py)."""
        next_ones = feeding.next_to_send(now, PAGE, unchecked=UNCHECKED, frozen=self.frozen)
        return sum(self._ring("dispatch", str(id)) for id in next_ones)

    def _drains(self, now: datetime) -> int:
        moved = 0
        for drain in drains.live():
            went_on, unread, late = drains.step(drain, now)
            moved += went_on
            for id in unread[:PAGE]:
                self._ring("reconcile", str(id))
            for id in late[:PAGE]:
                self._ring("dispatch", str(id))
        return moved

    def _to_check(self, now: datetime) -> int:
        due = Effect.objects.filter(next_check_at__lte=now).order_by("next_check_at")
        return self._ring_all("reconcile", due.values_list("pk"))

    def _plans(self) -> int:
        """Compensation plans whose run is missing or over; now and then those not shown as they are."""
        found = mending_runs.due(PAGE)
        if time.monotonic() - self.plans_at >= PLANS_EVERY:
            self.plans_at = time.monotonic()
            found += mending_runs.changed_since(PAGE)
        return sum(self._ring("mend", str(plan)) for plan in found)

    def _calls(self, now: datetime) -> int:
        due = Call.objects.filter(state=CallState.READY, not_before__lte=now).order_by("not_before")
        return self._ring_all("ask", due.exclude(drains.STANDS_STILL).values_list("pk"))

    def _lost_calls(self, now: datetime) -> int:
        """Calls whose sender died or whose limit is over; a run that has ended or stands still does not look."""
        gone = list(computing.lost(now).values_list("pk", flat=True)[:PAGE])
        return sum(computing.lose(call) == CallState.LOST for call in gone)

    def _notices(self, now: datetime) -> int:
        """What people are to be told: new rows for what was opened, and those whose time has come."""
        notify.make(PAGE)
        due = Notice.objects.filter(state=NoticeState.WAITING, due_at__lte=now).order_by("due_at")
        return self._ring_all("notify", due.values_list("pk"))

    def _quorums(self, now: datetime) -> int:
        """Requests that people who came or went have made possible or impossible; looked at twice a minute."""
        if time.monotonic() - self.quorums_at < QUORUMS_EVERY:
            return 0
        self.quorums_at = time.monotonic()
        return approvals.reevaluate(now, PAGE)

    def _links(self, now: datetime) -> int:
        """Runs that wait on another run's effect that is settled now: nothing of theirs is open any more, or it did
        not succeed since they wrote their checkpoint.
        """
        mine = {"run_id": OuterRef("run_id")}
        own = Effect.objects.filter(**mine, state__in=EFFECT_OPEN)
        linked = EffectLink.objects.filter(**mine, effect__state__in=EFFECT_OPEN)
        wrote = Checkpoint.objects.filter(**mine).order_by("-seq").values("at")[:1]
        went_wrong = ~Q(effect__state=EffectState.SUCCEEDED) & Q(effect__settled_at__gt=Subquery(wrote))
        rows = (
            EffectLink.objects.filter(run__state=RunState.WAITING, run__waiting_on__in=ON_EFFECTS)
            .exclude(run__wake_at__lte=now)
            .exclude(effect__state__in=EFFECT_OPEN)
            .filter(went_wrong | (~Exists(own) & ~Exists(linked)))
            .values_list("workspace_id", "run_id")
        )
        woken = 0
        for workspace, run in set(rows[:PAGE]):
            change = record.run_moves({}, prior=[RunState.WAITING], times={"wake_at": 0})
            entry = Entry(EventKind.RUN_WOKEN, {"by": "another run's effect"}, [change])
            woken += _try(lambda w=workspace, r=run, e=entry: record.commit(Commit(w, r, [e])))  # type: ignore[misc]
        return woken


def _part(name: str, part: Callable[[], int]) -> int:
    """What ``part`` did. A row that breaks one part must not keep the others from theirs."""
    try:
        return part()
    except (OperationalError, InterfaceError):
        raise  # the record is away: whoever sweeps opens it anew
    except Exception:
        # Also a fault of ours, or of a contract's author: the other parts, and the next pass, are due all the same.
        log.exception("sweep: %s broke", name)
        return 0


def _try(commit: Callable[[], object]) -> int:
    failpoints.hit("link.before_commit")
    try:
        commit()
    except RunsError as error:
        log.info("sweep: %s", error)
        return 0
    failpoints.hit("link.after_commit")
    return 1


def is_the_one() -> bool:
    """Take the advisory lock on this connection; False while another process has it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        return bool(cursor.fetchone()[0])
