"""The demonstration's cast on a database of its own, and the engine driven in this process against the sandbox.

Doorbells go into a list instead of to the broker; ``drain`` does what the workers would do about them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.test import Client

from console.management.commands import demo_people
from recovery import bells
from recovery.actions import runs as actions
from recovery.engine import advance, dispatch, intents, mending_runs, reconcile, workers
from recovery.sandbox.server import Sandbox
from recovery.upkeep.sweep import Sweep
from runs import clock
from runs.models import Approval, Effect, Event, Person, Run, Workspace
from runs.record import Act
from runs.states import EventKind

PASSWORD = "correct horse battery"
MAILS = {
    "a": "oncall-a@acme.example",
    "b": "approver-b@acme.example",
    "c": "approver-c@acme.example",
    "d": "auditor-d@acme.example",
    "e": "outsider-e@other.example",
}


@dataclass
class Scene:
    """Who is there, and what happens next. ``people``: by letter, as in "Oncall A"."""

    sandbox: Sandbox
    rung: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    people: dict[str, Person] = field(default_factory=dict)

    def __post_init__(self) -> None:
        demo_people.make(self.sandbox.url, lambda email: PASSWORD)
        self.people = {letter: Person.objects.get(email=mail) for letter, mail in MAILS.items()}
        self.here = Workspace.objects.get(slug="acme-pay")

    # The engine

    def drain(self, most: int = 100) -> None:
        """Answer every doorbell, and those that this rings."""
        for _ in range(most):
            if not self.rung:
                return
            name, args = self.rung.pop(0)
            _ANSWERS[name](*args)
        raise AssertionError(f"still ringing after {most}: {self.rung}")

    def pass_time(self, **length: float) -> None:
        """Move the record's clock, then let the sweep and the workers do what is due."""
        clock.shift(timedelta(**length))
        Sweep().run_once()
        self.drain()

    # What a test begins from

    def start(self, type: str, data: dict[str, Any]) -> UUID:
        """A run that Oncall A starts, advanced until it waits or ends."""
        done = actions.accept(
            self.here, type, data, actor=self.people["a"], act=_act(), principal="svc-orders for a customer"
        )
        self.drain()
        return done.run

    def refund(self, amount: int = 8400, currency: str = "EUR", provider: str = "cards-eu", **more: Any) -> Effect:
        """The refund of a cancelled order; from 1,000.00 on it waits for signatures."""
        mark = uuid.uuid4().hex[:6].upper()
        data = {
            "order": f"A-{mark}",
            "charge": f"ch_{mark}",
            "amount": amount,
            "currency": currency,
            "email": "customer@example.com",
            "provider": provider,
            **more,
        }
        return Effect.objects.filter(run_id=self.start("orders.cancel", data)).earliest("ordinal")

    def unknown(self, **more: Any) -> Effect:
        """A refund of EUR 84.00 that cards-eu made without answering; it cannot be asked either, until told."""
        self.sandbox.dial("cards-eu", reply="drop", times=1, readback="down")
        return self.refund(**more)

    def notice(self) -> Effect:
        """A notice that was posted without an answer, where nothing can be asked."""
        self.sandbox.dial("notices", reply="drop", times=1)
        data = {"to": f"desk-{uuid.uuid4().hex[:6]}", "text": "Order A-1 waits"}
        return Effect.objects.get(run_id=self.start("notices.send", data))

    def asked(self, amount: int = 125_000) -> Approval:
        """A refund in USD at payments that waits for two signatures."""
        effect = self.refund(amount, "USD", "payments")
        return Approval.objects.get(effect=effect)

    def amend(self, approval: Approval, amount: int = 120_500) -> Approval:
        """The order changes: the run asks anew."""
        actions.signal(approval.run_id, "order.changed", {"amount": amount}, actor=self.people["a"], act=_act())
        self.drain()
        return Approval.objects.get(effect_id=approval.effect_id, revision=approval.revision + 1)

    def new_act(self) -> Act:
        """The act of something that a test has people do without a page."""
        return _act()

    # Who looks

    def client(self, letter: str, *, htmx: bool = False) -> Client:
        """A browser in which this person is signed in."""
        client = Client(headers={"HX-Request": "true"} if htmx else {})
        client.force_login(self.people[letter], backend="django.contrib.auth.backends.ModelBackend")
        return client

    # What a test looks at

    def refusals(self) -> list[str]:
        """Codes of what the workspace's own chain says was refused, oldest first."""
        rows = Event.objects.filter(workspace=self.here, run=None, kind=EventKind.ACTION_REFUSED)
        return [event.data["code"] for event in rows.order_by("seq")]

    def applied(self, effect: Effect) -> int:
        """How often the sandbox carried this intent out, by the charge in the body."""
        ledger = self.sandbox.ledger()
        return sum(one["applied"] for one in ledger if any(effect.target in body for body in one["bodies"]))

    def run_of(self, effect: Effect) -> Run:
        """The effect's run, as it is now."""
        return Run.objects.get(pk=effect.run_id)


def _act() -> Act:
    return Act.over(uuid.uuid4(), "test", {})


_ANSWERS = {
    "advance": lambda workspace, run: advance.advance(UUID(workspace), UUID(run)),
    "dispatch": lambda effect: dispatch.dispatch(UUID(effect)),
    "reconcile": lambda effect: reconcile.reconcile(UUID(effect)),
    "lose": lambda attempt: reconcile.lose(UUID(attempt)),
    "mend": lambda plan: mending_runs.mend(UUID(plan)),
}


@contextmanager
def stage(folder: Path) -> Iterator[Scene]:
    """A scene on Django's current database; the process is one worker of it, without a heartbeat."""
    intents._dependencies.clear()
    intents._groups.clear()
    rung: list[tuple[str, tuple[str, ...]]] = []

    def keep(task: Any, *args: str) -> bool:
        rung.append((task.name, args))
        return True

    before = (bells._publish, workers._beat, workers._me)
    bells._publish, workers._beat, workers._me = keep, lambda worker: None, None
    try:
        with Sandbox(folder / "sandbox.sqlite3") as sandbox:
            yield Scene(sandbox, rung)
    finally:
        bells._publish, workers._beat, workers._me = before
