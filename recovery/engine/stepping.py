"""Calling an author's step: a pure function. One that is slow must not hold back what is already known."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections

from recovery import failpoints
from recovery.contract import Compensate, Compute, Perform, Start, Transition, Wait
from recovery.contract.errors import UnknownSignal, UnknownStep
from recovery.contract.runs import RunType, StepRun
from recovery.engine.memory import Memory

SLOW_AFTER = 1.0
"""Seconds after which what is already known is committed without waiting for the step."""


class StepRaised(Exception):
    """A step raised, returned nonsense, or left data that cannot be stored. ``evidence`` has the traceback."""

    def __init__(self, step: str, code: str, evidence: str, path: str = "") -> None:
        last = evidence.strip().splitlines()[-1] if evidence.strip() else code
        super().__init__(f"step {step!r}: {last}")
        self.step = step
        self.code = code
        self.evidence = evidence
        self.path = path


class _Watch:
    """Calls something from a thread of its own when a step takes longer than SLOW_AFTER.

    The thread looks four times a second: arming it costs a step nothing. Steps run one at a time in a process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._job: tuple[float, Callable[[], None]] | None = None
        self._failed: Exception | None = None

    @contextmanager
    def over(self, when_slow: Callable[[], None] | None) -> Iterator[None]:
        """Watch the block; what ``when_slow`` raised is raised at its end."""
        if when_slow is None:
            yield
            return
        if self._thread is None or not self._thread.is_alive():  # also after a fork
            self._thread = threading.Thread(target=self._run, name="slow-steps", daemon=True)
            self._thread.start()
        self._failed = None
        self._job = (time.monotonic() + SLOW_AFTER, when_slow)
        try:
            yield
        finally:
            with self._lock:  # a flush under way is waited for
                self._job = None
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        while True:
            time.sleep(SLOW_AFTER / 4)
            job = self._job
            if job is None or time.monotonic() < job[0]:
                continue
            with self._lock:
                if self._job is not job:
                    continue
                self._job = None
                try:
                    job[1]()
                except Exception as error:  # handed to the thread that runs the step
                    self._failed = error
                finally:
                    connections.close_all()


_watch = _Watch()


def call(
    run_type: RunType,
    run: Mapping[str, Any],
    memory: Memory,
    step: str,
    given: Any,
    *,
    now: datetime,
    when_slow: Callable[[], None] | None = None,
) -> tuple[Transition, dict[str, Any]]:
    """Call ``step`` and return its transition and the data it left, as JSON values.

    ``when_slow`` is called once, from another thread, if the step takes longer than a second; the step goes on
    meanwhile. Raises StepRaised, and what ``when_slow`` raised.
    """
    failpoints.hit("advance.before_step")
    with _watch.over(when_slow):
        result = _call(run_type, run, memory, step, given, now)
    failpoints.hit("advance.after_step")
    return result


def _call(
    run_type: RunType, run: Mapping[str, Any], memory: Memory, step: str, given: Any, now: datetime
) -> tuple[Transition, dict[str, Any]]:
    # Anything an author's code raises quarantines the run with the traceback; nothing of it may end this worker.
    try:
        deadline = run["deadline"]
        seen = StepRun(
            id=UUID(str(run["id"])),
            data=run_type.load(memory.data),
            now=now,
            deadline=datetime.fromisoformat(deadline) if isinstance(deadline, str) else deadline,
            principal=run["principal"],
            goal=run["goal"],
            config=run["config"],
            context=memory.context,
        )
        transition = run_type.call(step, seen, given)
        _require_declared(run_type, transition)
    except Exception as error:
        raise StepRaised(step, "step_raised", "".join(traceback.format_exception(error))) from error
    try:
        return transition, run_type.dump(seen.data)
    except Exception as error:
        path = str(getattr(error, "path", ""))
        raise StepRaised(step, "data_unserialisable", "".join(traceback.format_exception(error)), path) from error


def _require_declared(run_type: RunType, transition: Transition) -> None:
    """Refuse a transition that could only end in a standstill: an unknown next step, a signal nobody may send.

    Before anything of it is carried out: a refund whose next step does not exist must not be sent. Raises UnknownStep,
    UnknownSignal.
    """
    named: list[str] = []
    signals: list[str] = []
    if isinstance(transition, Perform):
        named = [transition.then, *transition.on.values()]
        signals = list(transition.on)
    elif isinstance(transition, Compute):
        named = [transition.then]
    elif isinstance(transition, Wait):
        named = [transition.then]
        signals = [transition.event] if transition.event is not None else []
    elif isinstance(transition, Start):
        named = [transition.then]
    elif isinstance(transition, Compensate):
        named = [] if transition.then is None else [transition.then]
    for step in named:
        if step not in run_type.steps:
            raise UnknownStep(f"{run_type.name} v{run_type.version} has no step {step!r}", step=step)
    for signal in signals:
        if signal not in run_type.contract.ownership.signals:
            raise UnknownSignal(f"{run_type.name} v{run_type.version} declares no signal {signal!r}", signal=signal)
