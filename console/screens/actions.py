"""``/actions/{uuid}/``: was it recorded? For a person whose answer was lost on the way (D7)."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from console.screens.place import enter, person_of
from runs import queries
from runs.models import Action

DID: Final[dict[str, str | Promise]] = {
    "runs.accept": gettext_lazy("a run was started"),
    "runs.signal": gettext_lazy("an event was sent to the run"),
    "runs.cancel": gettext_lazy("the run was asked to be cancelled"),
    "runs.look": gettext_lazy("the run was asked to be looked at again"),
    "reviews.claim": gettext_lazy("the item was claimed"),
    "reviews.release": gettext_lazy("the item was given back"),
    "effects.check": gettext_lazy("the dependency was asked"),
    "verdicts.record": gettext_lazy("a decision about the outcome"),
    "verdicts.confirm": gettext_lazy("the answer to another person's decision"),
    "approvals.sign": gettext_lazy("a signature"),
    "approvals.reject": gettext_lazy("a rejection"),
    "approvals.withdraw": gettext_lazy("a signature was taken back"),
    "approvals.renew": gettext_lazy("the signatures were asked for again"),
}
"""What a route did, for "Recorded at {t}: ..."."""


@require_GET
def action(request: HttpRequest, id: UUID) -> HttpResponse:
    """What this person recorded under the id. Nothing recorded and somebody else's look the same."""
    done = queries.actions_of(person_of(request), id)
    if done:
        enter(request, done[0].workspace)
    title = _("It was recorded") if done else _("Not recorded")
    context = {"title": title, "done": [_line(one) for one in done], "id": id}
    return render(request, "action/action.html", context, status=200 if done else 404)


def _line(one: Action) -> dict[str, Any]:
    run = one.result.get("run")
    return {"at": one.at, "what": DID.get(one.route, one.route), "event": one.result["last"], "run": run}
