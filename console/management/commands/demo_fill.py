"""``manage.py demo_fill``: runs of every kind that the demonstration shows, really run against the sandbox."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID, uuid4

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from recovery.actions import runs as actions
from recovery.sandbox.client import SandboxClient
from runs.models import Effect, Person, Run, Workspace
from runs.record import Act
from runs.states import EffectState, RunState

STARTERS: Final = {"acme-pay": "oncall-a@acme.example", "other-pay": "outsider-e@other.example"}
PATIENCE: Final = 60.0
"""Seconds that one run may take to reach the state it is there to show."""


class Command(BaseCommand):
    help = "Fill acme-pay and other-pay by running runs against the sandbox. A workspace that has runs is left alone."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.RECOURSE_SANDBOX_URL:
            raise CommandError("RECOURSE_SANDBOX_URL is not set: the demo runs against the sandbox.")
        sandbox = SandboxClient(settings.RECOURSE_SANDBOX_URL)
        for slug, email in STARTERS.items():
            workspace = Workspace.objects.filter(slug=slug).first()
            person = Person.objects.filter(email=email).first()
            if workspace is None or person is None:
                raise CommandError(f"{slug} is not there yet: run manage.py demo_people first.")
            if Run.objects.filter(workspace=workspace).exists():
                self.stdout.write(f"{slug} has runs already; nothing was added.")
                continue
            Filler(workspace, person, sandbox, self.stdout.write).fill()


class Filler:
    """Starts the runs of one workspace and waits until each shows what it is there to show."""

    def __init__(
        self, workspace: Workspace, person: Person, sandbox: SandboxClient, say: Callable[[str], object]
    ) -> None:
        self.workspace = workspace
        self.person = person
        self.sandbox = sandbox
        self.say = say
        # Charges are the sandbox's, which both workspaces share: a suffix keeps their intents apart.
        self.mark = "" if workspace.slug == "acme-pay" else "o"

    def fill(self) -> None:
        completed = [
            self._order("A-10401", "ch_1AB2", 1990, "EUR", "payments"),
            self._order("A-10402", "ch_2CD4", 4550, "USD", "payments"),
            self._order("A-10411", "ch_4EF6", 1200, "EUR", "cards-eu"),
            self._notice("ops@acme.example", "Order A-10401 was cancelled"),
        ]
        for run in completed:
            self._until(run, lambda r: r.state == RunState.COMPLETED, "completed")
        self.sandbox.dial("cards-eu", reply="drop", times=1, match=f"ch_3QK9{self.mark}")
        unknown = self._order("A-10427", "ch_3QK9", 8400, "EUR", "cards-eu")
        self._until_unknown(unknown)
        self.sandbox.dial("notices", reply="drop", times=1)
        self._until_unknown(self._notice("desk@acme.example", "Order A-10427 waits for its refund"))
        waiting = self._order("A-10433", "ch_8LM2", 125_000, "USD", "payments")
        self._until(waiting, lambda r: r.waiting_on == "approval", "waiting for signatures")
        cancelled = self._order("A-10435", "ch_9TT1", 230_000, "EUR", "payments")
        self._until(cancelled, lambda r: r.waiting_on == "approval", "waiting for signatures")
        actions.cancel(
            cancelled,
            actor=self.person,
            act=Act(uuid4(), "demo"),
            reason="The customer kept the order after all.",
        )
        self._until(cancelled, lambda r: r.state == RunState.CANCELLED, "cancelled")
        self.say(f"{self.workspace.slug}: {Run.objects.filter(workspace=self.workspace).count()} runs.")

    def _order(self, order: str, charge: str, amount: int, currency: str, provider: str) -> UUID:
        return self._accept(
            "orders.cancel",
            {
                "order": f"{order}{self.mark}",
                "charge": f"{charge}{self.mark}",
                "amount": amount,
                "currency": currency,
                "email": "customer@example.com",
                "provider": provider,
            },
            goal="order cancelled, refunded",
        )

    def _notice(self, to: str, text: str) -> UUID:
        return self._accept("notices.send", {"to": to, "text": text}, goal="the notice is posted")

    def _accept(self, type: str, data: dict[str, Any], goal: str) -> UUID:
        done = actions.accept(
            self.workspace,
            type,
            data,
            actor=self.person,
            act=Act(uuid4(), "demo"),
            goal=goal,
            principal="svc-orders for a customer",
        )
        return done.run

    def _until_unknown(self, run: UUID) -> None:
        asked = Effect.objects.filter(run_id=run, state=EffectState.UNKNOWN, reviews__state="open")
        self._until(run, lambda r: asked.exists(), "unknown, with a person asked")

    def _until(self, run: UUID, shows: Callable[[Run], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not shows(row := Run.objects.get(pk=run)):
            if time.monotonic() > end:
                raise CommandError(f"{row.title} is {row.state} {row.waiting_on}, it should be {what} by now.")
            time.sleep(0.1)
