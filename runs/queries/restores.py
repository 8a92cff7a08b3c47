"""What a restore of the record holds back in a workspace, and what it had lost."""

from __future__ import annotations

from uuid import UUID

from runs.models import Recovered, Restore
from runs.queries import paging
from runs.queries.paging import Page
from runs.restored import RestoreState


def holding(workspace: UUID) -> Restore | None:
    """The restore that holds the workspace's sends, for the banner; None: nothing is held. One query, by an index."""
    held = Restore.objects.filter(workspace_id=workspace).exclude(state=RestoreState.RELEASED)
    return held.select_related("asked_by").order_by("-epoch").first()


def any_holding() -> bool:
    """Whether anything is held anywhere: all that ``/healthz`` says."""
    return Restore.objects.exclude(state=RestoreState.RELEASED).exists()


def restores(workspace: UUID) -> list[Restore]:
    """Every restore of the workspace, the latest first; there are few, at most 50 are told."""
    rows = Restore.objects.filter(workspace_id=workspace).select_related("asked_by", "released_by")
    return list(rows.order_by("-epoch")[:50])


def recovered_page(restore: Restore, *, cursor: str | None = None, limit: int = 50) -> Page[Recovered]:
    """What was found that the restored record did not know, oldest find first. Raises BadCursor."""
    limit = paging.clamp(limit)
    at = paging.decode("recovered", cursor, UUID)
    rows = Recovered.objects.filter(restore=restore).select_related("dependency")
    if at is None:
        rows = rows.order_by("id")
    elif at.back:
        rows = rows.filter(pk__lt=at.key[0]).order_by("-id")
    else:
        rows = rows.filter(pk__gt=at.key[0]).order_by("id")
    return paging.cut("recovered", list(rows[: limit + 1]), limit, at, lambda row: (row.pk,))
