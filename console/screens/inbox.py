"""``/w/{slug}/inbox/``: what needs a person now and what it costs to wait (DESIGN section 4, D6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET

from console.pills import PILLS
from console.screens import told
from console.screens.inbox_lines import lines
from console.screens.place import enter_named, found, person_of
from runs import queries
from runs.models import Dependency, Workspace
from runs.queries import InboxCounts
from runs.states import ReviewKind

VIEWS: Final[dict[str, str | Promise]] = {
    "mine": gettext_lazy("Mine"),
    "unclaimed": gettext_lazy("Unclaimed"),
    "everyone": gettext_lazy("Everyone"),
}
PER_PAGE: Final = 50


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for; a value that is not known is as if it were not there."""

    view: str
    kind: tuple[str, ...]
    dependency: tuple[str, ...]

    @classmethod
    def of(cls, query: QueryDict) -> Asked:
        view = query.get("view", "everyone")
        kinds = tuple(kind for kind in query.getlist("kind") if kind in ReviewKind.values)
        names = tuple(name[:80] for name in query.getlist("dependency") if name and "\x00" not in name)
        return cls(view if view in (*VIEWS, "checking") else "everyone", kinds, names)

    @property
    def filters(self) -> dict[str, Any]:
        return {"kind": self.kind, "dependency": self.dependency}

    def query(self, **more: Any) -> str:
        """The same as a query string, with ``more`` on top."""
        whole = {"view": self.view, "kind": self.kind, "dependency": self.dependency, **more}
        return urlencode({name: value for name, value in whole.items() if value}, doseq=True)


@require_GET
def inbox(request: HttpRequest, slug: str) -> HttpResponse:
    """The list, in the order of the moment it was read."""
    workspace, may = enter_named(request, slug)
    asked = Asked.of(request.GET)
    if asked.view == "checking":
        return _checking(request, workspace, asked)
    page = found(
        queries.inbox_page,
        workspace.pk,
        person_of(request),
        view=asked.view,
        cursor=request.GET.get("cursor"),
        limit=PER_PAGE,
        **asked.filters,
    )
    shown = lines(page.items, person_of(request))
    context = {
        **_around(request, workspace, asked, may),
        "lines": shown,
        "page": page,
        **_emptiness(request, asked),
    }
    news = {
        "as_of": page.as_of.isoformat() if page.as_of else "",
        "shown": "".join(line.mark for line in shown),
    }
    context["news_query"] = asked.query(**news)
    context |= {
        "next_query": asked.query(cursor=page.next),
        "previous_query": asked.query(cursor=page.previous),
    }
    return render(request, "inbox/inbox.html", context)


def _checking(request: HttpRequest, workspace: Workspace, asked: Asked) -> HttpResponse:
    """Recourse's turn: what it still finds out by itself."""
    cursor = request.GET.get("cursor")
    page = found(queries.being_checked_page, workspace.pk, cursor=cursor, limit=PER_PAGE)
    context = {**_around(request, workspace, asked, frozenset()), "effects": page.items, "page": page}
    context |= {
        "next_query": asked.query(cursor=page.next),
        "previous_query": asked.query(cursor=page.previous),
    }
    return render(request, "inbox/inbox.html", context)


def _around(request: HttpRequest, workspace: Workspace, asked: Asked, may: frozenset[str]) -> dict[str, Any]:
    counts: InboxCounts = request.inbox_counts  # type: ignore[attr-defined]  # place.enter sets it on a whole page
    chosen = len(asked.kind) + len(asked.dependency)
    return {
        "title": page_title(counts),
        "asked": asked,
        "may_claim": "claim" in may,
        "claimers": None if "claim" in may else told.who_can(workspace.pk, "claim", person_of(request)),
        "kinds": [(kind, PILLS["review"][kind].words, kind in asked.kind) for kind in ReviewKind.values],
        "dependencies": [
            (name, name in asked.dependency)
            for name in Dependency.objects.filter(workspace=workspace).order_by("name").values_list("name", flat=True)
        ],
        "chosen": chosen,
        **tabs(workspace, asked, counts),
    }


def tabs(workspace: Workspace, asked: Asked, counts: InboxCounts) -> dict[str, Any]:
    """The tabs with their numbers, and what Recourse is still checking."""
    numbers: Mapping[str, int] = {
        "mine": counts.mine,
        "unclaimed": counts.unclaimed,
        "everyone": counts.everyone,
    }
    shown = [(view, label, _number(numbers[view]), f"?{asked.query(view=view)}") for view, label in VIEWS.items()]
    return {"tabs": shown, "counts": counts, "checking": queries.being_checked(workspace.pk)}


def _number(n: int) -> str:
    return f"{n:,}+" if n >= queries.MOST_COUNTED else f"{n:,}"


def page_title(counts: InboxCounts) -> str:
    """The tab's title, with the number of items in front."""
    name = _("Inbox")
    return f"({_number(counts.everyone)}) {name}" if counts.everyone else name


def _emptiness(request: HttpRequest, asked: Asked) -> dict[str, Any]:
    """What an empty list says: nothing at all, or nothing under this filter."""
    counts: InboxCounts = request.inbox_counts  # type: ignore[attr-defined]
    if not counts.everyone:
        return {}
    words = [str(VIEWS[asked.view])] if asked.view != "everyone" else []
    words += [str(PILLS["review"][kind].words) for kind in asked.kind] + list(asked.dependency)
    return {"filter_words": ", ".join(words), "without": _number(counts.everyone)}


@require_GET
def news(request: HttpRequest, slug: str) -> HttpResponse:
    """What came, changed and went since the list was read, and the tabs' numbers. The list does not move."""
    person, asked = person_of(request), Asked.of(request.GET)
    workspace = found(queries.visible_workspace, person, slug)
    counts = queries.inbox_counts(workspace.pk, person)
    new, changed, gone = _since(request, workspace, asked)
    context = {"words": _news_words(new, changed, gone), "title": page_title(counts), "asked": asked}
    context |= {"url": f"/w/{slug}/inbox/?{asked.query()}", "workspace": workspace}
    answer = render(request, "inbox/news.html", {**context, **tabs(workspace, asked, counts)})
    return told.say(answer, _announcement(new, counts)) if new else answer


def _since(request: HttpRequest, workspace: Workspace, asked: Asked) -> tuple[int, int, int]:
    """How many items are new, changed and gone, against what the page shows."""
    person, seen = person_of(request), _seen(request.GET.get("shown", ""))
    try:
        as_of = queries.moment(request.GET.get("as_of", ""))
    except ValueError:
        return 0, 0, 0
    view: Any = asked.view if asked.view in VIEWS else "everyone"
    now = queries.inbox_page(workspace.pk, person, view=view, limit=queries.MOST_ROWS, **asked.filters)
    there = {line.review.pk: line for line in lines(queries.inbox_rows(workspace.pk, person, list(seen)), person)}
    new = [row for row in now.items if row.review.pk not in seen and row.review.opened_at > as_of]
    stay = [id for id in seen if id in there and not there[id].gone]
    changed = [id for id in stay if there[id].mark[32:] != seen[id]]
    return len(new), len(changed), len(seen) - len(stay)


@require_GET
def count(request: HttpRequest, slug: str) -> HttpResponse:
    """The number beside "Inbox" in the bars."""
    workspace = found(queries.visible_workspace, person_of(request), slug)
    counts = queries.inbox_counts(workspace.pk, person_of(request))
    return render(request, "inbox/count.html", {"n": _number(counts.everyone)})


def _seen(text: str) -> dict[UUID, str]:
    """Ids and marks of the rows that the page shows, from the query; nonsense is left out."""
    found: dict[UUID, str] = {}
    for start in range(0, min(len(text), 40 * queries.MOST_ROWS), 40):
        piece = text[start : start + 40]
        try:
            found[UUID(piece[:32])] = piece[32:]
        except ValueError:
            continue
    return found


def _news_words(new: int, changed: int, gone: int) -> str:
    said = []
    if new:
        said.append(ngettext("{n} new", "{n} new", new).format(n=new))
    if changed:
        said.append(ngettext("{n} changed", "{n} changed", changed).format(n=changed))
    if gone:
        said.append(ngettext("{n} gone", "{n} gone", gone).format(n=gone))
    return ", ".join(said)


def _announcement(new: int, counts: InboxCounts) -> str:
    return ngettext(
        "Inbox: {new} new, {n} needs a person.", "Inbox: {new} new, {n} need a person.", counts.everyone
    ).format(new=new, n=counts.everyone)
