"""`manage.py demo_people`: the two workspaces of the demonstration, their people, and the sandbox."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from console.stack import secrets
from runs import access
from runs.models import Capacity, Dependency, Environment, Group, Person, Workspace


@dataclass(frozen=True)
class Account:
    """Somebody of the demonstration. ``groups``: of that workspace."""

    name: str
    email: str
    workspace: str
    roles: tuple[str, ...]
    groups: tuple[str, ...] = ()


WORKSPACES: Final = {"acme-pay": "Acme Pay", "other-pay": "Other Pay"}
GROUPS: Final = {"payments-oncall": "Payments on call", "payments-approvers": "Payments approvers"}
PEOPLE: Final = (
    Account("Oncall A", "oncall-a@acme.example", "acme-pay", ("on-call",), ("payments-oncall",)),
    Account("Approver B", "approver-b@acme.example", "acme-pay", ("approver",), ("payments-approvers",)),
    Account("Approver C", "approver-c@acme.example", "acme-pay", ("approver",), ("payments-approvers",)),
    Account("Auditor D", "auditor-d@acme.example", "acme-pay", ("auditor",)),
    Account("Author G", "author-g@acme.example", "acme-pay", ("author",)),
    Account(
        "Outsider E",
        "outsider-e@other.example",
        "other-pay",
        ("on-call", "approver"),
        ("payments-oncall", "payments-approvers"),
    ),
)
DEPENDENCIES: Final = ("payments", "cards-eu", "mail", "notices")
IN_FLIGHT: Final = 16
"""Calls at once that each stand-in takes, shared by the workspaces."""


@transaction.atomic
def make(
    sandbox: str, password: Callable[[str], str], *, forgotten: Callable[[str], bool] = lambda email: False
) -> None:
    """Make what is missing; what is there stays as people left it, only the sandbox's address follows.

    ``password`` gives a new account's; ``forgotten`` says whose is lost and must be set again.
    """
    spaces = {}
    for slug, name in WORKSPACES.items():
        space, _new = Workspace.objects.get_or_create(
            slug=slug, defaults={"name": name, "environment": Environment.SANDBOX}
        )
        spaces[slug] = space
        for group, title in GROUPS.items():
            Group.objects.get_or_create(workspace=space, slug=group, defaults={"name": title})
        for dependency in DEPENDENCIES:
            _dependency(space, dependency, f"{sandbox.rstrip('/')}/{dependency}")
    for account in PEOPLE:
        _person(account, spaces[account.workspace], password, forgotten)


def _dependency(space: Workspace, name: str, base_url: str) -> None:
    capacity, _new = Capacity.objects.get_or_create(name=name, defaults={"max_in_flight": IN_FLIGHT})
    row, _new = Dependency.objects.get_or_create(
        workspace=space,
        name=name,
        # The sandbox asks for no secret: its aliases say so.
        defaults={"base_url": base_url, "credential": f"sandbox-{name}", "capacity": capacity},
    )
    if row.base_url != base_url:
        Dependency.objects.filter(pk=row.pk).update(base_url=base_url)


def _person(
    account: Account, space: Workspace, password: Callable[[str], str], forgotten: Callable[[str], bool]
) -> None:
    person = Person.objects.filter(email=account.email).first()
    if person is None:
        person = Person.objects.create_user(account.email, account.name, password(account.email))
        access.grant(person, space, account.roles)
        for group in Group.objects.filter(workspace=space, slug__in=account.groups):
            group.members.add(person)
    elif forgotten(account.email):
        person.set_password(password(account.email))
        person.save(update_fields=["password"])


class Command(BaseCommand):
    """Running it again changes nothing but the sandbox's address."""

    help = "Make the demo workspaces acme-pay and other-pay, their people, groups and dependencies."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.RECOURSE_SANDBOX_URL:
            raise CommandError("RECOURSE_SANDBOX_URL is not set: the demo needs the sandbox as its downstream.")
        kept = secrets.installed()
        known = set(kept.accounts())
        make(settings.RECOURSE_SANDBOX_URL, kept.account_password, forgotten=lambda email: email not in known)
        if options["verbosity"] > 1:
            self.stdout.write(f"{', '.join(WORKSPACES)}: {', '.join(account.name for account in PEOPLE)}")
