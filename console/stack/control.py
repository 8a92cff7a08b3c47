"""A running stack seen from outside: which process is which, and how to take a part away for a while.

Drills and fault tests kill parts. A part that is held is not started again until the hold is lifted, and its
end does not count as a failure. All of it is files below `run/`, so that it needs nothing that could be down.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from console.stack.errors import StackError
from console.stack.layout import Layout, write_private


def record_pids(layout: Layout, pids: dict[str, int]) -> None:
    """Written by the supervisor at each start of a part."""
    write_private(_pids(layout), json.dumps(pids) + "\n")


def pid(data: str | os.PathLike[str], part: str) -> int:
    """The process id of a part. Raises StackError when the stack does not run or has no such part."""
    path = _pids(Layout.at(data))
    known: dict[str, int] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if part not in known:
        raise StackError(f"No part named {part} runs in {data}.")
    return known[part]


def is_held(layout: Layout, part: str) -> bool:
    return _hold(layout, part).exists()


def release_all(layout: Layout) -> None:
    """Forget what a killed drill left behind, holds and armed failpoints; at the start of the stack."""
    for path in (*layout.run.glob("hold-*"), *layout.drills.glob("*")):
        path.unlink()


@contextmanager
def held(
    data: str | os.PathLike[str], part: str, number: signal.Signals = signal.SIGKILL, *, seconds: float = 20
) -> Iterator[None]:
    """End a part by `number` and keep it away while the block runs.

    Leaves the block when another process has taken its place. Raises StackError when it does not end, or does
    not come back, within `seconds`.
    """
    layout = Layout.at(data)
    before = pid(data, part)
    hold = _hold(layout, part)
    hold.touch(mode=0o600)
    try:
        os.kill(before, number)
        _wait(lambda: not _runs(before), f"{part} did not end after {number.name}", seconds)
        yield
    finally:
        hold.unlink(missing_ok=True)
    _wait(lambda: pid(data, part) != before, f"{part} did not come back", seconds)


def restart(data: str | os.PathLike[str], part: str, number: signal.Signals = signal.SIGKILL) -> None:
    """End a part and wait until its successor has been started, without its counting as a failure."""
    with held(data, part, number):
        pass


def _pids(layout: Layout) -> Path:
    return layout.run / "parts.json"


def _hold(layout: Layout, part: str) -> Path:
    return layout.run / f"hold-{part}"


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _wait(done: Callable[[], bool], complaint: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            raise StackError(f"{complaint} within {seconds:.0f} s.")
        time.sleep(0.02)
