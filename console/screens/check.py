"""``/effects/{id}/readback/``: ask the dependency now. Reads only; what it says is kept as evidence."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from console import http
from console.forms import ActForm
from console.screens import comparing, effect_facts, place, saying
from console.screens.effect import after_of, context_of
from console.screens.effect_page import EffectPage, effect_page
from recovery.actions import effects
from runs import queries
from runs.errors import RunsError
from runs.models import Evidence
from runs.states import Claim

_WHY: Final[dict[str, str | Promise]] = {
    "timeout": gettext_lazy("nothing came in time"),
    "connection_closed": gettext_lazy("the connection closed"),
    "connect_refused": gettext_lazy("it took no connection"),
    "unreadable_answer": gettext_lazy("what came could not be read"),
    "list_not_complete": gettext_lazy("its list was not whole"),
}
"""Why a check brought nothing, by the port's word."""


@require_POST
def readback(request: HttpRequest, id: UUID) -> HttpResponse:
    """Check now. The same press twice asks once and shows the first answer."""
    reader = place.person_of(request)
    found = place.found(queries.visible_effect, reader, id)
    place.enter(request, found.workspace)
    form = ActForm(request.POST)
    if not form.is_valid():
        return http.bad_request(request)
    try:
        done = effects.check(id, actor=reader, act=saying.act_of(form, "effects.check", id))
    except RunsError as error:
        return saying.refuse(request, error)
    page = effect_page(request, id)
    context = context_of(page, title=page.title, checked=checked(page, done.facts["evidence"]))
    alone = getattr(request, "htmx", False)
    return render(request, "effect/checked.html" if alone else "effect/detail.html", context)


def checked(page: EffectPage, evidence: str) -> dict[str, Any]:
    """What ``effect/checked.html`` says about the check that left ``evidence``."""
    one = next(row for row in page.detail.evidence if str(row.pk) == evidence)
    answered = one.claim != Claim.UNAVAILABLE
    return {
        "heading": heading(page, one),
        "line": page.settled_line or (comparing.agreement(page.effect, one) if answered else ""),
        "after": after_of(page.effect.run, page.effect.pk) if page.effect.settled else None,
    }


def heading(page: EffectPage, one: Evidence) -> str:
    """ "cards-eu answered at 03:13:20: 1 refund on charge ch_3QK9"; or that it did not, and why."""
    facts: dict[str, str] = {"dependency": page.dependency, "at": saying.clock(one.received_at)}
    if one.claim != Claim.UNAVAILABLE:
        line = _("{dependency} answered at {at}: {found}")
        return line.format(**facts, found=effect_facts.found(page.effect, one))
    word = str(one.detail.get("error") or "")
    why = _WHY.get(word) or (_("it said {n}").format(n=word[5:]) if word.startswith("http_") else word)
    line = _("{dependency} did not answer at {at}: {why}. Nothing changed.")
    return line.format(**facts, why=why)
