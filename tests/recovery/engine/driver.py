"""Working without Celery: sweep, and do at once what the sweep rang."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
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
from runs.models import Attempt, Effect, Run
from runs.states import ATTEMPT_LIVE, EffectState

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


@dataclass
class Driver:
    """``rung``: what the last sweep rang; whoever uses this makes ``bells.publish`` append to it."""

    rung: list[tuple[str, tuple[str, ...]]] = field(default_factory=list, kw_only=True)

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
        counts = Sweep().run_once()
        for task, args in list(self.rung):
            self.do(TASKS[task], *[UUID(one) for one in args])
        return len(self.rung) + counts["links"] + counts["children"] + counts["expired"]

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
        ready = Effect.objects.filter(state=EffectState.READY).exclude(not_before=None)
        ready = ready.exclude(drains.STANDS_STILL)
        found = [
            *Run.objects.exclude(wake_at=None).values_list("wake_at", flat=True),
            *Effect.objects.exclude(next_check_at=None).values_list("next_check_at", flat=True),
            *ready.values_list("not_before", flat=True),
            *Attempt.objects.filter(state__in=ATTEMPT_LIVE).values_list("expires_at", flat=True),
        ]
        return min(found, default=None)
