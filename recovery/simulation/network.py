"""The wire between the engine and the sandbox: no socket, the sandbox's own intake, ledger and readback.

It stands in the place of the HTTP port's transport, so that the port's own code runs. What can go wrong on a wire goes
wrong here: refused, lost on the way, late, twice, an answer that never comes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import httpx

from recovery.sandbox import ledger
from recovery.sandbox.dials import Dial, Dials
from recovery.sandbox.intake import Arrival, Intake, Stopping
from recovery.sandbox.providers import PROVIDERS
from recovery.sandbox.providers.base import Provider
from recovery.sandbox.readback import read_back
from recovery.sandbox.store import Store
from recovery.sandbox.wire import Json, Reply, dump
from recovery.simulation.contracts import LAG
from recovery.simulation.moments import Moments

SENDING: Final = (
    *("refused", "vanished", "late", "twice"),
    *("drop", "reset", "error500", "garbage", "overload", "refuse", "reject", "slow"),
)
"""What can happen to a send; the names of the second line are the sandbox's own dials."""

READING: Final = ("down", "lag", "vanished")
ON_THE_WAY: Final = frozenset({"refused", "vanished", "late", "twice"})


class _Waits:
    """In the place of the sandbox's event: a wait is time that passes, and ends the call of who does not wait."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self.patience = 0.0

    def wait(self, seconds: float) -> bool:
        """True (as if the sandbox were ending) once the other side has given up."""
        self._moments.pass_by(min(seconds, self.patience))
        return seconds >= self.patience


@dataclass
class Late:
    """A request that is still on its way; it arrives by ``by`` (seconds of the seed) or never."""

    by: float
    provider: str
    arrival: Arrival


@dataclass(frozen=True)
class Message:
    """What a provider has to say by itself about something that took effect."""

    id: str
    slug: str
    body: bytes


class Network(httpx.BaseTransport):
    """``leaves(attempt, key, body, host)`` is called as the bytes leave; ``fault`` says what happens to them."""

    def __init__(
        self,
        moments: Moments,
        *,
        leaves: Callable[[UUID, str, bytes, str], None],
        fault: Callable[[str, str], str],
    ) -> None:
        self._moments = moments
        self._leaves = leaves
        self._fault = fault
        self.store = Store(Path(":memory:"))
        self.dials = Dials(self.store)
        self._waits = _Waits(moments)
        self.intake = Intake(self.store, self.dials, self._applied, self._waits)  # type: ignore[arg-type]
        self.messages: list[Message] = []
        self.on_the_way: list[Late] = []
        self.early: dict[UUID, httpx.Response | Exception] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """One request, and its answer or the error that its sender sees."""
        patience = float(round(request.extensions["timeout"].end - time.monotonic()))
        name = request.url.path.split("/")[1]
        if request.method == "GET":
            return self._read(name, request, patience)
        attempt = UUID(request.headers["Recourse-Attempt"])
        if attempt in self.early:
            ready = self.early.pop(attempt)
            if isinstance(ready, Exception):
                raise ready
            return ready
        return self.send(name, attempt, request, patience)

    def send(self, name: str, attempt: UUID, request: httpx.Request, patience: float) -> httpx.Response:
        """The bytes leave now."""
        key, body = request.headers["Idempotency-Key"], request.read()
        token = request.headers["Recourse-Token"]
        self._leaves(attempt, key, body, request.url.host)
        path = request.url.path
        arrival = Arrival(name, path, key, str(attempt), token, body, self._moments.nanoseconds() // 1_000)
        what = self._fault("send", name)
        if what == "refused":
            raise httpx.ConnectError("refused")
        if what in ("vanished", "late"):
            if what == "late":
                self.on_the_way.append(Late(self._moments.passed + patience + LAG.total_seconds() / 2, name, arrival))
            self._moments.pass_by(patience)
            raise httpx.ReadTimeout("no answer")
        if what == "twice" and PROVIDERS[name].keys:
            self._take(name, arrival, patience)
        elif what not in ON_THE_WAY and what != "ok":
            self.dials.set(name, {"reply": what, "times": 1, "delay": patience * 2})
        return self._answer(self._take(name, arrival, patience))

    def _take(self, name: str, arrival: Arrival, patience: float) -> Reply:
        self._waits.patience = patience
        try:
            return self.intake.take(PROVIDERS[name], arrival)
        except Stopping:
            raise httpx.ReadTimeout("no answer in time") from None

    def _read(self, name: str, request: httpx.Request, patience: float) -> httpx.Response:
        what = self._fault("read", name)
        if what == "vanished":
            self._moments.pass_by(patience)
            raise httpx.ReadTimeout("no answer")
        if what != "ok":
            self.dials.set(name, {"readback": what, "readback_times": 1})
        return self._answer(read_back(self.store, self.dials, PROVIDERS[name], dict(request.url.params)))

    def _answer(self, reply: Reply) -> httpx.Response:
        if reply.way == "drop":
            raise httpx.RemoteProtocolError("closed without an answer")
        if reply.way == "reset":
            raise httpx.ReadError("reset")
        return httpx.Response(reply.status, headers=dict(reply.headers), content=reply.body)

    def _applied(self, provider: Provider, dial: Dial, item: Json) -> None:
        """The provider with references says so by a message, too, whenever that arrives."""
        del dial
        if "reference" in item:
            said = dump({"type": provider.event, "data": item})
            self.messages.append(
                Message(f"msg_{len(self.messages)}_{item['reference']}", item["charge"].split("_")[0], said)
            )

    def land(self, late: Late) -> None:
        """A request that was given up arrives; its answer goes to nobody."""
        self.on_the_way.remove(late)
        self.intake.take(PROVIDERS[late.provider], late.arrival)

    def land_before(self, passed: float) -> None:
        """Whatever must have arrived by ``passed`` arrives."""
        for late in [one for one in self.on_the_way if one.by <= passed]:
            self.land(late)

    def expects(self, key: str) -> bool:
        """Whether something under ``key`` is still on its way."""
        return any(one.arrival.key == key for one in self.on_the_way)

    # The oracle

    def applied(self, key: str) -> int:
        """How often the intent took effect."""
        return ledger.applied(self.store, key)

    def requests(self) -> list[Json]:
        """Every request that arrived."""
        return ledger.requests(self.store)

    def counts(self) -> list[tuple[str, int]]:
        """How often each key took effect, of those that did."""
        rows: list[Any] = self.store.rows("select intent, count(*) as n from effects group by intent order by intent")
        return [(row["intent"], row["n"]) for row in rows]

    def mismatches(self) -> list[str]:
        """Keys under which other bytes arrived than before."""
        rows: list[Any] = self.store.rows("select distinct intent from requests where verdict = 'mismatch'")
        return [row["intent"] for row in rows]
