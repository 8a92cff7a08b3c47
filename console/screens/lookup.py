"""Addresses without a workspace lead to the last used one; an item of the inbox leads to its subject."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from console.screens.inbox_lines import subject_url
from console.screens.place import found, last_used, person_of
from runs import queries


@require_GET
def to_list(request: HttpRequest, name: str = "inbox") -> HttpResponse:
    """``/``, ``/inbox/`` and ``/runs/``: the list of the last used workspace, the query kept."""
    workspace = last_used(request)
    if workspace is None:
        return render(request, "inbox/nowhere.html", {"title": _("No workspace yet")}, status=403)
    query = request.META.get("QUERY_STRING", "")
    return HttpResponseRedirect(f"/w/{workspace.slug}/{name}/" + (f"?{query}" if query else ""))


@require_GET
def item(request: HttpRequest, id: UUID) -> HttpResponse:
    """``/inbox/{id}/``: what the item is about."""
    return HttpResponseRedirect(subject_url(found(queries.visible_review, person_of(request), id)))
