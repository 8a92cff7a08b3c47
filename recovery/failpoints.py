"""Named points where a test or a drill may break the engine. A no-op unless armed.

Armed by ``RECOURSE_FAILPOINTS`` (``name=action[:probability]``, separated by commas) when a process starts, or by
:func:`arm` inside one. Actions: ``kill`` (SIGKILL self), ``raise``, ``stop`` (SIGSTOP self, continued by whoever armed
it). A name that is not in POINTS is refused, so that a test cannot arm what nobody hits.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from typing import Final

POINTS: Final = frozenset(
    {
        "advance.leased",  # the try is counted, nothing else happened
        "advance.before_step",
        "advance.after_step",
        "advance.before_commit",
        "advance.after_commit",  # the intent is committed, not a byte has left
        "advance.before_outcome",  # inline: the answer is in memory only
        "send.before",  # last moment before the bytes leave
        "send.after",  # the other side may have done it, nothing is recorded
        "dispatch.before_claim",
        "dispatch.after_claim",
        "dispatch.before_outcome",
        "dispatch.after_outcome",
        "call.committed",  # a computation's budget is reserved, nothing has left
        "call.answered",  # its answer is in memory only
        "reconcile.before_ask",
        "reconcile.after_ask",
        "reconcile.before_commit",
        "accept.before_commit",
        "accept.after_commit",
        "compensate.begun",  # the run is compensating and its plan begun, nothing else of the plan exists
        "mend.before_look",
        "mend.before_turn",  # an item's turn has come, nothing of it is committed
        "mend.before_verify",
        "plan.before_accept",  # the plan is begun, the run that carries it out is not accepted
        "plan.after_accept",
        "plan.before_commit",  # a compensation worked, the original is not shown as mended
        "plan.after_commit",
    }
)


class Failpoint(Exception):
    """Raised by an armed point with action ``raise``."""


_armed: dict[str, Callable[[], None]] = {}


def hit(name: str) -> None:
    """Pass the point ``name``; does what it is armed with."""
    if _armed and name in _armed:
        _armed[name]()


def arm(name: str, action: str | Callable[[], None], probability: float = 1.0) -> None:
    """Arm ``name`` in this process. Raises ValueError for a name or an action that does not exist."""
    if name not in POINTS:
        raise ValueError(f"no failpoint is called {name!r}; there are: {', '.join(sorted(POINTS))}")
    does = action if callable(action) else _action(name, action)

    def maybe() -> None:
        if random.random() < probability:
            does()

    _armed[name] = maybe


def disarm(name: str | None = None) -> None:
    """Disarm ``name``, or everything."""
    if name is None:
        _armed.clear()
    else:
        _armed.pop(name, None)


def _action(name: str, action: str) -> Callable[[], None]:
    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def stop() -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def fail() -> None:
        raise Failpoint(name)

    try:
        return {"kill": kill, "stop": stop, "raise": fail}[action]
    except KeyError:
        raise ValueError(f"{action!r} is no action of a failpoint: kill, stop, raise") from None


def arm_from_environment() -> None:
    """Arm what ``RECOURSE_FAILPOINTS`` says. Raises ValueError where it cannot be understood."""
    for part in filter(None, os.environ.get("RECOURSE_FAILPOINTS", "").split(",")):
        name, _, what = part.partition("=")
        action, _, probability = what.partition(":")
        arm(name.strip(), action.strip() or "kill", float(probability or 1.0))
