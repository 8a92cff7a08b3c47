"""``/runs/{id}/``: why this stands still, what ends that, who can, and what happens next."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_POST

from console import http
from console.forms import ActForm
from console.pills import pill_for
from console.preview import Link, Result
from console.screens import history, timeline, told
from console.screens.place import enter, enter_run, found, person_of
from console.screens.run_view import RunView
from console.screens.saying import act_of
from recovery.actions import runs as actions
from runs import queries
from runs.errors import RunsError
from runs.models import Run
from runs.states import EventKind, RunState

TABS: Final = {
    "timeline": gettext_lazy("Timeline"),
    "effects": gettext_lazy("Effects"),
    "checkpoints": gettext_lazy("Checkpoints"),
    "history": gettext_lazy("History"),
}
PER_PAGE: Final = 100


@require_GET
def run(request: HttpRequest, id: UUID) -> HttpResponse:
    """The page, on one of its four tabs."""
    tab = request.GET.get("tab", "timeline")
    view = _view(request, id)
    context = _context(view, tab if tab in TABS else "timeline")
    return render(request, "run/run.html", {**context, **_tab(request, view, context["tab"])})


@require_GET
def parts(request: HttpRequest, id: UUID) -> HttpResponse:
    """What may change in place: pill, gate, facts, counts, the effects; and how many rows are newer."""
    tab, seen = request.GET.get("tab", "timeline"), request.GET.get("seen", "")
    view = _view(request, id)
    last = _number(request, "last", view.run.head_seq)
    context = {**_context(view, tab), "last": last, "newer": max(view.run.head_seq - last, 0)}
    answer = render(request, "run/parts.html", context)
    return answer if seen == context["seen"] else told.say(answer, _heard(view))


@require_GET
def newer(request: HttpRequest, id: UUID) -> HttpResponse:
    """Timeline rows after ``last``, for a reader who is at the end."""
    last = _number(request, "last", 0)
    view = _view(request, id, after=last)
    newest = _last(view, last)
    context = {"view": view, "run": view.run, "rows": _rows(view), "last": newest}
    return render(request, "run/newer.html", {**context, "newer": view.run.head_seq - newest})


@require_GET
def changed(request: HttpRequest, id: UUID) -> HttpResponse:
    """The slot above a preview: empty, or that the run is not what the page shows any more."""
    run, _may = enter_run(request, id)
    if run.version == _number(request, "version", run.version):
        return HttpResponse()
    last = queries.events_page(run, limit=1).items[-1]
    what = last.actor.name if last.actor is not None else _("Recourse")
    context = {"at": told.moment(last.at.isoformat()), "what": what, "url": f"/runs/{id}/"}
    return render(request, "partials/changed.html", context)


@require_GET
def chain(request: HttpRequest, id: UUID) -> HttpResponse:
    """Verify the run's chain now. Reads only."""
    run, _may = enter_run(request, id)
    return http.result(request, history.verified(run))


@require_POST
def look(request: HttpRequest, id: UUID) -> HttpResponse:
    """Look again now: a worker takes the run; nothing outside changes (light)."""
    run, _may = enter_run(request, id)
    form = ActForm(request.POST)
    if not form.is_valid():
        raise Http404
    try:
        done = actions.look_again(id, actor=person_of(request), act=act_of(form, "runs.look", id))
    except RunsError as error:
        return told.refusal(request, error, again_url=f"/runs/{id}/")
    said = _("Asked at {at}. Not looked at yet: a worker takes it now. Event #{n}.")
    what = Result(said.format(at=told.moment(done.at.isoformat()), n=done.event), subject=_subject(run))
    context = {"result": what, "title": what.title, "subject": what.subject, "run": run}
    return http.part(request, "run/looked.html", context)


def _subject(run: Run) -> Link:
    return Link(f"/runs/{run.pk}/", run.title)


def _view(request: HttpRequest, id: UUID, after: int | None = None) -> RunView:
    """The run as the reader sees it, with the events that the address asks for. Raises Http404."""
    before = _number(request, "before", 0) or None
    if after is None and before is None:
        after = _number(request, "after", -1)
    span = {"before": before, "after": None if after == -1 else after, "events": PER_PAGE}
    many = PER_PAGE if request.GET.get("tab") == "checkpoints" else 1
    below = _number(request, "below", 0) or None
    detail = found(queries.run_detail, person_of(request), id, **span, checkpoints=many, below=below)
    return RunView(detail, person_of(request), enter(request, detail.run.workspace))


def _number(request: HttpRequest, name: str, otherwise: int) -> int:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else otherwise


def _context(view: RunView, tab: str) -> dict[str, Any]:
    run = view.run
    newest = [one for one in view.detail.checkpoints if one.seq == run.checkpoint_seq]
    counts = {
        "effects": len(view.detail.effects),
        "checkpoints": run.checkpoint_seq,
        "history": run.head_seq,
    }
    return {
        "title": run.title,
        "view": view,
        "run": run,
        "tab": tab,
        "checkpoint": newest[0] if newest else None,
        "tabs": [(name, label, counts.get(name)) for name, label in TABS.items()],
        "seen": f"{run.state} {run.waiting_on}",
        "may_claim": "claim" in view.may,
    }


def _tab(request: HttpRequest, view: RunView, tab: str) -> dict[str, Any]:
    """What only the chosen tab shows."""
    events = view.detail.events
    paged = {"earlier": events.earlier, "later": events.later, "last": _last(view, 0)}
    if tab == "timeline":
        return {"rows": _rows(view), **paged, "jumps": _jumps(view), "traceback": _traceback(view)}
    if tab == "history":
        return {"lines": history.lines(events.items), **paged}
    if tab == "checkpoints":
        rows = view.detail.checkpoints
        return {
            "checkpoints": history.checkpoints(rows),
            "below": rows[-1].seq if rows and rows[-1].seq > 1 else None,
        }
    return {}


def _rows(view: RunView) -> list[timeline.Row]:
    until = None if view.detail.events.later else view.now
    return timeline.rows(view.detail.events.items, view.run, view.effects, until=until)


def _last(view: RunView, otherwise: int) -> int:
    return view.detail.events.items[-1].seq if view.detail.events.items else otherwise


def _jumps(view: RunView) -> list[tuple[str, str]]:
    """Links to the first unknown and the last decision, where the history is longer than a page. Two queries."""
    if view.run.head_seq <= PER_PAGE:
        return []
    unknown = queries.events_page(view.run, after=0, limit=1, kinds=(EventKind.EFFECT_UNKNOWN,)).items
    decided = queries.events_page(view.run, limit=1, kinds=_DECISIONS).items
    named = ((_("First unknown"), unknown), (_("Last decision"), decided))
    return [(f"?after={e[0].seq - 1}#event-{e[0].seq}", words) for words, e in named if e]


_DECISIONS: Final = (
    EventKind.VERDICT_RECORDED,
    EventKind.VERDICT_REFUSED,
    EventKind.APPROVAL_SIGNED,
    EventKind.APPROVAL_REJECTED,
    EventKind.RUN_CANCEL_ASKED,
)


def _traceback(view: RunView) -> str:
    """What a step left behind when it broke, kept as evidence. One query, if the run is quarantined."""
    if view.run.state != RunState.QUARANTINED:
        return ""
    found_lines = queries.events_page(view.run, limit=1, kinds=(EventKind.RUN_QUARANTINED,)).items
    return str(found_lines[-1].data.get("evidence", "")) if found_lines else ""


def _heard(view: RunView) -> str:
    """ "Run state: cancelling. Waiting for 1 effect." """
    run = view.run
    state = str(pill_for("run", run.state, run.waiting_on).text(**view.pill, event=run.wait_event))
    said = _("Run state: {state}.").format(state=state.lower())
    n = sum(gate.effect is not None for gate in view.gates)
    if n:
        said += " " + ngettext("Waiting for {n} effect.", "Waiting for {n} effects.", n).format(n=n)
    return said
