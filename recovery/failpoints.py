"""Named points where a test or a drill may break the engine. A no-op unless armed.

A point lies at a border: before and after a commit, a call, a message. What may happen there:

- ``kill``: SIGKILL to this process.
- ``raise``: an error of our own (:class:`Failpoint`); what lies behind the point does not happen.
- ``do_then_raise``: what lies behind the point happens, then its answer is lost: the error that such a border gives.
- ``stop(20)``: SIGSTOP to this process, continued after so many seconds; ``stop`` alone waits for a SIGCONT.
- ``sleep(2)``: this thread sleeps.
- ``wait(/path/to/a/fifo)``: this thread waits until somebody writes into the named pipe.

Armed by ``RECOURSE_FAILPOINTS`` (``name=action``, or ``name=action:probability``, separated by commas) when a process
starts, by :func:`arm` inside one, or by a drill: where ``RECOURSE_DRILLS`` names a folder, a file there called like a
point holds the action, and whichever process removes the file does it, once.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.db import OperationalError, connection
from kombu.exceptions import OperationalError as BrokerError

POINTS: Final = frozenset(
    {
        # accepting, and every other thing that people do
        "accept.before_write",
        "accept.before_commit",  # written, and the transaction still open
        "accept.after_commit",
        "act.before_write",
        "act.before_commit",
        "act.after_commit",
        # advancing
        "advance.before_lease",
        "advance.leased",  # the try is counted, nothing else happened
        "checkpoint.before_load",
        "checkpoint.after_load",
        "advance.after_checks",
        "advance.before_step",
        "advance.after_step",
        "checkpoint.before_seal",
        "advance.before_commit",
        "advance.after_commit",  # the first one of an effect: its intent is committed, not a byte has left
        "advance.before_flush",
        "advance.after_flush",
        "advance.before_outcome",  # inline: the answer is in memory only
        "cancel.before_settle",
        "pause.before_settle",
        "migrate.before_commit",  # a run is moved to another version of its type, or its data to another schema
        "migrate.after_commit",
        "ask.before_commit",  # the nine checks ask a person whether it goes on
        "ask.after_commit",
        "quarantine.before_commit",
        "quarantine.after_commit",
        "release.before_commit",  # an advance broke; the run is given back
        "release.after_commit",
        # parents and children
        "child.before_write",  # inside the transaction of its parent's wait, which is written
        "child.before_commit",  # both written, and the transaction still open
        "child.after_commit",
        "tell.before_commit",  # a cancellation or a pause passes down to a child
        "tell.after_commit",
        "wake.before_commit",  # a child's end rings its parent
        "wake.after_commit",
        # sending
        "send.before_claim",
        "send.after_claim",
        "send.before",  # last moment before the bytes leave
        "send.after",  # the other side may have done it, nothing is recorded
        "late.before_commit",  # an answer whose attempt was given up meanwhile
        "late.after_commit",
        "dispatch.before_claim",
        "dispatch.after_claim",
        "dispatch.before_outcome",
        "dispatch.after_outcome",
        "dispatch.before_hold",  # it may not be sent, which is recorded
        "dispatch.after_hold",
        # computations
        "call.before_claim",  # handed: nobody has taken it
        "call.after_claim",
        "call.committed",  # a computation's budget is reserved, nothing has left
        "call.answered",  # its answer is in memory only
        "call.before_outcome",
        "call.after_outcome",
        # traffic
        "callback.before_commit",  # a genuine message of the other side is matched or set aside
        "callback.after_commit",
        "breaker.before_commit",  # written in every chain, and the transaction still open
        "breaker.after_commit",
        "waiting.before_commit",  # people are told that work waits for what is not called
        "waiting.after_commit",
        "drain.before_commit",
        "drain.after_commit",
        # finding out
        "reconcile.before_ask",
        "reconcile.after_ask",
        "reconcile.before_commit",
        "compensate.begun",  # the run is compensating and its plan begun, nothing else of the plan exists
        "mend.before_look",
        "mend.before_turn",  # an item's turn has come, nothing of it is committed
        "mend.before_verify",
        "plan.before_accept",  # the plan is begun, the run that carries it out is not accepted
        "plan.after_accept",
        "plan.before_commit",  # a compensation worked, the original is not shown as mended
        "plan.after_commit",
        "reconcile.after_commit",
        "reconcile.before_settle",  # what follows needs no call
        "reconcile.after_settle",
        "lose.before_commit",
        "lose.after_commit",
        # after a restore
        "epoch.before_write",  # the record is found to be an older one
        "epoch.before_commit",  # every workspace is frozen, and the transaction still open
        "epoch.after_commit",
        "mark.before_write",  # what is kept outside of what was last seen
        "mark.after_write",
        "doubt.before_commit",  # what was out may have been tried once more
        "doubt.after_commit",
        "void.before_commit",  # a request for signatures of an earlier epoch ends
        "void.after_commit",
        "listing.before_commit",  # a page of what the other side has under our keys
        "listing.after_commit",
        "look.before_commit",  # what looked unsent was read back
        "look.after_commit",
        "swept.before_commit",
        "swept.after_commit",
        # telling people
        "notify.made",  # rows for what was opened, nobody is rung for them
        "notify.before_take",
        "notify.after_take",  # the next try is recorded, this one is not made
        "notify.before_send",
        "notify.after_send",
        "notify.before_outcome",
        "notify.after_outcome",
        # the clockwork
        "request.before_write",  # a request for signatures ran out, or nobody can meet it any more
        "request.before_commit",
        "request.after_commit",
        "sweep.before_pass",
        "sweep.before_ring",
        "sweep.after_ring",
        "sweep.after_pass",
        "link.before_commit",  # a run is woken by another run's effect
        "link.after_commit",
        "bell.before_publish",
        "bell.after_publish",
        "worker.before_enlist",
        "worker.after_enlist",
    }
)

_BEHIND: Final = {
    "accept.before_write": "accept.after_commit",
    "act.before_write": "act.after_commit",
    "request.before_write": "request.after_commit",
    "advance.before_lease": "advance.leased",
    "send.before": "send.after",
    "child.before_write": "child.before_commit",
    "epoch.before_write": "epoch.after_commit",
}
"""The point at which what lies behind a point has happened, where the names do not say it."""


_CALLS: Final = frozenset(
    {"send.before", "send.after", "reconcile.before_ask", "notify.before_send", "notify.after_send"}
)
"""Points around a call to the other side: its answer is lost as a time that is over."""


class Failpoint(Exception):
    """Raised by an armed point with action ``raise``."""


class AnswerLost(OperationalError):
    """The statement was carried out; the connection broke before its answer came (fault 7)."""


_armed: dict[str, Callable[[], None]] = {}
_drills: Path | None = None


def hit(name: str) -> None:
    """Pass the point ``name``; does what it is armed with."""
    if _armed and name in _armed:
        _armed[name]()
    if _drills is not None and os.path.exists(f"{_drills}/{name}"):
        _drill(_drills / name, name)


@contextmanager
def committing(room: str) -> Iterator[None]:
    """The two points around a commit, or a write outside that counts as one; the second only if it was carried out."""
    hit(f"{room}.before_commit")
    yield
    hit(f"{room}.after_commit")


def arm(name: str, action: str | Callable[[], None], probability: float = 1.0) -> None:
    """Arm ``name`` in this process. Raises ValueError for a name or an action that does not exist."""
    _known(name)
    does = action if callable(action) else action_of(name, action)

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


def arm_drill(folder: Path, name: str, action: str) -> None:
    """Have the first process that passes ``name`` do ``action``, once: of those that look into ``folder``.

    Raises ValueError for a name or an action that does not exist.
    """
    _known(name)
    action_of(name, action)
    draft = folder / f".{name}"
    draft.write_text(action, encoding="utf-8")
    draft.replace(folder / name)


def disarm_drill(folder: Path, name: str) -> bool:
    """Take back what :func:`arm_drill` armed. False when it was done already."""
    try:
        (folder / name).unlink()
    except FileNotFoundError:
        return False
    return True


def _drill(file: Path, name: str) -> None:
    try:
        action = file.read_text(encoding="utf-8")
        file.unlink()
    except FileNotFoundError:
        return  # nothing is armed, or another process was first
    action_of(name, action)()


def behind(name: str) -> str | None:
    """The point at which what lies behind ``name`` has happened; None where ``name`` is such a point itself."""
    after = _BEHIND.get(name, name.replace(".before_", ".after_"))
    return after if after in POINTS and after != name else None


_ACTION: Final = re.compile(r"(?P<name>[a-z_]+)(\((?P<given>[^()]*)\))?")


def action_of(name: str, action: str) -> Callable[[], None]:
    """What ``action`` does at the point ``name``. Raises ValueError for one that does not exist."""
    found = _ACTION.fullmatch(action)
    makes = _ACTIONS.get(found["name"]) if found else None
    if found is None or makes is None:
        raise ValueError(f"{action!r} is no action of a failpoint: {', '.join(sorted(_ACTIONS))}")
    return makes(name, found["given"] or "")


def _kill(name: str, given: str) -> Callable[[], None]:
    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    return kill


def _raise(name: str, given: str) -> Callable[[], None]:
    def fail() -> None:
        raise Failpoint(name)

    return fail


def _do_then_raise(name: str, given: str) -> Callable[[], None]:
    after = behind(name)

    def lose() -> None:
        _lose_answer(name)

    if after is None:
        return lose

    def later() -> None:
        before = _armed.get(after)

        def once() -> None:
            if before is None:
                _armed.pop(after, None)
            else:
                _armed[after] = before
                before()
            lose()

        _armed[after] = once

    return later


def _lose_answer(name: str) -> None:
    """Raise what this border gives when the other end did it and could not say so."""
    room = name.partition(".")[0]
    if room == "bell":
        raise BrokerError(f"the broker took it and fell silent ({name})")
    if name in _CALLS:
        raise TimeoutError(f"done, and no answer came ({name})")
    if not connection.in_atomic_block:
        connection.close()  # it is really gone, with whatever was prepared on it
    raise AnswerLost(f"done, and the connection broke ({name})")


def _stop(name: str, given: str) -> Callable[[], None]:
    seconds = _number(given) if given else None

    def stop() -> None:
        if seconds is not None:
            # Somebody else has to wake it: a stopped process cannot.
            command = ["sh", "-c", f"sleep {seconds}; kill -CONT {os.getpid()}"]
            subprocess.Popen(command, start_new_session=True)
        os.kill(os.getpid(), signal.SIGSTOP)

    return stop


def _sleep(name: str, given: str) -> Callable[[], None]:
    seconds = _number(given)
    return lambda: time.sleep(seconds)


def _wait(name: str, given: str) -> Callable[[], None]:
    if not given:
        raise ValueError("wait takes the path of a named pipe")

    def wait() -> None:
        with Path(given).open("rb") as pipe:  # opening waits for the other end
            pipe.read(1)

    return wait


def _number(given: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise ValueError(f"{given!r} is no number of seconds") from None


_ACTIONS: Final[dict[str, Callable[[str, str], Callable[[], None]]]] = {
    "kill": _kill,
    "raise": _raise,
    "do_then_raise": _do_then_raise,
    "stop": _stop,
    "sleep": _sleep,
    "wait": _wait,
}


def _known(name: str) -> None:
    if name not in POINTS:
        raise ValueError(f"no failpoint is called {name!r}; there are: {', '.join(sorted(POINTS))}")


def arm_from_environment() -> None:
    """Arm what ``RECOURSE_FAILPOINTS`` says, and look into ``RECOURSE_DRILLS``. Raises ValueError for nonsense."""
    global _drills
    for part in filter(None, os.environ.get("RECOURSE_FAILPOINTS", "").split(",")):
        name, _, what = part.partition("=")
        action, _, probability = what.partition(":")
        arm(name.strip(), action.strip() or "kill", float(probability or 1.0))
    folder = os.environ.get("RECOURSE_DRILLS", "")
    _drills = Path(folder) if folder else None
