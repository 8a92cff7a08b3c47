"""Lists of runs: newest first, filtered, searched, counted up to a bound. One workspace each."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import FETCH_RAISE, BooleanField, Count, F, Func, QuerySet, TextField
from django.db.models.functions import Cast, Right

from runs import clock
from runs.models import Effect, Run
from runs.queries import paging
from runs.queries.paging import MOST_COUNTED, Page
from runs.states import EFFECT_OPEN, EffectState, RunState

_WHOLE = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_TAIL = re.compile(r"[0-9a-f]{4}-?[0-9a-f]{4}", re.IGNORECASE)
_LONGEST_REFERENCE = 120


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run of a list with how many effects it has in each state, in EffectState's order, none left at 0."""

    run: Run
    effects: dict[EffectState, int]


class _OneOf(Func):
    """Whether a value is in an array."""

    template = "%(expressions)s)"
    arg_joiner = " = ANY("
    arity = 2
    output_field = BooleanField()


def runs_page(
    workspace: UUID,
    *,
    states: Collection[str] = (),
    types: Collection[str] = (),
    waiting_on: Collection[str] = (),
    q: str = "",
    cursor: str | None = None,
    limit: int = 50,
) -> Page[RunRow]:
    """A page of runs, newest first. Two queries, whatever the page holds.

    ``q``: a whole id, its last 8 hex digits (``8f3c-21ab``), or a business reference as it was given.
    ``waiting_on`` finds waiting runs only. What is not loaded raises instead of querying. Raises BadCursor.
    """
    limit = paging.clamp(limit)
    at = paging.decode("runs", cursor, UUID)
    rows = _matching(workspace, states, types, waiting_on, q)
    if at is None:
        rows = rows.order_by("-id")
    elif at.back:
        rows = rows.filter(id__gt=at.key[0]).order_by("id")
    else:
        rows = rows.filter(id__lt=at.key[0]).order_by("-id")
    found = list(rows.select_related("workspace", "started_by").fetch_mode(FETCH_RAISE)[: limit + 1])
    page = paging.cut("runs", found, limit, at, lambda run: (run.pk,))
    counts = effect_counts(workspace, [run.pk for run in page.items])
    return Page(
        [RunRow(run, counts.get(run.pk, {})) for run in page.items],
        page.next,
        page.previous,
    )


def runs_count(
    workspace: UUID,
    *,
    states: Collection[str] = (),
    types: Collection[str] = (),
    waiting_on: Collection[str] = (),
    q: str = "",
) -> paging.Count:
    """How many runs match, counting to MOST_COUNTED, and when that was."""
    rows = _matching(workspace, states, types, waiting_on, q).order_by()
    return paging.Count.of(rows[: MOST_COUNTED + 1].count(), clock.now())


def run_types(workspace: UUID) -> list[str]:
    """Names of the run types that the workspace has runs of. Jumps along the index, one row a type."""
    sql = """
        WITH RECURSIVE t AS (
            (SELECT type FROM runs_run WHERE workspace_id = %s ORDER BY type LIMIT 1)
            UNION ALL
            SELECT (SELECT type FROM runs_run WHERE workspace_id = %s AND type > t.type ORDER BY type LIMIT 1)
            FROM t WHERE t.type IS NOT NULL
        ) SELECT type FROM t WHERE type IS NOT NULL"""
    with connection.cursor() as cursor:
        cursor.execute(sql, [workspace, workspace])
        return [name for (name,) in cursor.fetchall()]


def run_rows(workspace: UUID, ids: Collection[UUID]) -> list[RunRow]:
    """The runs ``ids`` of the workspace, newest first: for a row that reads itself again. Two queries."""
    rows = Run.objects.filter(workspace=workspace, pk__in=list(ids)[: paging.MOST_ROWS]).order_by("-id")
    counts = effect_counts(workspace, ids)
    found = rows.select_related("workspace", "started_by").fetch_mode(FETCH_RAISE)
    return [RunRow(run, counts.get(run.pk, {})) for run in found]


def open_effects(workspace: UUID, runs: Iterable[UUID]) -> dict[UUID, list[Effect]]:
    """The unsettled effects of each of ``runs`` with their dependency, without payloads. One query.

    At most MOST_ROWS: a list names one or two a run.
    """
    ids = list(runs)
    if not ids:
        return {}
    rows = Effect.objects.filter(workspace=workspace, run__in=ids, state__in=sorted(EFFECT_OPEN))
    rows = rows.select_related("dependency").defer("body", "params", "request", "result")
    found: dict[UUID, list[Effect]] = {}
    for effect in rows.order_by("run", "ordinal").fetch_mode(FETCH_RAISE)[: paging.MOST_ROWS]:
        found.setdefault(effect.run_id, []).append(effect)
    return found


def effect_counts(workspace: UUID, runs: Iterable[UUID]) -> dict[UUID, dict[EffectState, int]]:
    """Effects by state of each of ``runs``. One query; none for no run."""
    ids = list(runs)
    if not ids:
        return {}
    rows = (
        Effect.objects.filter(workspace=workspace, run__in=ids)
        .order_by()
        .values_list("run_id", "state")
        .annotate(n=Count("pk"))
    )
    counts: dict[UUID, dict[EffectState, int]] = {}
    for run, state, n in sorted(rows, key=lambda row: _ORDER[row[1]]):
        counts.setdefault(run, {})[EffectState(state)] = n
    return counts


_ORDER = {str(state): place for place, state in enumerate(EffectState)}


def _matching(
    workspace: UUID,
    states: Collection[str],
    types: Collection[str],
    waiting_on: Collection[str],
    q: str,
) -> QuerySet[Run]:
    rows = Run.objects.filter(workspace=workspace)
    if states:
        rows = rows.filter(state__in=states)
    if types:
        rows = rows.filter(type__in=types)
    if waiting_on:
        rows = rows.filter(state=RunState.WAITING, waiting_on__in=waiting_on)
    q = q.strip()
    return _found(rows, workspace, q) if q else rows


def _found(rows: QuerySet[Run], workspace: UUID, q: str) -> QuerySet[Run]:
    if len(q) > _LONGEST_REFERENCE or "\x00" in q:
        return rows.none()
    of_workspace = Run.objects.filter(workspace=workspace).order_by()
    named: QuerySet[Run, Any] = of_workspace.filter(references__contains=[q]).values("pk")
    if _WHOLE.fullmatch(q):
        named = named.union(of_workspace.filter(pk=UUID(q)).values("pk"))
    elif _TAIL.fullmatch(q):
        digits = q.replace("-", "").lower()
        by_tail = of_workspace.annotate(tail=Right(Cast("id", TextField()), 8)).filter(tail=digits)
        named = named.union(by_tail.values("pk"))
    # Found first, as an array, and then ordered: in one plan with the order, PostgreSQL walks all runs newest first
    # until a page is full, those of other workspaces too.
    return rows.filter(_OneOf(F("pk"), ArraySubquery(named)))
