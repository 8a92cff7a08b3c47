"""The engine on a database of its own and a real sandbox, driven without Celery.

A worker here is a name: :meth:`World.as_worker` says who is at work, :meth:`World.dies` ends one. The sweep
finds what is due by the record alone, as it does when every doorbell is lost, and what it rings is done at
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID, uuid4

from django.db import connection

from recovery.actions import runs as run_actions
from recovery.engine import workers
from recovery.engine.advance import advance
from recovery.engine.dispatch import dispatch
from recovery.engine.reconcile import reconcile
from recovery.sandbox.server import Sandbox
from runs import clock
from runs.history import chain, fold
from runs.models import Attempt, Call, Dependency, Effect, Event, Person, Review, Run, Worker
from runs.record import Act
from runs.states import RUN_ENDED, EventKind, ReviewState
from tests.recovery.engine.driver import Driver
from tests.recovery.stage import Stage, act


@dataclass
class World(Driver):
    """People and workspaces (``s``), the sandbox, and whoever is at work. ``gone``: attempts that a restore lost."""

    s: Stage
    sandbox: Sandbox
    me: workers.Me = field(init=False)
    more_than_once: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    numbers: int = 0
    FAR: ClassVar[timedelta] = timedelta(hours=6)

    # Who works

    def worker(self) -> workers.Me:
        """A new live worker; its heartbeat is this row."""
        id = uuid4()
        Worker.objects.create(
            id=id, pool="advance", host="elsewhere", pid=1, code="t", started_at=clock.now(), seen_at=clock.now()
        )
        self.beat(id)
        return workers.Me(id, "advance", 0 if not hasattr(self, "me") else self.me.epoch)

    def dies(self, who: workers.Me) -> None:
        """Nobody has heard of ``who`` for too long."""
        self.silence(who.id)

    def silence(self, worker: UUID) -> None:
        """The same of a worker by its id."""
        with connection.cursor() as cursor:
            cursor.execute("UPDATE runs_worker SET seen_at = '-infinity' WHERE id = %s", [worker])

    @contextmanager
    def as_worker(self, who: workers.Me) -> Iterator[None]:
        """``who`` is at work in this block."""
        before = workers._me
        workers._me = who
        try:
            yield
        finally:
            workers._me = before

    # What people do

    def charge(self) -> str:
        self.numbers += 1
        return f"ch_{self.numbers}"

    def accept(
        self, type: str = "test.many", *what: str | tuple[str, str], actor: Person | None = None, **data: Any
    ) -> UUID:
        """Accept a run that asks for ``what``: contracts' names, each on a charge of its own unless given."""
        given = [one if isinstance(one, tuple) else (one, self.charge()) for one in what]
        done = run_actions.accept(
            self.s.here, type, {"what": given, **data}, actor=actor or self.s.oncall_a, act=act("accept")
        )
        return done.run

    def cancel(self, run: UUID) -> None:
        run_actions.cancel(run, actor=self.s.oncall_a, act=act("cancel"), reason="not wanted any more")

    def signal(self, run: UUID, name: str, how: Act | None = None, **payload: Any) -> None:
        run_actions.signal(run, name, payload, actor=self.s.oncall_g, act=how or act("signal"))

    # What is done

    def advance(self, run: UUID) -> str:
        return advance(self.s.here.pk, run)

    def advance_anyway(self, run: UUID) -> str:
        """Advance a run that nothing has woken, as if a person had asked for it."""
        run_actions.look_again(run, actor=self.s.oncall_g, act=act("look"))
        return self.advance(run)

    def dispatch(self, effect: Effect) -> str:
        return dispatch(effect.pk)

    def reconcile(self, effect: Effect) -> str:
        return reconcile(effect.pk)

    def pass_once(self) -> int:
        """One sweep and its work, with everyone who is not dead alive."""
        self.beat()
        return super().pass_once()

    # What is looked at

    def run(self, id: UUID) -> Run:
        return Run.objects.get(pk=id)

    def effects(self, run: UUID) -> list[Effect]:
        return list(Effect.objects.filter(run_id=run).order_by("ordinal"))

    def effect(self, run: UUID) -> Effect:
        (one,) = self.effects(run)
        return one

    def effect_states(self, run: UUID) -> list[str]:
        return [e.state for e in self.effects(run)]

    def attempts(self, effect: Effect) -> list[Attempt]:
        return list(Attempt.objects.filter(effect=effect).order_by("n"))

    def reviews(self, run: UUID) -> list[str]:
        """Kinds of the run's open reviews."""
        return sorted(Review.objects.filter(run_id=run, state=ReviewState.OPEN).values_list("kind", flat=True))

    def events(self, run: UUID, kind: EventKind | None = None) -> list[Event]:
        found = Event.objects.filter(run_id=run).order_by("seq")
        return list(found if kind is None else found.filter(kind=kind))

    def heard(self, run: UUID) -> list[Any]:
        """What the run's steps were told, from its last checkpoint."""
        from recovery.engine import memory

        row = Run.objects.filter(pk=run).values().get()
        return memory.restore(row)[1].data["heard"]

    def applied(self, effect: Effect) -> int:
        """How often it took effect, by the sandbox's own ledger."""
        return self.sandbox.applied(effect.sent_key)

    def sound(self) -> None:
        """What must be true of everything, whatever a test did."""
        for run in Run.objects.all():
            assert chain.verify_run(run).ok, f"{run.pk}: the chain does not verify (invariant 9)"
            assert fold.differences(run) == [], "folding the history gives the projection (invariant 9)"
            if run.state in RUN_ENDED:
                assert run.wake_at is None and run.lease_owner is None
        for line in self.sandbox.ledger():
            if line["intent"] not in self.more_than_once:
                assert line["applied"] <= 1, f"{line}: one intent, one effect (invariant 3)"
        sent = {a["headers"]["Recourse-Attempt"] for a in self.sandbox.requests()}
        known = {str(id) for model in (Attempt, Call) for id in model.objects.values_list("pk", flat=True)}
        assert sent <= known | self.gone, "no byte leaves without a committed attempt (invariant 2)"


def look(world: World) -> None:
    """Point the dependencies at the sandbox."""
    for row in Dependency.objects.all():
        Dependency.objects.filter(pk=row.pk).update(base_url=f"{world.sandbox.url}/{row.name}", credential="sandbox")
