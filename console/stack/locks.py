"""One `up` a data folder."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from console.stack.errors import StackError
from console.stack.layout import Layout


@contextmanager
def held_by_this_process(layout: Layout, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the data folder's lock. Raises StackError when another living process holds it.

    The kernel drops the lock with its process, so a file that a killed `up` left behind never blocks a start.
    """
    descriptor = os.open(layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        previous = os.read(descriptor, 32).decode(errors="replace").strip()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StackError(
                f"Recourse already runs in {layout.data}: process {previous or 'unknown'} holds its lock."
                " End that one first, or choose another folder with --data."
            ) from error
        if previous:
            say(f"Took over the lock of process {previous}, which did not end in order.")
        _write(descriptor, f"{os.getpid()}\n")
        try:
            yield
        finally:
            _write(descriptor, "")
    finally:
        os.close(descriptor)


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)
