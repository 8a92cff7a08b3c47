"""Watches the parts: starts again what dies, gives up when that does not help, ends everything together."""

import signal
import time
from collections import deque
from collections.abc import Callable
from types import FrameType

from console.stack import control
from console.stack.errors import StackError
from console.stack.layout import Layout
from console.stack.process import Part, end_all, how_it_ended

DEATHS = 3  # more than this many in WINDOW seconds end everything
WINDOW = 60.0
PAUSE = 0.05  # seconds between two looks
LOGS_EVERY = 30.0  # seconds between two looks at how long the logs are


class Stopped(Exception):
    """Someone asked for the end: Ctrl-C, SIGTERM, or a terminal that went away."""


class Supervisor:
    """Parts in the order they were started; ends them in the opposite order, our own ones before the servers.

    Every method is called from the main thread: signals and the parent-death signal both depend on it.
    """

    def __init__(self, layout: Layout, say: Callable[[str], None]) -> None:
        self.layout = layout
        self.say = say
        self.parts: list[Part] = []
        self._servers: list[Part] = []
        self._deaths: dict[str, deque[float]] = {}
        self._waiting: dict[str, float] = {}
        self._end_asked = False
        self._logs_at = 0.0

    def listen(self) -> None:
        """Take Ctrl-C, SIGTERM and SIGHUP as the wish to end; the next look at the parts raises Stopped."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._asked)

    def adopt(self, parts: list[Part]) -> None:
        """Watch servers that already run; they are the last to end."""
        self._servers += parts
        self.parts += parts
        self._record()

    def start(self, part: Part) -> None:
        """Start a part of ours and watch it from now on."""
        self.parts.append(part)
        part.start()
        self._record()

    def look(self) -> None:
        """Look at each part once. Raises Stopped or, when one keeps dying, StackError with its last lines."""
        if self._end_asked:
            raise Stopped
        if time.monotonic() >= self._logs_at:
            self._logs_at = time.monotonic() + LOGS_EVERY
            for part in self.parts:
                part.trim_log()
        for part in self.parts:
            code = part.ended()
            if code is None:
                continue
            if part.name not in self._waiting:
                part.kill()  # children that outlive it would go on in its name
                self._note_end(part, code)
            if control.is_held(self.layout, part.name) or time.monotonic() < self._waiting[part.name]:
                continue
            del self._waiting[part.name]
            part.start()
            self._record()
            self.say(f"{part.name} is started again.")

    def watch(self, until: Callable[[], bool] = lambda: False, *, seconds: float | None = None) -> bool:
        """Look again and again until `until()` is true; False when `seconds` are over before."""
        end = None if seconds is None else time.monotonic() + seconds
        while not until():
            self.look()
            if end is not None and time.monotonic() > end:
                return False
            time.sleep(PAUSE)
        return True

    def run(self, step: Part, *, seconds: float = 600) -> None:
        """Run a process that ends by itself, watching the others. StackError when it fails or is late."""
        step.start()
        try:
            if not self.watch(lambda: step.ended() is not None, seconds=seconds):
                raise StackError(f"{step.name} is not done after {seconds:.0f} s:\n{step.last_words()}")
        finally:
            if step.ended() is None:
                end_all([step], seconds=1)
        code = step.ended()
        if code:
            raise StackError(f"{step.name} {how_it_ended(code)}:\n{step.last_words(lines=30)}")

    def stop(self) -> None:
        """End everything within about 8 s: our own processes first, then the servers they use."""
        ours = [part for part in self.parts if part not in self._servers]
        end_all(ours, seconds=4)
        end_all(self._servers, seconds=3.5)
        self.parts, self._servers = [], []

    def _note_end(self, part: Part, code: int) -> None:
        now = time.monotonic()
        if control.is_held(self.layout, part.name):
            self._waiting[part.name] = now
            self.say(f"{part.name} {how_it_ended(code)}, as asked; kept away until the hold is lifted.")
            return
        deaths = self._deaths.setdefault(part.name, deque())
        deaths.append(now)
        while deaths[0] < now - WINDOW:
            deaths.popleft()
        if len(deaths) > DEATHS:
            raise StackError(
                f"{part.name} {how_it_ended(code)}, {len(deaths)} times within a minute; giving up."
                f" Its last lines ({part.log}):\n{part.last_words()}"
            )
        wait = 0.5 * (len(deaths) - 1)  # at once the first time, then with patience
        self._waiting[part.name] = now + wait
        self.say(f"{part.name} {how_it_ended(code)}; its log is {part.log}.")

    def _record(self) -> None:
        control.record_pids(self.layout, {part.name: part.pid for part in self.parts if part.pid is not None})

    def _asked(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._end_asked = True
