"""Calling an author's step: a pure function, in a thread of its own, so that a slow one holds nothing back."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from datetime import datetime
from typing import Any
from uuid import UUID

from recovery import failpoints
from recovery.contract import Transition
from recovery.contract.runs import RunType, StepRun
from recovery.engine.memory import Memory

SLOW_AFTER = 1.0
"""Seconds after which what is already known is committed without waiting for the step."""


class StepRaised(Exception):
    """A step raised, returned nonsense, or left data that cannot be stored. ``evidence`` has the traceback."""

    def __init__(self, step: str, code: str, evidence: str, path: str = "") -> None:
        super().__init__(f"step {step!r}: {evidence.strip().splitlines()[-1] if evidence.strip() else code}")
        self.step = step
        self.code = code
        self.evidence = evidence
        self.path = path


_threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="step")


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

    ``when_slow`` is called once if the step takes longer than a second; the step goes on meanwhile.
    Raises StepRaised.
    """
    failpoints.hit("advance.before_step")
    future = _threads.submit(_call, run_type, run, memory, step, given, now)
    try:
        result = _wait(future, when_slow)
    except StepRaised:
        raise
    failpoints.hit("advance.after_step")
    return result


def _wait(
    future: Future[tuple[Transition, dict[str, Any]]], when_slow: Callable[[], None] | None
) -> tuple[Transition, dict[str, Any]]:
    if when_slow is None:
        return future.result()
    try:
        return future.result(timeout=SLOW_AFTER)
    except StillRunning:
        if future.done():
            raise
        when_slow()
        return future.result()


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
        )
        transition = run_type.call(step, seen, given)
    except Exception as error:
        raise StepRaised(step, "step_raised", "".join(traceback.format_exception(error))) from error
    try:
        return transition, run_type.dump(seen.data)
    except Exception as error:
        path = str(getattr(error, "path", ""))
        raise StepRaised(step, "data_unserialisable", "".join(traceback.format_exception(error)), path) from error
