"""``/reviews/{id}/...``: one row of the inbox again, and who has the item: claim and release (both light)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from console import http
from console.forms import ActForm
from console.screens import told
from console.screens.inbox_lines import Line, lines
from console.screens.place import enter, found, person_of
from console.screens.saying import act_of
from recovery.actions import reviews as actions
from recovery.engine.refusals import ClaimedByOther, NotClaimed
from runs import queries
from runs.errors import RunsError
from runs.models import Review


class ClaimForm(ActForm):
    """``take_over``: knowingly take what somebody else has."""

    take_over = forms.BooleanField(required=False, widget=forms.HiddenInput)


@require_GET
def row(request: HttpRequest, id: UUID) -> HttpResponse:
    """One row again; a departed one stays, greyed, with what became of it."""
    line, may = _line(request, id)
    return render(request, "inbox/row.html", {"line": line, "may_claim": may})


def _line(request: HttpRequest, id: UUID) -> tuple[Line, bool]:
    """The item as a row, and whether the person may claim. Raises Http404."""
    review: Review = found(queries.visible_review, person_of(request), id)
    may = enter(request, review.workspace)
    rows = queries.inbox_rows(review.workspace_id, person_of(request), [id])
    return lines(rows, person_of(request))[0], "claim" in may


@require_http_methods(["POST", "DELETE"])
def claim(request: HttpRequest, id: UUID) -> HttpResponse:
    """Say "I have this"; DELETE gives it back."""
    if request.method == "DELETE":
        return _release(request, id, ActForm(QueryDict(request.body)))
    line, _may = _line(request, id)
    form = ClaimForm(request.POST)
    if not form.is_valid():
        raise Http404
    act = act_of(form, "reviews.claim", id)
    try:
        actions.claim(id, actor=person_of(request), act=act, take_over=form.cleaned_data["take_over"])
    except ClaimedByOther as error:
        return _control(request, id, taken=told.readable(error.facts, me=person_of(request)), status=409)
    except RunsError as error:
        return told.refusal(request, error, again_url=line.url)
    return _control(request, id, just="claimed")


@require_POST
def release(request: HttpRequest, id: UUID) -> HttpResponse:
    """Give one's own claim back."""
    return _release(request, id, ActForm(request.POST))


def _release(request: HttpRequest, id: UUID, form: ActForm) -> HttpResponse:
    line, _may = _line(request, id)
    if not form.is_valid():
        raise Http404
    act = act_of(form, "reviews.release", id)
    try:
        actions.release(id, actor=person_of(request), act=act)
    except NotClaimed:
        return _control(request, id, status=409)  # it shows who has it now
    except RunsError as error:
        return told.refusal(request, error, again_url=line.url)
    return _control(request, id, just="released")


def _control(
    request: HttpRequest,
    id: UUID,
    *,
    just: str = "",
    taken: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Who has it now, in place; without htmx back to the page that the form was on."""
    line, may = _line(request, id)
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}):
        back = f"/w/{line.review.workspace.slug}/inbox/"
    if not getattr(request, "htmx", False) and status == 200:
        return HttpResponseRedirect(back)
    context = {"review": line.review, "may_claim": may, "just": just, "taken": taken, "back": back}
    return http.part(request, "inbox/claim.html", {**context, "title": line.title}, status=status)
