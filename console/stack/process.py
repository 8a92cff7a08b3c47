"""One process of the stack: how it starts, how it ends."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from console.stack.errors import StackError

LOG_MOST = 64 * 1024 * 1024
"""Bytes of a log from which on it becomes ``<name>.1``; the one before that is dropped."""


@dataclass
class Part:
    """A process that stays. `grace`: how many seconds it has to end by `stop_signal` before it is killed."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    folder: Path
    stop_signal: signal.Signals = signal.SIGTERM
    orphan_signal: signal.Signals = signal.SIGKILL
    grace: float = 4.0
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Start it in a process group of its own: a Ctrl-C at the terminal reaches only the supervisor."""
        with self.log.open("ab") as log:
            log.write(f"--- {time.strftime('%Y-%m-%dT%H:%M:%S%z')} start\n".encode())
            log.flush()
            try:
                self.process = subprocess.Popen(
                    [*dies_with_parent(self.orphan_signal), *self.command],
                    env=dict(self.environment),
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise StackError(f"{self.name} cannot be started: {error}") from error

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def ended(self) -> int | None:
        """Its exit code if it ended, negative for a signal; None while it runs or before it started."""
        return self.process.poll() if self.process else None

    def ask_to_end(self) -> None:
        """Send the stop signal to the process itself; it passes the end on to its children."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(self.stop_signal)

    def kill(self) -> None:
        """Kill what is left of it and of its children."""
        if self.process is None:
            return
        with suppress(ProcessLookupError):  # nothing is left of the group, which is what was wanted
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def trim_log(self) -> None:
        """Set a log aside that has grown too long. The process goes on in the same file: it opened it for appending."""
        if self.log.exists() and self.log.stat().st_size >= LOG_MOST:
            shutil.copyfile(self.log, self.log.with_name(f"{self.log.name}.1"))
            os.truncate(self.log, 0)

    def last_words(self, lines: int = 12) -> str:
        """The end of its log, for the person who has to know why it ended."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - 16_384))
            tail = file.read().decode(errors="replace").splitlines()
        return "\n".join(f"    {line}" for line in tail[-lines:])


def dies_with_parent(number: signal.Signals) -> tuple[str, ...]:
    """A command prefix that lets the kernel send `number` when the supervisor is gone, however it went.

    Linux only and by `setpriv` (util-linux); elsewhere a killed supervisor leaves its parts behind.
    The signal follows the thread that started the process: start parts from the main thread only.
    """
    if sys.platform != "linux" or shutil.which("setpriv") is None:
        return ()
    return ("setpriv", "--pdeathsig", number.name.removeprefix("SIG"), "--")


def end_all(parts: list[Part], seconds: float) -> None:
    """End parts together: ask each, wait up to its grace and `seconds`, kill what is left of the groups."""
    for part in parts:
        part.ask_to_end()
    began = time.monotonic()
    waiting = list(parts)
    while waiting:
        past = time.monotonic() - began
        waiting = [part for part in waiting if _still_there(part) and past < min(seconds, part.grace)]
        time.sleep(0.02 if waiting else 0)
    for part in parts:
        part.kill()


def wait_until(ready: Callable[[], bool], part: Part, seconds: float, look: Callable[[], None]) -> None:
    """Wait until `ready()`, calling `look` meanwhile, which may raise to give the wait up.

    Raises StackError with the log's end when the part dies before, or the time is over.
    """
    until = time.monotonic() + seconds
    while not ready():
        look()
        code = part.ended()
        if code is not None:
            raise StackError(f"{part.name} {how_it_ended(code)} while starting:\n{part.last_words()}")
        if time.monotonic() > until:
            raise StackError(f"{part.name} is not ready after {seconds:.0f} s:\n{part.last_words()}")
        time.sleep(0.02)


def how_it_ended(code: int) -> str:
    """In words: "ended with code 1", "was ended by SIGKILL"."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def _still_there(part: Part) -> bool:
    return part.process is not None and part.process.poll() is None
