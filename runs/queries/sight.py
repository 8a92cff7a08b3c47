"""What a person sees at all. Foreign and missing raise the same NotFound, by one query (invariant 14)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Model, QuerySet

from runs.errors import NotFound
from runs.models import (
    Approval,
    Effect,
    Person,
    Restore,
    Review,
    Run,
    Verdict,
    Workspace,
    WorkspaceUserPermission,
)


def seen_by(person: Person) -> QuerySet[WorkspaceUserPermission, Any]:
    """Ids of the workspaces that ``person`` sees, as a subquery; none for an account that is not active."""
    return WorkspaceUserPermission.objects.filter(
        user=person.pk, user__is_active=True, permission__codename="see"
    ).values("content_object_id")


def visible[M: Model](rows: QuerySet[M], person: Person, within: UUID | None = None) -> QuerySet[M]:
    """``rows`` (of a model with a workspace) that ``person`` sees; ``within``: of this workspace alone."""
    rows = rows.filter(workspace__in=seen_by(person))
    return rows if within is None else rows.filter(workspace=within)


def only[M: Model](rows: QuerySet[M], person: Person, id: UUID, within: UUID | None = None) -> M:
    """The row ``id`` of ``rows`` if ``person`` sees it. Raises NotFound."""
    row = visible(rows, person, within).filter(pk=id).first()
    if row is None:
        raise NotFound
    return row


def visible_workspace(person: Person, slug: str, within: UUID | None = None) -> Workspace:
    """The workspace with this ``slug``. Raises NotFound."""
    rows = Workspace.objects.filter(pk__in=seen_by(person), slug=slug)
    if within is not None:
        rows = rows.filter(pk=within)
    row = rows.first()
    if row is None:
        raise NotFound
    return row


def visible_run(person: Person, id: UUID, within: UUID | None = None) -> Run:
    """The run, with its workspace. Raises NotFound."""
    return only(Run.objects.select_related("workspace"), person, id, within)


def visible_effect(person: Person, id: UUID, within: UUID | None = None) -> Effect:
    """The effect, with workspace, run and dependency. Raises NotFound."""
    return only(
        Effect.objects.select_related("workspace", "run", "dependency"),
        person,
        id,
        within,
    )


def visible_approval(person: Person, id: UUID, within: UUID | None = None) -> Approval:
    """The approval, with workspace, run, effect and group. Raises NotFound."""
    rows = Approval.objects.select_related("workspace", "run", "effect__dependency", "group")
    return only(rows, person, id, within)


def visible_verdict(person: Person, id: UUID, within: UUID | None = None) -> Verdict:
    """The verdict, with workspace, effect and who proposed it. Raises NotFound."""
    return only(
        Verdict.objects.select_related("workspace", "run", "effect", "person"),
        person,
        id,
        within,
    )


def visible_restore(person: Person, id: UUID, within: UUID | None = None) -> Restore:
    """The restore of the record as it holds a workspace, with who asked and who let it go on. Raises NotFound."""
    return only(Restore.objects.select_related("workspace", "asked_by", "released_by"), person, id, within)


def visible_review(person: Person, id: UUID, within: UUID | None = None) -> Review:
    """The inbox item, with what it is about. Raises NotFound."""
    rows = Review.objects.select_related("workspace", "run", "effect", "approval", "verdict", "claimed_by")
    return only(rows, person, id, within)
