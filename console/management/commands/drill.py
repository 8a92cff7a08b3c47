"""`manage.py drill`: rehearse one fault on the live stack, and keep the verdict."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

from django.core.management.base import BaseCommand, CommandError, CommandParser

from console import words
from console.drilling import NoStack, StackHands
from recovery.actions import drills
from recovery.actions import runs as run_actions
from recovery.drills.catalogue import DRILLS
from recovery.drills.rehearse import rehearse
from recovery.engine import insisting
from runs import access
from runs.errors import RunsError
from runs.models import Person, Workspace
from runs.record import Act


class Command(BaseCommand):
    """Exit code 0 when the drill passed, 1 when it failed or was refused."""

    help = "Break one thing of the running stack on purpose, with real work going on, and keep what came of it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", help=", ".join(DRILLS))
        parser.add_argument("--list", action="store_true", help="say what each drill breaks")
        parser.add_argument("--person", metavar="EMAIL", help="who rehearses; needs the role author")
        parser.add_argument("--workspace", default="acme-pay", metavar="SLUG", help="where its runs are started")
        parser.add_argument("--runs", type=int, default=6, help="orders that are cancelled meanwhile; 6 unless given")
        parser.add_argument("--json", action="store_true", help="print the verdict as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["list"]:
            for fault in DRILLS.values():
                self.stdout.write(f"{fault.name:20} {fault.says}")
            return
        if not options["name"] or not options["person"]:
            raise CommandError("Say which drill (--list names them) and who rehearses (--person EMAIL).")
        if not 4 <= options["runs"] <= 200:
            raise CommandError("--runs takes 4 to 200.")
        person, workspace = self._who(options["person"], options["workspace"])
        try:
            hands = StackHands()
        except NoStack:
            raise CommandError(
                "Drills run on the stack that `make run` started, with its sandbox. None is known here."
            ) from None
        try:
            begun = drills.begin(workspace, options["name"], actor=person, act=Act(uuid4(), "drills"))
        except RunsError as refused:
            raise CommandError(words.refusal(refused.code, refused.facts)) from refused
        self._rehearse(UUID(begun.facts["drill"]), hands, person, workspace, options)

    def _rehearse(
        self, drill: UUID, hands: StackHands, person: Person, workspace: Workspace, options: dict[str, Any]
    ) -> None:
        fault = DRILLS[options["name"]]
        if not options["json"]:
            self.stdout.write(fault.says)
        passed, verdict = False, {"wrong": ["the drill itself broke; its log says why"]}
        try:
            start = _starter(workspace, person)
            done = rehearse(fault, hands, start, hands.sandbox, runs=options["runs"])
            passed, verdict = done.passed, done.verdict
        finally:
            hands.take_back()
            act = Act(uuid4(), "drills")
            insisting.insist(lambda: drills.end(drill, passed=passed, verdict=verdict, actor=person, act=act))
        self._say(passed, verdict, options["json"])
        if not passed:
            raise SystemExit(1)

    def _say(self, passed: bool, verdict: dict[str, Any], as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({"passed": passed, **verdict}))
            return
        for name, count in verdict["counts"].items():
            self.stdout.write(f"{count:6d} {name}")
        self.stdout.write(f"settled after {verdict['settled_after_s']} s")
        for line in verdict["wrong"]:
            self.stdout.write(f"WRONG: {line}")
        self.stdout.write("Passed; the verdict is kept." if passed else "Failed; the verdict is kept.")

    def _who(self, email: str, slug: str) -> tuple[Person, Workspace]:
        person = Person.objects.filter(email=email.lower(), is_active=True).first()
        if person is None:
            raise CommandError(f"Nobody active has the address {email}.")
        workspace = access.workspaces_for(person).filter(slug=slug).first()
        if workspace is None:
            raise CommandError(f"{person.name} sees no workspace {slug}.")
        return person, workspace


def _starter(workspace: Workspace, person: Person) -> Callable[[], UUID]:
    """Starts one order of the demonstration at each call: a refund and an e-mail, each under a key of its own."""

    def start() -> UUID:
        mark = secrets.token_hex(6)
        order = {
            "order": f"D-{mark}",
            "charge": f"ch_d{mark}",
            "amount": 1200,
            "currency": "EUR",
            "email": "drill@example.com",
            "provider": "payments",
        }
        act = Act(uuid4(), "runs", mark)
        # The same act again while the record is away: exactly one run, whichever answer was lost.
        return insisting.insist(
            lambda: run_actions.accept(workspace, "orders.cancel", order, actor=person, act=act).run
        )

    return start
