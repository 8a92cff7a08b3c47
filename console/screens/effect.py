"""``/effects/{id}/``: one effect, laid side by side, so that a tired person can judge whether it happened."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from console import words
from console.forms import ActForm
from console.screens import changes, place, saying, settling, told
from console.screens.effect_page import EffectPage, effect_page
from recovery.actions import reviews
from runs import queries
from runs.errors import RunsError
from runs.models import Run

PARTS: Final = frozenset({"head", "facts", "evidence"})
"""Parts of the page that fetch themselves again; none of them holds a button or a form."""


HOLDS: Final = ("claim", "release", "take-over")


def url_of(id: UUID) -> str:
    """The page's address."""
    return f"/effects/{id}/"


def context_of(page: EffectPage, **more: Any) -> dict[str, Any]:
    """What the templates of the page read; light forms get their action ids here."""
    forms = {"check": ActForm.fresh(), "claim": ActForm.fresh()}
    return {"page": page, "effect": page.effect, "run": page.effect.run, "forms": forms, **more}


@require_safe
def effect(request: HttpRequest, id: UUID) -> HttpResponse:
    """The page, or one of its parts."""
    page = effect_page(request, id)
    part = request.GET.get("part", "")
    if part == "slot":
        return changes.effect_slot(request, page, seen=request.GET.get("seen", ""))
    template = f"effect/detail.html#{part}" if part in PARTS else "effect/detail.html"
    return render(request, template, context_of(page, title=page.title))


@require_safe
def after(request: HttpRequest, id: UUID) -> HttpResponse:
    """How the run goes on after a decision, fetched again at each change of the run."""
    found = place.found(queries.visible_effect, place.person_of(request), id)
    place.enter(request, found.workspace)
    return render(request, "effect/after.html#lines", after_of(found.run, id))


def after_of(run: Run, effect: UUID) -> dict[str, Any]:
    """What ``effect/after.html`` reads: how the run of ``effect`` stands now."""
    return {"run": run, "effect": effect, "line": settling.run_line(Run.objects.get(pk=run.pk))}


@require_POST
def claim(request: HttpRequest, id: UUID) -> HttpResponse:
    """Claim, release or take over the open item about this effect. Light: no reason, the opposite exists."""
    page = effect_page(request, id)
    form, hold = ActForm(request.POST), request.POST.get("hold", "")
    status, sentence = 200, ""
    if form.is_valid() and page.review is not None and hold in HOLDS:
        try:
            _hold(hold, page, act=saying.act_of(form, f"review-{hold}", page.review.pk))
        except RunsError as error:
            facts = told.readable(saying.filled(error).facts, me=page.reader)
            status, sentence = error.status, words.refusal(error.code, facts)
        page = effect_page(request, id)
    if not getattr(request, "htmx", False) and not sentence:
        return HttpResponseRedirect(url_of(id))
    template = "effect/detail.html#claim" if getattr(request, "htmx", False) else "effect/detail.html"
    context = context_of(page, title=page.title, refused=sentence, pressed=True)
    return render(request, template, context, status=status)


def _hold(hold: str, page: EffectPage, **act: Any) -> None:
    assert page.review is not None
    if hold == "release":
        reviews.release(page.review.pk, actor=page.reader, **act)
    else:
        reviews.claim(page.review.pk, actor=page.reader, take_over=hold == "take-over", **act)
