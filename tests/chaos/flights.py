"""Many long calls at once: the sweep must not notice. Its lag: runs accepted without a doorbell, found by it alone."""

from __future__ import annotations

import time
from uuid import UUID

from recovery import bells
from recovery.drills import judge as oracle
from recovery.sandbox.client import SandboxClient
from runs import doorbells
from tests.chaos import traffic
from tests.stack import Stack

EVERY = 0.23
"""Seconds between two samples: no multiple of the sweep's own second."""


def run(stack: Stack, *, effects: int, seconds: float) -> oracle.Verdict:
    """``effects`` calls of ``seconds`` each in flight; meanwhile runs that only the sweep can find."""
    from runs.models import Capacity, Event, Run
    from runs.states import EventKind

    sandbox = SandboxClient(stack.settings["RECOURSE_SANDBOX_URL"])
    Capacity.objects.filter(name="payments").update(rate=None, max_in_flight=effects)
    sandbox.dial("payments", reply="slow", delay=seconds)
    ids = [traffic.accept("flight", long=True) for _ in range(effects)]
    until = time.monotonic() + 120
    while Capacity.objects.get(name="payments").in_flight < effects:
        if time.monotonic() > until:
            raise SystemExit("they are not all in flight")
        time.sleep(0.1)
    print(f"{effects} calls are in flight, {seconds:.0f} s each", flush=True)
    doorbells.unregister(bells.ring)
    Capacity.objects.filter(name="notices").update(max_in_flight=100)
    alone: list[UUID] = []
    while Capacity.objects.get(name="payments").in_flight >= effects / 2 and len(alone) < 1000:
        alone.append(_notice())
        time.sleep(EVERY)
    doorbells.register(bells.ring)
    oracle.wait_until_settled([*ids, *alone], 240)
    accepted = dict(Run.objects.filter(pk__in=alone).values_list("pk", "accepted_at"))
    leased = Event.objects.filter(run_id__in=alone, kind=EventKind.RUN_LEASED).order_by("-seq")
    found = dict(leased.values_list("run_id", "at"))
    lags = [(found[id] - accepted[id]).total_seconds() for id in alone if id in found]
    verdict = oracle.judge([*ids, *alone], sandbox)
    p99 = traffic.percentile(lags, 0.99)
    print(
        f"{len(lags)} runs that only the sweep could find: from accepted to leased"
        f" p50 {traffic.percentile(lags, 0.5):.2f} s, p95 {traffic.percentile(lags, 0.95):.2f} s, p99 {p99:.2f} s"
    )
    if len(lags) < len(alone):
        verdict.wrong.append(f"{len(alone) - len(lags)} runs were never found")
    if p99 >= 2:
        verdict.wrong.append(f"the sweep's lag is {p99:.2f} s")
    return verdict


def _notice() -> UUID:
    import uuid

    from recovery.actions import runs as actions
    from runs.models import Person, Workspace
    from runs.record import Act

    workspace = Workspace.objects.get(slug="acme-pay")
    person = Person.objects.get(email="oncall-a@acme.example")
    data = {"to": f"desk-{uuid.uuid4().hex[:8]}", "text": "Chaos"}
    return actions.accept(workspace, "notices.send", data, actor=person, act=Act(uuid.uuid4(), "chaos")).run
