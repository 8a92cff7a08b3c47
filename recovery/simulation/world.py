"""Everything of one seed: the record, the workers, the wire, the doorbells, the people, and what was seen of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
from django.conf import settings
from django.db import connection

from recovery import bells, failpoints, tasks
from recovery.engine import advance, dispatch, insisting, stepping, workers
from recovery.ports import http
from recovery.sandbox import clock as sandbox_clock
from recovery.simulation import stage
from recovery.simulation.bodies import AT_THE_WIRE, Bodies, Call, Worker
from recovery.simulation.guards import Guards
from recovery.simulation.ids import Ids
from recovery.simulation.invariants.seen import Seen
from recovery.simulation.invariants.sending import Sending
from recovery.simulation.mail import Mail
from recovery.simulation.moments import Moments
from recovery.simulation.network import Network
from recovery.simulation.pacing import Own, Paces
from recovery.simulation.statement import Broken, Holders, Statement, attempts_in, changes_in, effects_in
from recovery.simulation.swapping import swapped
from recovery.simulation.weather import Weather
from recovery.traffic import admission, lanes
from runs import clock, doorbells, models, record
from runs.doorbells import Ring
from runs.errors import RunsError
from runs.models import Attempt, Effect, base
from runs.states import ATTEMPT_LIVE

WAITING = (advance, dispatch, insisting, admission, lanes)
"""Modules in which a worker waits, or looks at how long it has been at work."""


class Violation(Exception):
    """An invariant does not hold."""

    def __init__(self, invariant: int | str, what: str) -> None:
        super().__init__(f"invariant {invariant}: {what}")
        self.invariant = invariant
        self.what = what


@dataclass(frozen=True)
class Bell:
    """A doorbell: a task and its ids."""

    task: str
    args: tuple[str, ...]


class World:
    """One seed's world. Use within :meth:`at_work`, which puts its parts in their places."""

    def __init__(self, seed: int, cast: stage.Stage, guards: Guards) -> None:
        self.seed = seed
        self.stage = cast
        self.guards = guards
        self.rng = random.Random(seed)
        self.ids = Ids(seed)
        self.weather = Weather(self.rng)
        stage.empty(cast, self.weather.at_once, self.weather.rate)
        self.moments = Moments()
        self.network = Network(self.moments, leaves=self._leaves, fault=self._wire)
        self.holders = Holders()
        self.bells: list[Bell] = []
        self.runs: list[UUID] = []
        self.wrong: list[Violation] = []
        self.hit: set[UUID] = set()
        self.exercised: Counter[int] = Counter()
        self.trace: list[str] = []
        self.subject: UUID | None = None
        self.charges = 0
        self.moves = 0
        self.commits = self.permits = self.sealed = 0
        self.swept = (-1, 0.0, 0)
        self.seen = Seen(self)
        self.sending = Sending(self)
        self.paces = Paces(self)
        self.mail = Mail(self)
        self.bodies: Bodies

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """The world's parts in the places that the engine, the record and the sandbox leave for them."""
        statement = Statement(record._run_function, breaks=self._breaks, early=self._early, done=self._done)
        with ExitStack() as stack:
            stack.enter_context(
                swapped(
                    (base, "make_id", self.ids),
                    (clock, "elapsed", self.moments.elapsed),
                    (sandbox_clock, "nanoseconds", self.moments.nanoseconds),
                    (http, "stand_in", self.network),
                    (record, "_run_function", statement),
                    (bells, "publish", self.publish),
                    (doorbells, "_ringers", [self._rung]),
                    (stepping, "_watch", self),
                    *((module, "time", self.moments) for module in WAITING),
                    (lanes, "_lanes", Own(self._who)),
                    (lanes, "_roads", Own(self._who)),
                    (settings, "RECOURSE_OUTSIDE", None),  # what a seed leaves is taken away, which is no restore
                    (connection, "close", lambda: None),  # given back: there is one, and everyone has it
                )
            )
            self.bodies = Bodies(self.weather.point, self.moments.elapsed)
            for n in range(self.weather.workers):
                self.bodies.hire("ABC"[n])
            stack.enter_context(swapped((workers, "cast", self.bodies)))
            self.moments.before += [self._arrives, self.bodies.grow_silent]
            for name in failpoints.POINTS:
                failpoints.arm(name, lambda name=name: self.bodies.point(name))  # type: ignore[misc]
            try:
                yield
            finally:
                self.weather.calm = True
                for worker in self.bodies.stopped:
                    self.bodies.kill(worker)
                failpoints.disarm()
                self.network.store.close()

    # What the engine's parts ask and tell

    def _wire(self, kind: str, provider: str) -> str:
        what = self.weather.wire(kind, provider)
        if what != "ok":
            self.strike()
        return what

    def _leaves(self, attempt: UUID, key: str, body: bytes, host: str) -> None:
        self.subject = self.sending.leaves(attempt, key, body, host)

    def strike(self) -> None:
        """A fault hits whatever the call at work is about."""
        call = self.bodies.now.call if self.bodies.now else None
        for id in (self.subject, call.subject if call else None):
            if id is not None:
                self.hit.add(id)

    def _breaks(self, payload: dict[str, Any]) -> str:
        if self.bodies.now is None or connection.in_atomic_block:
            return ""
        fate = self.weather.statement(payload)
        if fate:
            self.strike()
            self.hit |= effects_in(payload)
        return fate

    def _early(self, payload: dict[str, Any]) -> None:
        if self.guards.sends_early:
            for row in attempts_in(payload):
                self._send_early(payload, row)

    def _send_early(self, payload: dict[str, Any], row: dict[str, Any]) -> None:
        """The broken engine: the bytes go out before the intent is committed."""
        attempt = UUID(row["id"])
        request = self.sending.request_of(payload, row)
        try:
            self.network.early[attempt] = self.network.send(
                request.url.path.split("/")[1], attempt, request, patience=10.0
            )
        except httpx.TransportError as error:
            self.network.early[attempt] = error

    def _done(self, payload: dict[str, Any], answer: dict[str, Any]) -> None:
        self.commits += 1
        self.permits += any(change["t"] in ("attempt", "call") for change in changes_in(payload))
        self.sealed += "checkpoint" in payload
        said = self.holders.wrong(payload, answer)
        if "token" in payload or "lease" in payload:
            self.exercised[6] += 1
        if said:
            self.violate(6, said)
        touched = effects_in(payload)
        if touched and self.bodies.now is not None:
            self.subject = sorted(touched)[-1]
        for row in attempts_in(payload):
            self.sending.claimed(UUID(row["id"]))
        self.paces.given(answer)

    def _who(self) -> str:
        """Whose threads and roads are meant: each worker is a process of its own."""
        return str(self.bodies.me("dispatch").id)

    def _arrives(self, seconds: float) -> None:
        self.network.land_before(self.moments.passed + seconds)

    @contextmanager
    def over(self, when_slow: Any) -> Iterator[None]:
        """In the place of the watch over slow steps: some steps are slow, and what is known is committed first."""
        if when_slow is not None and not self.weather.calm and self.rng.random() < 0.1:
            when_slow()
        yield

    # Doorbells

    def publish(self, task: str, *args: str) -> bool:
        """In the place of ``bells.publish``."""
        self.bells.append(Bell(task, args))
        return True

    def _rung(self, ring: Ring) -> None:
        for effect in ring.ready:
            self.publish("dispatch", str(effect))
        if ring.wake and ring.run is not None:
            self.publish("advance", str(ring.workspace), str(ring.run))

    # What is done and said

    def violate(self, invariant: int | str, what: str) -> None:
        """Keep that an invariant does not hold."""
        self.wrong.append(Violation(invariant, what))

    def tell(self, said: str) -> None:
        """A line of the trace."""
        self.trace.append(f"{self.moves:3} {self.moments.passed:9.1f} s  {said}")

    def ended(self, call: Call) -> str:
        """Look at how a call ended; an error that nothing of the simulation caused is kept, too."""
        if call.ended in ("died",):
            self.strike_of(call)
        error = call.error
        if error is not None and not isinstance(error, Broken | failpoints.Failpoint):
            cause = error.__cause__ or error.__context__
            if not isinstance(cause, Broken | failpoints.Failpoint):
                self.violate("raised", f"{call.task} raised {type(error).__name__}: {error}")
        return call.ended or f"stands at {call.stands}"

    def strike_of(self, call: Call) -> None:
        """A fault hit this call."""
        self.hit.add(call.subject)
        if self.subject is not None:
            self.hit.add(self.subject)

    def work(self, bell: Bell) -> Any:
        """What a worker does for a bell: the task's own function, by its name."""
        return lambda: getattr(tasks, bell.task).run(*bell.args)

    def subject_of(self, bell: Bell) -> UUID:
        """The run or effect that a bell is about (an attempt's is its effect)."""
        id = UUID(bell.args[-1])
        if bell.task == "lose":
            return Attempt.objects.values_list("effect_id", flat=True).get(pk=id)
        if bell.task == "ask":
            return models.Call.objects.values_list("run_id", flat=True).get(pk=id)
        return id

    def charge(self, workspace: str) -> str:
        """What an effect is about: mostly something new, sometimes what another run was about."""
        if not self.charges or self.rng.random() < 0.93:
            self.charges += 1
            return f"{workspace}_{self.charges}"
        return f"{workspace}_{self.rng.randint(1, self.charges)}"

    def may_arrive(self, effect: Effect) -> bool:
        """Whether bytes of it may still reach the other side: on the way, or a live worker is about to send."""
        live = Attempt.objects.filter(effect=effect, state__in=ATTEMPT_LIVE).exists()
        standing = any(w.call and w.call.stands for w in self.bodies.workers if self.at_wire(w, effect))
        return live or standing or self.network.expects(effect.sent_key)

    def at_wire(self, worker: Worker, effect: Effect) -> bool:
        """Whether ``worker`` stands where the bytes of ``effect`` are about to leave."""
        call = worker.call
        return call is not None and call.stands == AT_THE_WIRE and call.subject in (effect.pk, effect.run_id)

    def label(self, id: UUID | str) -> str:
        """An id as the trace names it: its place among the seed's ids."""
        value = id if isinstance(id, UUID) else UUID(id)
        return f"#{(value.int >> 80) - (0x019B_0000_0000)}"

    def refused(self, error: RunsError) -> str:
        """A refusal in the trace's words."""
        return f"refused: {error.code}"
