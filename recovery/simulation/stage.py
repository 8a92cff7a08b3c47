"""Setup of a throw-away database: people and workspaces once, everything else emptied before each seed.

Nothing here touches a database that somebody needs: it drops the triggers that keep the history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.apps import apps
from django.db import connection

from recovery.engine import intents
from recovery.traffic import callbacks
from runs import access
from runs.models import Capacity, Dependency, Event, Group, Person, Worker, Workspace

HOME, NEXT_DOOR = "home", "next-door"
PROVIDERS: Final = ("payments", "cards-eu", "mail", "notices")
KEPT: Final = frozenset(
    {
        *("Workspace", "Person", "Group", "WorkspaceUserPermission", "WorkspaceGroupPermission"),
        *("Epoch", "ClockShift", "Transition"),
    }
)
"""Models whose rows outlive a seed; what can change in them is put back."""


@dataclass
class Stage:
    """The cast: A starts runs, G is on call too, B, C and F may sign, E belongs next door."""

    home: Workspace
    next_door: Workspace
    people: dict[str, Person]
    signers: Group
    capacity: dict[str, Any]
    dependencies: list[dict[str, Any]]
    secrets: dict[str, str]


class InUse(Exception):
    """This database is somebody's: the simulation plays only where nothing was ever written."""


def require_unused() -> None:
    """Refuse a database that anybody uses. Raises InUse."""
    if Workspace.objects.exists() or Person.objects.exists() or Event.objects.exists():
        raise InUse(str(InUse.__doc__))


def build() -> Stage:
    """Make the cast in an empty, migrated database."""
    with connection.cursor() as cursor:
        for table in ("runs_event", "runs_evidence"):
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    capacity = Capacity.objects.create(name="payments", max_in_flight=50)
    spaces = {s: Workspace.objects.create(slug=s, name=s, environment="SANDBOX") for s in (HOME, NEXT_DOOR)}
    for slug, workspace in spaces.items():
        for name in PROVIDERS:
            Dependency.objects.create(
                workspace=workspace,
                name=name,
                base_url=f"http://{slug}.invalid/{name}",
                credential="sandbox",
                capacity=capacity,
            )
        Group.objects.create(workspace=workspace, slug="on-call", name="On call")
    signers = Group.objects.create(workspace=spaces[HOME], slug="signers", name="Signers")
    theirs = Group.objects.create(workspace=spaces[NEXT_DOOR], slug="signers", name="Signers")
    cast = {
        "A": (HOME, "on-call"),
        "G": (HOME, "on-call"),
        "B": (HOME, "approver"),
        "C": (HOME, "approver"),
        "F": (HOME, "approver"),
        "E": (NEXT_DOOR, "on-call"),
        "H": (NEXT_DOOR, "approver"),
    }
    people = {}
    for name, (slug, role) in cast.items():
        people[name] = Person.objects.create_user(f"{name.lower()}@{slug}.example", name)
        access.grant(people[name], spaces[slug], [role])
    signers.members.add(people["B"], people["C"], people["F"])
    theirs.members.add(people["H"])
    secrets = {slug: callbacks.new_secret() for slug in spaces}
    for slug, secret in secrets.items():
        payments = Dependency.objects.get(workspace=spaces[slug], name="payments")
        payments.callback_secrets = callbacks.keep_secrets(payments, [secret])
        payments.save(update_fields=["callback_secrets"])
    limits = dict(Capacity.objects.values().get())
    rows = [dict(row) for row in Dependency.objects.values()]
    return Stage(spaces[HOME], spaces[NEXT_DOOR], people, signers, limits, rows, secrets)


def empty(stage: Stage, at_once: int, rate: float | None) -> None:
    """Take away what a seed left, and put back what it changed of the cast.

    ``at_once``, ``rate``: how many calls the dependencies take at once and a second, in the next seed.
    """
    names = [
        model._meta.db_table
        for model in apps.get_app_config("runs").get_models()
        if model.__name__ not in KEPT and not model._meta.proxy
    ]
    with connection.cursor() as cursor:
        # Foreign keys are not asked: everything goes.
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("; ".join(f"DELETE FROM {name}" for name in names))
        cursor.execute("SET session_replication_role = DEFAULT")
    Workspace.objects.update(head_seq=0, head_hash="")
    Person.objects.update(is_active=True)
    Capacity.objects.create(**{**stage.capacity, "max_in_flight": at_once, "rate": rate})
    Dependency.objects.bulk_create(Dependency(**row) for row in stage.dependencies)
    intents._dependencies.clear()
    intents._groups.clear()


def activate(person: Person, active: bool) -> None:
    """Whether the person's account may do anything."""
    Person.objects.filter(pk=person.pk).update(is_active=active)


def join(id: UUID, name: str) -> None:
    """A worker's row, alive."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    Worker.objects.create(id=id, pool="advance", host=f"simulated {name}", pid=1, code="", started_at=now, seen_at=now)
    heard(id, True)


def heard(id: UUID, alive: bool) -> None:
    """Whether the worker's heartbeat is fresh: the row has the database's own time, which no seed moves."""
    with connection.cursor() as cursor:
        table = Worker._meta.db_table
        cursor.execute(f"UPDATE {table} SET seen_at = %s WHERE id = %s", ["9999-01-01" if alive else "-infinity", id])
