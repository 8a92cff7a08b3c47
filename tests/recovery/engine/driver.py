"""Working without Celery: sweep, and do at once what the sweep rang."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import connection

from recovery.engine.advance import advance
from recovery.engine.computing import ask
from recovery.engine.dispatch import dispatch
from recovery.engine.mending_runs import mend
from recovery.engine.reconcile import lose, reconcile
from recovery.traffic import drains
from recovery.upkeep.notify import deliver
from recovery.upkeep.recover import carry_on
from recovery.upkeep.sweep import Sweep
from runs import clock
from runs.models import Attempt, Call, Capacity, Effect, Notice, Run
from runs.states import ATTEMPT_LIVE, BreakerState, CallState, EffectState, NoticeState

TASKS: dict[str, Callable[..., object]] = {
    "advance": advance,
    "dispatch": dispatch,
    "reconcile": reconcile,
    "lose": lose,
    "notify": deliver,
    "ask": ask,
    "mend": mend,
    "recover": carry_on,
}
"""What the sweep rings for, done at once."""

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)

MOVES = ("links", "children", "expired", "drains", "breakers")
"""Parts of the sweep that move something themselves."""


@dataclass
class Driver:
    """``rung``: what the last sweep rang; whoever uses this makes ``bells.publish`` append to it. ``looked_at``: when
    that sweep began.
    """

    rung: list[tuple[str, tuple[str, ...]]] = field(default_factory=list, kw_only=True)
    looked_at: datetime = field(default=LONG_AGO, kw_only=True)

    def publish(self, task: str, *args: str) -> bool:
        """In the place of ``bells.publish``."""
        self.rung.append((task, args))
        return True

    def beat(self, id: UUID | None = None) -> None:
        """The worker, or everyone who is not dead, is seen now."""
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE runs_worker SET seen_at = clock_timestamp() WHERE seen_at > '-infinity'"
                + (" AND id = %s" if id else ""),
                [id] if id else [],
            )

    def do(self, task: Callable[..., object], *ids: UUID) -> None:
        """One thing that was rung."""
        task(*ids)

    def pass_once(self) -> int:
        """One sweep, and everything it rang. Returns how much it found to do."""
        self.rung.clear()
        self.looked_at = clock.now()
        counts = Sweep().run_once()
        for task, args in list(self.rung):
            self.do(TASKS[task], *[UUID(one) for one in args])
        return len(self.rung) + sum(counts[part] for part in MOVES)

    def drive(self, *, jump: timedelta = timedelta(0), passes: int = 60) -> None:
        """Sweep and work until nothing is due; move the clock to what is due within ``jump``, if anything is.

        Fails when it does not come to rest: whatever waits holds no worker and costs nothing (invariant 11).
        """
        until = clock.now() + jump
        for _ in range(passes):
            if self.pass_once():
                continue
            due = self.next_due()
            if due is None or due > until:
                return
            clock.shift(max(due - clock.now(), timedelta(0)) + timedelta(milliseconds=1))
        raise AssertionError(f"still busy after {passes} passes: {self.rung}")

    def next_due(self) -> datetime | None:
        """The next moment at which the sweep finds something."""
        # What is due and was not rung in this pass stands behind a breaker, a hold, or a restore.
        ready = Effect.objects.filter(state=EffectState.READY, not_before__gt=self.looked_at)
        ready = ready.exclude(drains.STANDS_STILL)
        calls = Call.objects.filter(state=CallState.READY).exclude(not_before=None).exclude(drains.STANDS_STILL)
        found = [
            *Run.objects.exclude(wake_at=None).values_list("wake_at", flat=True),
            *Effect.objects.exclude(next_check_at=None).values_list("next_check_at", flat=True),
            *ready.values_list("not_before", flat=True),
            *Attempt.objects.filter(state__in=ATTEMPT_LIVE).values_list("expires_at", flat=True),
            *calls.values_list("not_before", flat=True),
            *Notice.objects.filter(state=NoticeState.WAITING).values_list("due_at", flat=True),
            *Capacity.objects.filter(state=BreakerState.OPEN).values_list("reopen_at", flat=True),
        ]
        return min(found, default=None)
