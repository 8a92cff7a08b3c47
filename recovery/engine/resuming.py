"""Before a run that was away goes on: the nine checks, their report, and a person where they ask for one."""

from __future__ import annotations

from recovery.contract.runs import RunType
from recovery.engine import checks, finish, pause_moves, workers
from recovery.engine.session import Session
from runs import record
from runs.checkpoints.load import Restored
from runs.models import Effect
from runs.record import Entry
from runs.states import EventKind, ReviewKind


def check(s: Session, run_type: RunType, restored: Restored) -> str:
    """Check a run that was away. Returns why it stops here, or an empty text to go on (invariant 13)."""
    now = s.watch.now()
    why = checks.away(
        s.run,
        s.memory,
        code=workers.code_version(),
        epoch=s.me.epoch,
        fresh_for=run_type.contract.lease.fresh_for.total_seconds(),
        waited=(now - restored.at).total_seconds(),
    )
    if pause_moves.lifted_since(s.run, restored.at):
        why = "paused"
    if not why:
        return ""
    effects = list(Effect.objects.filter(run_id=s.run["id"]).order_by("ordinal"))
    report = checks.nine(s.run, restored, s.memory, run_type, effects, now)
    # Asked again or not any more: what an earlier look asked of a person is answered by this one.
    asked = [] if report.verdict == "escalate" else [record.close_reviews(s.id, [ReviewKind.RESUMPTION])]
    s.buffer.append(Entry(EventKind.RUN_CHECKED, {"why": why, **report.as_json()}, asked))
    if report.verdict == "escalate":
        return finish.ask_to_resume(s, run_type, report)
    return ""
