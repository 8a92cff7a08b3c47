"""Workers in one process: each call is a greenlet, stopped at the failpoints, and only one of them ever runs.

A worker may be stopped and go on, be asleep (its heart does not beat, so that its lease falls to another) and go on
all the same, or die where it stands: nothing of it is cleaned up, as after SIGKILL. All share one connection, since
no worker is ever stopped inside a transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.db import connection
from greenlet import getcurrent, greenlet

from recovery.engine.workers import Me
from recovery.simulation import stage
from runs.models import Epoch
from runs.models.base import new_id
from runs.record import DEAD_AFTER

AT_THE_WIRE: Final = "send.before"
"""Here the last check is passed and the bytes are about to leave. A pause in this place is what no check of ours can
see; the promise is that it is short, so no time passes over a worker that stands here (faults, row 25)."""


class Killed(BaseException):
    """The process died here. No ``except Exception`` sees it."""


@dataclass
class Call:
    """What a worker is doing. ``subject``: the run or effect; ``stands``: the point at which it was stopped."""

    task: str
    subject: UUID
    greenlet: Any
    stands: str = ""
    since: float = 0.0
    ended: str = ""
    error: BaseException | None = None


@dataclass
class Worker:
    """One process: its identity, its heart, and its call if it has one."""

    name: str
    me: Me
    call: Call | None = None
    asleep: bool = False
    silent_for: float = 0.0


@dataclass
class Bodies:
    """All workers of a seed. ``passed``: the seed's seconds.

    ``at``: decides what happens to the call that passes a point (``go``, ``stop``, ``sleep``, ``die``, or an exception
    to raise).
    """

    at: Callable[[str], str | Exception]
    passed: Callable[[], float]
    workers: list[Worker] = field(default_factory=list)
    silent: dict[UUID, float] = field(default_factory=dict)
    now: Worker | None = None
    main: Any = field(default_factory=getcurrent)
    epoch: int = field(default=0)

    def __post_init__(self) -> None:
        self.epoch = Epoch.objects.order_by("-id").values_list("id", flat=True)[0]

    def hire(self, name: str) -> Worker:
        """A new worker, alive."""
        worker = Worker(name, self._born(name))
        self.workers.append(worker)
        return worker

    def _born(self, name: str) -> Me:
        me = Me(new_id(), "advance", self.epoch)
        stage.join(me.id, name)
        return me

    # As the engine asks (recovery.engine.workers.Cast)

    def me(self, pool: str) -> Me:
        """The worker at work; whoever is nobody's worker (the sweep, a person) is the first."""
        del pool
        return (self.now or self.workers[0]).me

    def rename(self) -> None:
        """The worker at work goes on under a new name; the old one falls silent."""
        worker = self.now or self.workers[0]
        self.silent[worker.me.id] = 0.0
        worker.me = self._born(worker.name)

    # Calls

    def start(self, worker: Worker, task: str, subject: UUID, work: Callable[[], object]) -> Call:
        """``worker`` begins ``work`` and goes on until it is stopped or ends."""

        def body() -> None:
            try:
                call.ended = str(work())
            except Killed:
                call.ended = "died"
            except Exception as error:
                call.ended, call.error = f"raised {type(error).__name__}", error

        call = worker.call = Call(task, subject, greenlet(body, self.main))
        return self._run(worker, call)

    def go_on(self, worker: Worker) -> Call:
        """The stopped call of ``worker`` goes on from where it was; who slept is heard again."""
        assert worker.call is not None
        if worker.asleep:
            worker.asleep, worker.silent_for = False, 0.0
            stage.heard(worker.me.id, True)
        return self._run(worker, worker.call)

    def kill(self, worker: Worker) -> None:
        """The process dies where it stands; another one is started in its place."""
        if worker.call is not None:
            worker.call.greenlet.throw(Killed)
        self._buried(worker)

    def _buried(self, worker: Worker) -> None:
        self.silent[worker.me.id] = worker.silent_for
        worker.call, worker.asleep, worker.silent_for = None, False, 0.0
        worker.me = self._born(worker.name)

    def _run(self, worker: Worker, call: Call) -> Call:
        self.now, call.stands = worker, ""
        try:
            call.greenlet.switch()
        finally:
            self.now = None
        if call.greenlet.dead:
            if call.ended == "died":
                self._buried(worker)
            worker.call = None
        return call

    def point(self, name: str) -> None:
        """Passed by the engine at each failpoint: what the seed says happens here."""
        worker = self.now
        if worker is None or worker.call is None or connection.in_atomic_block:
            return
        fate = self.at(name)
        if isinstance(fate, Exception):
            raise fate
        if fate == "die":
            raise Killed
        if fate == "sleep" and name != AT_THE_WIRE:
            worker.asleep = True
        if fate in ("stop", "sleep"):
            worker.call.stands, worker.call.since = name, self.passed()
            self.main.switch()
            self.now = worker

    # Time

    def clear_the_wire(self, within: float = 0.0) -> list[Call]:
        """Whoever is about to send, and has stood there for longer than ``within`` seconds, does so."""
        went = []
        for worker in self.workers:
            while worker.call is not None and worker.call.stands == AT_THE_WIRE:
                if self.passed() - worker.call.since < within:
                    break
                went.append(self.go_on(worker))
        return went

    def grow_silent(self, seconds: float) -> None:
        """The same time passes without a heartbeat of those who sleep or are gone."""
        for worker in self.workers:
            if worker.asleep:
                worker.silent_for += seconds
                if worker.silent_for > DEAD_AFTER:
                    stage.heard(worker.me.id, False)
        for id in list(self.silent):
            self.silent[id] += seconds
            if self.silent[id] > DEAD_AFTER:
                stage.heard(id, False)
                del self.silent[id]

    def bury_all(self) -> None:
        """The host says at once which processes are gone (as the sweep sees of its own host)."""
        for id in self.silent:
            stage.heard(id, False)
        self.silent.clear()

    @property
    def idle(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.call is None]

    @property
    def stopped(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.call is not None]
