"""Who may do what in which workspace. The one place that knows roles; everything else asks here.

Roles add up. They are granted as django-guardian object permissions on the workspace, by direct foreign key, and
resolved to workspace ids first, one query, so that no list is filtered row by row (invariant 14).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from django.contrib.auth.models import Permission
from django.db import transaction
from django.db.models import Q, QuerySet

from runs.errors import NotAllowed, NotFound
from runs.models import Group, Person, Workspace, WorkspaceUserPermission

ROLES: Final[dict[str, frozenset[str]]] = {
    "on-call": frozenset({"see", "claim", "check", "cancel", "decide", "start"}),
    "approver": frozenset({"see", "sign", "confirm"}),
    "auditor": frozenset({"see", "audit"}),
    "author": frozenset({"see", "drill", "start"}),
    "administrator": frozenset({"see", "administer", "override", "reveal"}),
}
"""Each role and what it may do. A decision may be confirmed by whoever may decide, too: another on-call engineer."""


def permissions(person: Person) -> dict[UUID, frozenset[str]]:
    """What ``person`` may do, by workspace id. Empty for an account that is not active. One query."""
    if not person.is_active:
        return {}
    found: dict[UUID, set[str]] = {}
    rows = WorkspaceUserPermission.objects.filter(user=person).values_list("content_object_id", "permission__codename")
    for workspace, codename in rows:
        found.setdefault(workspace, set()).add(codename)
    return {workspace: frozenset(names) for workspace, names in found.items()}


def workspaces_for(person: Person) -> QuerySet[Workspace]:
    """The workspaces that ``person`` can see, by slug."""
    ids = [workspace for workspace, names in permissions(person).items() if "see" in names]
    return Workspace.objects.filter(pk__in=ids).order_by("slug")


def can(person: Person, workspace: UUID, permission: str) -> bool:
    """True if ``person`` holds ``permission`` in ``workspace`` now. One query."""
    return (
        person.is_active
        and WorkspaceUserPermission.objects.filter(
            user=person, user__is_active=True, content_object_id=workspace, permission__codename=permission
        ).exists()
    )


def require(person: Person, workspace: UUID, permission: str) -> None:
    """Refuse unless ``person`` may. Raises NotFound if they cannot even see the workspace, else NotAllowed.

    Call it inside the transaction of the change: what was taken away meanwhile is then seen.
    """
    held = permissions(Person.objects.get(pk=person.pk)).get(workspace, frozenset())
    if "see" not in held:
        raise NotFound
    if permission not in held:
        raise NotAllowed(
            permission=permission, roles=roles_with(permission), names=names_who_can(workspace, permission)
        )


def roles_with(permission: str) -> list[str]:
    """Names of the roles that hold ``permission``."""
    return [role for role, names in ROLES.items() if permission in names]


def people_who_can(workspace: UUID, permission: str, group: Group | None = None) -> QuerySet[Person]:
    """Active people who hold ``permission``, and are in ``group`` if one is named, by name."""
    held = WorkspaceUserPermission.objects.filter(content_object_id=workspace, permission__codename=permission).values(
        "user_id"
    )
    people = Person.objects.filter(pk__in=held, is_active=True)
    if group is not None:
        people = people.filter(recourse_groups=group)
    return people.order_by("name")


def names_who_can(workspace: UUID, permission: str, group: Group | None = None, limit: int = 4) -> list[str]:
    """Up to ``limit`` names for a refusal's "{names} can"."""
    return list(people_who_can(workspace, permission, group).values_list("name", flat=True)[:limit])


@transaction.atomic
def grant(person: Person, workspace: Workspace, roles: Iterable[str]) -> None:
    """Make ``roles`` what ``person`` holds in ``workspace``; anything else is taken away."""
    wanted = frozenset[str]().union(*(ROLES[role] for role in roles))
    existing = WorkspaceUserPermission.objects.filter(user=person, content_object=workspace)
    existing.exclude(permission__codename__in=wanted).delete()
    have = set(existing.values_list("permission__codename", flat=True))
    missing = Permission.objects.filter(
        Q(codename__in=wanted - have), content_type__app_label="runs", content_type__model="workspace"
    )
    WorkspaceUserPermission.objects.bulk_create(
        WorkspaceUserPermission(user=person, content_object=workspace, permission=permission) for permission in missing
    )
