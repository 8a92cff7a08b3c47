"""The troubles of a storm: each a thread with a rhythm of its own, drawn from a seed. What they break is real."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import psycopg
import redis

from console.stack import control
from console.stack.errors import StackError
from recovery.sandbox.client import SandboxClient
from tests.stack import Stack

IDLE = 300
"""Connections that somebody opens and leaves idle; the server takes 100."""

RECOVERS = 60.0
"""Seconds after which a part that is not up again is a finding."""


class Trouble(threading.Thread):
    """Does ``once`` again and again, ``between`` seconds apart. ``recoveries``: seconds until all was healthy again."""

    def __init__(
        self, name: str, between: tuple[float, float], seed: int, once: Callable[[Trouble, random.Random], None]
    ) -> None:
        super().__init__(daemon=True, name=name)
        self.rng = random.Random(f"{name} {seed}")
        self.between, self.once = between, once
        self.times = 0
        self.recoveries: list[float] = []
        self.wrong: list[str] = []
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(self.rng.uniform(*self.between)):
            try:
                self.once(self, self.rng)
            except StackError as error:
                self.wrong.append(f"{self.name}: {error}")
            self.times += 1

    def stop(self) -> None:
        """No more; returns when what is under way is over."""
        self.over.set()
        self.join(timeout=RECOVERS + 30)


def all(stack: Stack, sandbox: SandboxClient, seed: int) -> list[Trouble]:
    """Every trouble, not started."""
    one_part_at_a_time = threading.Lock()

    def postgres(me: Trouble, rng: random.Random) -> None:
        number = rng.choice([signal.SIGINT, signal.SIGINT, signal.SIGKILL])
        began = time.time()
        with one_part_at_a_time:
            control.restart(stack.data, "postgres", number)
        me.recoveries.append(_goes_on(stack, began))

    def worker(me: Trouble, rng: random.Random) -> None:
        part = rng.choice(["advance", "advance child", "dispatch", "dispatch", "sweep"])
        began = time.time()
        with one_part_at_a_time:
            if part == "advance child":
                _kill_a_child(stack.pid("advance"), rng)
            else:
                control.restart(stack.data, part)
        me.recoveries.append(_goes_on(stack, began))

    def broker(me: Trouble, rng: random.Random) -> None:
        with suppress(redis.RedisError), redis.Redis.from_url(stack.settings["REDIS_URL"]) as valkey:
            valkey.flushall()

    def backend(me: Trouble, rng: random.Random) -> None:
        with suppress(psycopg.OperationalError), _connect(stack) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'recourse %'"
                " ORDER BY random() LIMIT 1"
            )

    def idle(me: Trouble, rng: random.Random) -> None:
        began = time.time()
        with ExitStack() as held:
            for _ in range(IDLE):
                with suppress(psycopg.OperationalError):  # the server is full: that is the trouble
                    held.callback(_connect(stack).close)
            me.over.wait(10)
        me.recoveries.append(_goes_on(stack, began))

    def downstream(me: Trouble, rng: random.Random) -> None:
        provider = rng.choice(["payments", "payments", "cards-eu", "mail", "notices"])
        reply = rng.choice(["drop", "drop", "reset", "error500", "slow", "overload", "refuse", "garbage"])
        sandbox.dial(provider, reply=reply, times=rng.randrange(1, 4), delay=0.5, retry_after=1)

    return [
        Trouble("PostgreSQL restarted", (5, 40), seed, postgres),
        Trouble("worker killed", (20, 20), seed, worker),
        Trouble("broker flushed", (60, 60), seed, broker),
        Trouble("backend terminated", (0.5, 0.5), seed, backend),
        Trouble(f"{IDLE} idle connections", (90, 120), seed, idle),
        Trouble("downstream troubled", (2, 4), seed, downstream),
    ]


def recoveries(troubles: list[Trouble]) -> dict[str, list[float]]:
    """Seconds to be healthy again, by trouble; those that measure it."""
    return {one.name: one.recoveries for one in troubles if one.recoveries}


def _connect(stack: Stack) -> psycopg.Connection:
    return psycopg.connect(stack.settings["DATABASE_URL"], autocommit=True, connect_timeout=3)


def _goes_on(stack: Stack, began: float) -> float:
    """Seconds from ``began`` (of the wall clock, which is the record's here) until /healthz says that every part is up
    and a run has completed that was accepted since. Raises StackError when that takes longer than RECOVERS.
    """
    last = "no answer"
    while time.time() - began < RECOVERS:
        try:
            answer = httpx.get(f"{stack.address}/healthz", timeout=5, trust_env=False)
            last = "no run has completed" if answer.status_code == 200 else answer.text
            if answer.status_code == 200 and _completed(stack, began):
                return time.time() - began
        except (httpx.HTTPError, psycopg.OperationalError) as error:
            last = type(error).__name__
        time.sleep(0.1)
    raise StackError(f"did not go on within {RECOVERS:.0f} s: {last}")


def _completed(stack: Stack, since: float) -> bool:
    with _connect(stack) as connection:
        found = connection.execute(
            "SELECT EXISTS (SELECT 1 FROM runs_run WHERE state = 'completed' AND accepted_at > to_timestamp(%s))",
            [since],
        )
        return bool((found.fetchone() or [False])[0])


def _kill_a_child(parent: int, rng: random.Random) -> None:
    children = list(_children(parent))
    if children:
        with suppress(ProcessLookupError):
            os.kill(rng.choice(children), signal.SIGKILL)


def _children(parent: int) -> Iterator[int]:
    """Processes whose parent is ``parent`` (proc(5): the fourth field of stat)."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent:
                yield int(path.parent.name)
