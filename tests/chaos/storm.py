"""Everything at once for a while: PostgreSQL restarted, workers killed, the broker flushed, connections cut and used
up, the downstream losing answers. Then quiet, and the judgement: accepted = ended + visibly waiting, nothing twice,
nothing lost.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from uuid import UUID

from recovery.drills import judge as oracle
from recovery.sandbox.client import SandboxClient
from runs.models import Attempt, Event, Run
from tests.chaos import trouble
from tests.chaos.outage import Client, token
from tests.stack import Stack

CLIENTS = 2
PAUSE = 0.5
"""Seconds between two runs of one client: the storm is about faults, not about load."""


def run(stack: Stack, *, seconds: float, seed: int) -> oracle.Verdict:
    """Let the storm blow for ``seconds``; print what was done and how long recovering took, and judge."""
    sandbox = SandboxClient(stack.settings["RECOURSE_SANDBOX_URL"])
    secret = token(stack)
    clients = [Client(stack.address, secret, seed + n, pause=PAUSE) for n in range(CLIENTS)]
    troubles = trouble.all(stack, sandbox, seed)
    for thread in [*clients, *troubles]:
        thread.start()
    began = told = time.monotonic()
    while time.monotonic() - began < seconds:
        time.sleep(1)
        if stack.process.poll() is not None:
            raise SystemExit(f"the stack gave up:\n{stack.said()[-3000:]}")
        if time.monotonic() - told >= 30:
            told = time.monotonic()
            done = Counter({t.name: t.times for t in troubles})
            print(f"{told - began:5.0f} s  {sum(len(c.accepted) for c in clients)} accepted  {dict(done)}", flush=True)
    for one in troubles:
        one.stop()
    calm = time.monotonic()
    sandbox.reset()
    time.sleep(5)  # clients go on a while after the storm: accepting must come back by itself
    for client in clients:
        client.stopping.set()
    for client in clients:
        client.join(timeout=30)
    quiet = _settled(calm)
    ids = sorted({id for client in clients for id in client.accepted} | _all())
    verdict = oracle.judge(ids, sandbox)
    verdict.wrong += [line for one in troubles for line in one.wrong]
    _tell(troubles, clients, seconds, seed, quiet)
    _count(verdict, {id for client in clients for id in client.accepted})
    return verdict


def _all() -> set[UUID]:
    """Every run of the record: also one whose 202 was lost on its way must be whole."""
    return set(Run.objects.values_list("pk", flat=True))


def _settled(calm: float) -> float:
    """Seconds from the end of the storm until nothing moved by itself any more; at most 300."""
    oracle.wait_until_settled(sorted(_all()), 300)
    return time.monotonic() - calm


def _tell(troubles: list[trouble.Trouble], clients: list[Client], seconds: float, seed: int, quiet: float) -> None:
    print(f"storm of {seconds:.0f} s, seed {seed}")
    for one in troubles:
        print(f"{one.times:6d} x {one.name}")
    refused = sum(c.refused for c in clients)
    print(f"{refused:6d} requests not accepted at first, each asked again under its key")
    for name, found in trouble.recoveries(troubles).items():
        middle, longest = statistics.median(found), max(found)
        print(f"recovery after {name}: median {middle:.1f} s, longest {longest:.1f} s, of {len(found)}")
    print(f"after the storm everything had ended or asked a person within {quiet:.0f} s")


def _count(verdict: oracle.Verdict, accepted: set[UUID]) -> None:
    """Beside where runs came to: what was lost or twice, and whether the faults bit at all."""
    known = _all()
    verdict.counts["answered 202"] = len(accepted)
    verdict.counts["lost"] = len(accepted - known)
    verdict.counts["duplicates"] = sum("took effect" in line for line in verdict.wrong)
    verdict.counts["attempts lost or late"] = Attempt.objects.filter(state__in=["lost", "late"]).count()
    verdict.counts["answers kept as evidence only"] = Event.objects.filter(kind="evidence.received").count()
