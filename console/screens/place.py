"""Where a request is: whose it is, in which workspace, and what that person may do there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest

from runs import access, queries
from runs.errors import NotFound
from runs.models import Person, Run, Workspace
from runs.queries import BadCursor

LAST = "workspace"
"""Key of the session: the slug of the workspace that was used last."""


def person_of(request: HttpRequest) -> Person:
    """The signed-in person; the middleware lets nobody else in."""
    return cast("Person", request.user)


def found[T](query: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """What ``query`` finds. Foreign and missing are the same 404 (invariant 14); a bad cursor is a 400."""
    try:
        return query(*args, **kwargs)
    except NotFound as error:
        raise Http404 from error
    except BadCursor as error:
        raise BadRequest from error


def enter(request: HttpRequest, workspace: Workspace) -> frozenset[str]:
    """Be in ``workspace`` for this request, remember it as last used; returns what the person may do there.

    A whole page also gets the number beside "Inbox".
    """
    person = person_of(request)
    request.workspace = workspace  # type: ignore[attr-defined]
    if request.session.get(LAST) != workspace.slug:
        request.session[LAST] = workspace.slug
    if not getattr(request, "htmx", False):
        counts = queries.inbox_counts(workspace.pk, person)
        request.inbox_counts = counts  # type: ignore[attr-defined]
        request.inbox_count = counts.everyone  # type: ignore[attr-defined]
    return access.permissions(person).get(workspace.pk, frozenset())


def enter_named(request: HttpRequest, slug: str) -> tuple[Workspace, frozenset[str]]:
    """The workspace that the address names, and what the person may do there. Raises Http404."""
    workspace = found(queries.visible_workspace, person_of(request), slug)
    return workspace, enter(request, workspace)


def enter_run(request: HttpRequest, id: UUID) -> tuple[Run, frozenset[str]]:
    """The run that the address names, its workspace entered. Raises Http404."""
    run = found(queries.visible_run, person_of(request), id)
    return run, enter(request, run.workspace)


def last_used(request: HttpRequest) -> Workspace | None:
    """The workspace that was used last, if it is still seen; else the first one; None for nobody's."""
    seen = list(access.workspaces_for(person_of(request)))
    slug = request.session.get(LAST)
    return next((workspace for workspace in seen if workspace.slug == slug), seen[0] if seen else None)
