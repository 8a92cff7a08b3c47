"""A run that goes nowhere by itself: cancelling, pausing, paused. What is in flight settles, no step is called.

Needs neither checkpoint nor code: what stands still for want of them can be paused and cancelled too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from recovery.engine import cancel, letting_go, pausing
from recovery.engine.session import Session, Superseded
from runs.errors import LostRace
from runs.states import RUN_ENDED, RunState

_SETTLES: Final[dict[str, Callable[[Session], str]]] = {
    RunState.CANCELLING: cancel.settle,
    RunState.PAUSING: pausing.settle,
    RunState.PAUSED: pausing.settle,
}

STATES: Final[Sequence[str]] = tuple(_SETTLES)


def settle(s: Session) -> str:
    """One step of whatever ``s.run`` stands in. People may change their mind meanwhile: it is looked at anew."""
    for _again in range(len(_SETTLES) + 1):
        state = str(s.run["state"])
        if state in RUN_ENDED:
            return state
        if state not in _SETTLES:
            # A pause was lifted before it had settled: the next owner goes on, after the checks.
            return letting_go.give_back(s)
        try:
            return _SETTLES[state](s)
        except Superseded:
            s.reload()
    raise LostRace("the run changes faster than it can be settled", thing="run")
