"""The two moves of a pause, made alike for a person and for a parent. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from recovery.engine.changes import reason
from runs import record
from runs.models import Run
from runs.record import Change
from runs.states import RunState, WaitingOn

PAUSABLE: Final = (RunState.ACCEPTED, RunState.RUNNING, RunState.WAITING)
"""States that a pause is asked in; anything else is on its way to an end, or stands still already."""

_NONE: Final[dict[str, Any]] = {"pause_asked_at": None, "pause_by_id": None, "pause_reason": "", "pause_scope": ""}


def pause(asked: Mapping[str, Any], *, prior: str) -> Change:
    """From ``prior`` to pausing. ``asked``: who, why, and how far (the run's own columns)."""
    return record.run_moves(
        {**asked, "state": RunState.PAUSING}, prior=[prior], times={"pause_asked_at": 0, "wake_at": 0}
    )


def resume(run: Run) -> list[Change]:
    """From pausing or paused back to waiting, due at once: timers that came due meanwhile are looked at now.

    Its gate says that the checks come first: until they have passed, also what was ready before is not sent.
    """
    back = {
        **_NONE,
        "state": RunState.WAITING,
        "waiting_on": run.waiting_on or WaitingOn.TIMER,
        "gate": [reason("resumed")],
    }
    return [record.run_moves(back, prior=[run.state], times={"wake_at": 0, "resumed_at": 0})]


def lifted_since(run: Mapping[str, Any], at: datetime) -> bool:
    """Whether a pause of ``run`` (its row) was lifted after ``at``: then it was away (invariant 13)."""
    resumed = run["resumed_at"]
    if isinstance(resumed, str):
        resumed = datetime.fromisoformat(resumed)
    return resumed is not None and resumed > at
