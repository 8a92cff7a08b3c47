"""SIGKILL to the worker that is sending, at a random moment between send and record; Valkey flushed at times."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from datetime import timedelta
from uuid import UUID

import redis
from django.db.models.functions import Now

from console.stack import control
from recovery.drills import judge as oracle
from recovery.sandbox.client import SandboxClient
from runs.models import Attempt, Worker
from runs.states import ATTEMPT_LIVE
from tests.chaos import load
from tests.stack import Stack

SLOW = 0.25
"""Seconds that the sandbox takes to answer after it has applied: the window the kills aim at."""


def run(stack: Stack, *, times: int, seed: int) -> oracle.Verdict:
    """Kill ``times`` workers in mid-send; print and return what came of all runs."""
    rng = random.Random(seed)
    sandbox = SandboxClient(stack.settings["RECOURSE_SANDBOX_URL"])
    for provider in ("payments", "cards-eu", "mail", "notices"):
        sandbox.dial(provider, reply="slow", delay=SLOW)
    ids: list[UUID] = []
    hits: Counter[str] = Counter()
    flushed = 0
    began = time.monotonic()
    while sum(hits.values()) < times:
        while len(ids) < 8 or _unfinished(ids) < 4:
            ids.append(load.accept(rng))
        if rng.random() < 0.3:
            sandbox.dial("mail", reply="overload", retry_after=1, times=2)
        hit = _kill_one(stack, rng)
        if hit:
            hits[hit] += 1
            if sum(hits.values()) % 10 == 0:
                print(
                    f"{sum(hits.values())} kills, {len(ids)} runs, {time.monotonic() - began:.0f} s",
                    flush=True,
                )
        sandbox.dial("mail", reply="slow", delay=SLOW)
        if rng.random() < 0.2:
            with redis.Redis.from_url(stack.settings["REDIS_URL"]) as valkey:
                valkey.flushall()
            flushed += 1
    sandbox.reset()
    quiet = oracle.wait_until_settled(ids, 180)
    verdict = oracle.judge(ids, sandbox)
    print(
        f"{sum(hits.values())} workers killed in mid-send ({dict(hits)}), Valkey flushed {flushed} times, seed {seed}"
    )
    print(f"after the last kill everything had ended or asked a person within {quiet:.0f} s")
    verdict.counts["attempts lost"] = Attempt.objects.filter(run_id__in=ids, state__in=["lost", "late"]).count()
    return verdict


def _unfinished(ids: list[UUID]) -> int:
    from runs.models import Run

    return Run.objects.filter(pk__in=ids, state__in=["accepted", "running"]).count()


def _kill_one(stack: Stack, rng: random.Random) -> str:
    """Wait for a send under way, a random moment more, and kill its sender. The pool, if it was still sending."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        live = Attempt.objects.filter(state__in=list(ATTEMPT_LIVE)).order_by("?").first()
        worker = (
            Worker.objects.filter(pk=live.worker, seen_at__gt=Now() - timedelta(minutes=1)).first() if live else None
        )
        if live is not None and worker is not None and _runs(worker.pid):
            time.sleep(rng.uniform(0, SLOW))
            if not Attempt.objects.filter(pk=live.pk, state__in=list(ATTEMPT_LIVE)).exists():
                continue
            with control.held(stack.data, worker.pool):
                # The part's own process; the pool's processes die with it.
                pass
            # Killed in time only if nobody ever recorded its answer: looked at once its end is known.
            return worker.pool if _end_of(live.pk) != "answered" else ""
        time.sleep(0.01)
    return ""


def _end_of(attempt: UUID) -> str:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        state = Attempt.objects.values_list("state", flat=True).get(pk=attempt)
        if state not in ATTEMPT_LIVE:
            return state
        time.sleep(0.02)
    raise SystemExit(f"attempt {attempt} was never taken for lost")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
