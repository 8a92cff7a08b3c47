"""``/w/{slug}/runs/``: find the run that somebody asks about, or those that share a fate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET

from console.pills import PILLS, Pill
from console.screens import filters, gates, told
from console.screens.filters import Filters
from console.screens.place import enter_named, enter_run, found, person_of
from runs import queries
from runs.models import Effect, Run, Workspace
from runs.queries import Cursor, Page, RunRow
from runs.states import EffectState, RunState, WaitingOn

PER_PAGE: Final = 50

WORDS: Final = {
    EffectState.DISPUTED: gettext_lazy("disputed"),
    EffectState.UNKNOWN: gettext_lazy("unknown"),
    EffectState.PARTIAL: gettext_lazy("in part"),
    EffectState.PLANNED: gettext_lazy("planned"),
    EffectState.AWAITING_APPROVAL: gettext_lazy("to sign"),
    EffectState.IN_FLIGHT: gettext_lazy("in flight"),
    EffectState.ACCEPTED: gettext_lazy("taken"),
    EffectState.READY: gettext_lazy("ready"),
    EffectState.SUCCEEDED: gettext_lazy("happened"),
    EffectState.REJECTED: gettext_lazy("refused"),
    EffectState.DECLINED: gettext_lazy("not signed"),
    EffectState.NOT_APPLIED: gettext_lazy("did not happen"),
    EffectState.CANCELLED: gettext_lazy("cancelled"),
    EffectState.EXPIRED: gettext_lazy("expired"),
    EffectState.COMPENSATED: gettext_lazy("mended"),
}
"""A count's word in the effects cell, in the order in which they are said."""

WAITS: Final = {
    EffectState.DISPUTED: gettext_lazy("a decision: the evidence disagrees"),
    EffectState.UNKNOWN: gettext_lazy("proof from {dependency}"),
    EffectState.AWAITING_APPROVAL: gettext_lazy("signatures"),
    EffectState.ACCEPTED: gettext_lazy("the result from {dependency}"),
    EffectState.IN_FLIGHT: gettext_lazy("an answer from {dependency}"),
    EffectState.READY: gettext_lazy("its turn to be sent to {dependency}"),
    EffectState.PLANNED: gettext_lazy("its turn in the plan"),
}


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run of the list. ``open``: its unsettled effects."""

    row: RunRow
    open: list[Effect]

    @property
    def run(self) -> Run:
        return self.row.run

    @property
    def effects(self) -> list[tuple[Pill, int, str]]:
        """Look, number and word of each state that an effect is in."""
        counts = self.row.effects
        return [(PILLS["effect"][state], counts[state], str(word)) for state, word in WORDS.items() if state in counts]

    @property
    def urgent(self) -> Effect | None:
        return min(self.open, key=lambda e: gates.URGENT.index(EffectState(e.state)), default=None)

    @property
    def waits_for(self) -> str:
        """What it waits for, in a few words; empty for an ended run."""
        run, effect = self.run, self.urgent
        if run.ended:
            return ""
        stands = (WaitingOn.PERSON, WaitingOn.DEPENDENCY)
        if run.state in (RunState.QUARANTINED, RunState.COMPENSATING) or run.waiting_on in stands:
            return "; ".join(gates.why_of(reason) for reason in run.gate)
        if effect is not None:
            return str(WAITS[EffectState(effect.state)]).format(dependency=effect.dependency.name)
        if run.waiting_on == WaitingOn.EVENT:
            return _("the event {event}").format(event=run.wait_event)
        return _("a worker") if run.state in (RunState.ACCEPTED, RunState.CANCELLING) else ""

    @property
    def since(self) -> Any:
        """Since when it waits for that; None where nobody asked."""
        return None if self.urgent is None else self.urgent.unknown_since or self.urgent.requested_at


def lines(workspace: Workspace, rows: list[RunRow]) -> list[RunLine]:
    """Rows with their unsettled effects. One query."""
    unsettled = queries.open_effects(workspace.pk, [row.run.pk for row in rows if not row.run.ended])
    return [RunLine(row, unsettled.get(row.run.pk, [])) for row in rows]


@require_GET
def runs(request: HttpRequest, slug: str) -> HttpResponse:
    """The list, newest first, with how many match."""
    workspace, _may = enter_named(request, slug)
    types = queries.run_types(workspace.pk)
    asked = Filters.of(request.GET, types)
    page: Page[RunRow] = Page([])
    if not asked.unknown:
        page = found(queries.runs_page, workspace.pk, **asked.wanted, cursor=request.GET.get("cursor"), limit=PER_PAGE)
    context = {"title": _("Runs"), "asked": asked, "lines": lines(workspace, page.items), "page": page}
    return render(request, "runs/runs.html", {**context, **_around(workspace, asked, types, page)})


def _around(workspace: Workspace, asked: Filters, types: list[str], page: Page[RunRow]) -> dict[str, Any]:
    count = queries.runs_count(workspace.pk, **asked.wanted) if not asked.unknown else None
    first = page.items[0].run.pk if page.items else ""
    return {
        "count": count,
        "all": queries.runs_count(workspace.pk) if not page.items and asked.chosen else None,
        "newer_url": f"?{asked.query(cursor=page.previous)}" if page.previous else "",
        "older_url": f"?{asked.query(cursor=page.next)}" if page.next else "",
        "news_query": "" if page.previous else asked.query(after=first),
        "choices": [
            ("state", filters.NAMES["state"], _choices(RunState.values, asked.state, filters.state_words)),
            ("type", filters.NAMES["type"], _choices(types, asked.type, str)),
            ("on", filters.NAMES["on"], _choices(WaitingOn.values, asked.on, filters.waiting_words)),
        ],
    }


def _choices(values: list[str], chosen: tuple[str, ...], words: Any) -> list[tuple[str, str, bool]]:
    return [(value, words(value), value in chosen) for value in values]


@require_GET
def news(request: HttpRequest, slug: str) -> HttpResponse:
    """How many runs came since the list was read. The list itself does not move."""
    workspace = found(queries.visible_workspace, person_of(request), slug)
    asked = Filters.of(_without(request, "after"), queries.run_types(workspace.pk))
    newer: Page[RunRow] = Page([])
    try:
        back = queries.encode("runs", Cursor((UUID(request.GET.get("after", "")),), back=True))
    except ValueError:
        back = None  # the page that was read is not the first one, or it was empty
    if not asked.unknown:
        newer = queries.runs_page(workspace.pk, **asked.wanted, cursor=back, limit=PER_PAGE)
    n, more = len(newer.items), bool(newer.previous)
    words = ngettext("{n} new", "{n} new", n).format(n=f"{n}+" if more else n) if n else ""
    context = {"words": words, "url": f"/w/{slug}/runs/?{asked.query()}"}
    answer = render(request, "partials/news_bar.html", context)
    return told.say(answer, _("Runs: {words}.").format(words=words)) if n else answer


def _without(request: HttpRequest, name: str) -> Any:
    query = request.GET.copy()
    query.pop(name, None)
    return query


@require_GET
def row(request: HttpRequest, id: UUID) -> HttpResponse:
    """One row again."""
    run, _may = enter_run(request, id)
    found_rows = queries.run_rows(run.workspace_id, [id])
    return render(request, "runs/row.html", {"line": lines(run.workspace, found_rows)[0]})
