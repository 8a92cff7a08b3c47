"""An outage, a backlog, and the way out of it: never above the safe rate, fresh work keeps its share, PostgreSQL
restarted in the middle. Judged by the sandbox's own clock and ledger.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import DatabaseError, connections

from console.stack import control
from recovery.drills import judge as oracle
from recovery.sandbox.client import SandboxClient
from tests.chaos import traffic
from tests.stack import Stack

FRESH_EVERY = 0.15
"""Seconds between two new runs while the backlog drains."""

DROPPED = 20
"""Calls that the outage begins with: they take effect and their answers are lost."""


class Fresh(threading.Thread):
    """New work meanwhile; an accept that the record could not take is tried again."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ids: list[UUID] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.wait(FRESH_EVERY):
            try:
                self.ids.append(traffic.accept("fresh"))
            except DatabaseError:
                connections.close_all()


def run(stack: Stack, *, effects: int, rate: float, expire: int, restart: bool) -> oracle.Verdict:
    """Let ``effects`` pile up, ``expire`` of them with a deadline that passes; drain them at ``rate``; judge."""
    from recovery.actions import dependencies, drains
    from runs.models import Capacity, Dependency, Drain, Effect

    sandbox = SandboxClient(stack.settings["RECOURSE_SANDBOX_URL"])
    Capacity.objects.filter(name="payments").update(rate=rate, max_in_flight=200)
    here = Dependency.objects.get(workspace__slug="acme-pay", name="payments")

    sandbox.dial("payments", reply="drop", times=DROPPED, readback="down")
    ids = [traffic.accept("lost") for _ in range(DROPPED)]
    _until("the lost answers", lambda: _left(Effect, ids, ["unknown"]) == DROPPED, 120)
    sandbox.dial("payments", reply="overload", retry_after=1, readback="down", times=None)
    ids += [traffic.accept("early") for _ in range(60)]
    time.sleep(3)
    dependencies.hold(here.pk, reason="outage", **traffic.act())
    print("the dependency is held", flush=True)
    soon = datetime.now(UTC) + timedelta(seconds=60)
    short = [traffic.accept("short", deadline=soon) for _ in range(expire)]
    began = time.monotonic()
    while len(ids) + expire < effects:
        ids.append(traffic.accept("backlog"))
    print(f"{effects} accepted, the last ones in {time.monotonic() - began:.0f} s", flush=True)
    backlog = [*ids, *short]
    _until("the backlog", lambda: Effect.objects.filter(run_id__in=backlog).count() == len(backlog), 300)
    time.sleep(max((soon - datetime.now(UTC)).total_seconds() - 25, 0))
    sandbox.reset("payments")
    since = datetime.now(UTC)
    started = time.monotonic()
    done = drains.start(here.pk, reason="they are back", **traffic.act())
    drain = UUID(str(done.facts["drain"]))
    print(f"drain started: {done.facts['total']} ready, {done.facts['unknown']} unknown", flush=True)
    _until("the canary", lambda: _state(Drain, drain) == "go_ahead", 240)
    print(f"canary passed after {time.monotonic() - started:.1f} s", flush=True)
    fresh = Fresh()
    fresh.start()
    going = time.monotonic()
    drains.go_ahead(drain, reason="the canary went well", **traffic.act())
    if restart:
        over = ("drained", "held", "stopped")
        half = lambda: _left(Effect, backlog, ["ready"]) < effects / 2 or _state(Drain, drain) in over  # noqa: E731
        _until("the middle", half, 900)
        print(f"in the middle the drain is {_state(Drain, drain)}", flush=True)
        with control.held(stack.data, "postgres"):
            time.sleep(1)
        print(f"PostgreSQL was restarted {time.monotonic() - going:.0f} s after the go-ahead", flush=True)
    _until("the end", lambda: _state(Drain, drain) in ("drained", "held", "stopped"), 1800)
    took = time.monotonic() - going
    fresh.stopping.set()
    fresh.join(timeout=30)
    quiet = oracle.wait_until_settled([*backlog, *fresh.ids], 600)
    print(f"every run had ended or asked a person {quiet:.0f} s after that", flush=True)
    verdict = oracle.judge([*backlog, *fresh.ids], sandbox)
    _say(sandbox, verdict, Drain.objects.get(pk=drain), since, took, rate, backlog, fresh.ids)
    return verdict


def _say(
    sandbox: SandboxClient,
    verdict: oracle.Verdict,
    drain: object,
    since: datetime,
    took: float,
    rate: float,
    backlog: list[UUID],
    fresh: list[UUID],
) -> None:
    from runs.models import Effect

    ever, _n = traffic.most_in_a_second(sandbox, "payments")
    most, sent = traffic.most_in_a_second(sandbox, "payments", since)
    print(f"{drain}, {drain.total} in its backlog, {drain.sent} sends of it, {drain.dropped} dropped")  # type: ignore[attr-defined]
    print(f"from the go-ahead to the end: {took:.1f} s; {sent} requests since the drain began")
    print(f"most in any sliding second by the sandbox's clock: {most} of {rate:.0f} (in the whole test {ever})")
    expired = list(Effect.objects.filter(run_id__in=backlog, state="expired").values_list("sent_key", flat=True))
    asked = {line["intent"] for line in sandbox.requests() if datetime.fromisoformat(line["received_at"]) >= since}
    late = [key for key in expired if key in asked]
    print(f"{len(expired)} expired, {len(late)} of them sent since the drain began")
    times = [
        (settled - asked_at).total_seconds()
        for asked_at, settled in Effect.objects.filter(run_id__in=fresh, state="succeeded").values_list(
            "requested_at", "settled_at"
        )
    ]
    print(
        f"fresh work meanwhile: {len(fresh)} accepted, {len(times)} done;"
        f" from asked to done p50 {traffic.percentile(times, 0.5):.1f} s, p95 {traffic.percentile(times, 0.95):.1f} s"
    )
    if most > rate:
        verdict.wrong.append(f"{most} calls in a second, {rate:.0f} are safe")
    verdict.wrong += [f"{key} had expired and was sent" for key in late]
    if drain.state != "drained":  # type: ignore[attr-defined]
        verdict.wrong.append(f"the drain is {drain.state}: {drain.why}")  # type: ignore[attr-defined]
    if len(times) < len(fresh) * 0.9:
        verdict.wrong.append("fresh work did not keep its share")


def _left(model: object, ids: list[UUID], states: list[str]) -> int:
    return model.objects.filter(run_id__in=ids, state__in=states).count()  # type: ignore[attr-defined, no-any-return]


def _state(model: object, id: UUID) -> str:
    return model.objects.values_list("state", flat=True).get(pk=id)  # type: ignore[attr-defined, no-any-return]


def _until(what: str, true: object, seconds: float) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            if true():  # type: ignore[operator]
                return
        except DatabaseError:
            connections.close_all()
        if time.monotonic() > until:
            raise SystemExit(f"{what} did not come within {seconds:.0f} s")
        time.sleep(0.25)
