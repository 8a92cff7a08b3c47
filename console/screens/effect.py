"""``/effects/{id}/``: one effect, laid side by side, so that a tired person can judge whether it happened."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.screens import changes, place, settling
from console.screens.effect_page import EffectPage, effect_page
from runs import queries
from runs.models import Run

PARTS: Final = frozenset({"head", "facts", "evidence"})
"""Parts of the page that fetch themselves again; none of them holds a button or a form."""


def url_of(id: UUID) -> str:
    """The page's address."""
    return f"/effects/{id}/"


def context_of(page: EffectPage, **more: Any) -> dict[str, Any]:
    """What the templates of the page read."""
    return {"page": page, "effect": page.effect, "run": page.effect.run, **more}


@require_safe
def effect(request: HttpRequest, id: UUID) -> HttpResponse:
    """The page, or one of its parts."""
    page = effect_page(request, id)
    part = request.GET.get("part", "")
    if part == "slot":
        return changes.effect_slot(request, page)
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
