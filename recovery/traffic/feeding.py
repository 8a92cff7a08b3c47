"""Which effects are rung next: no more than their capacity can take, and in the right order.

By priority, then by deadline; workspaces that share a capacity take turns; what belongs to a backlog comes after what
is new, since its drain has a pace of its own. Whoever gets no turn is not rung: of a backlog of any size a pass
rings what can go, and only counts the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

PASSES: Final = 2.0
"""Seconds' worth of calls that are rung ahead: a pass may be late."""

_SQL: Final = """
WITH waiting AS MATERIALIZED (
    SELECT e.id, d.id AS dependency, c.id AS capacity, r.priority, e.deadline,
           (b.id IS NOT NULL AND e.requested_at <= b.began_at) AS backlog,
           (d.held_at IS NOT NULL OR c.state = 'open') AS closed,
           c.state, c.probe, c.rate, c.in_flight, c.max_in_flight, d.share,
           b.state AS drain, b.part, b.canary - cardinality(b.canaries) AS canary
    FROM runs_effect e
    JOIN runs_run r ON r.id = e.run_id
    JOIN runs_dependency d ON d.id = e.dependency_id
    JOIN runs_capacity c ON c.id = d.capacity_id
    LEFT JOIN runs_drain b ON b.id = d.draining AND b.ended_at IS NULL
    WHERE e.not_before <= %(now)s AND e.state = 'ready'
      -- Nothing is sent for a run that a person has to let go on, or take out of quarantine (invariant 13).
      AND r.state NOT IN ('quarantined', 'pausing', 'paused') AND r.waiting_on <> 'person'
      AND NOT jsonb_path_query_array(r.gate, '$[*].code') ?| %(unchecked)s::text[]
      -- Nor from a record that was restored, before it is known again what had happened.
      AND e.workspace_id <> ALL(%(frozen)s)
      -- Nothing goes to what is closed off; new work that is refused meanwhile is told so.
      AND (d.held_at IS NULL AND c.state <> 'open' OR d.degraded = 'refuse' AND e.attempts = 0)
), may AS (
    SELECT id, capacity, dependency, backlog, priority, deadline,
        CASE WHEN closed THEN %(page)s
             WHEN state = 'half_open' THEN CASE WHEN probe IS NULL THEN 1 ELSE 0 END
             WHEN backlog AND drain = 'canary' THEN canary
             WHEN backlog AND drain NOT IN ('ramping', 'steady') THEN 0
             WHEN in_flight >= max_in_flight THEN 0
             WHEN rate IS NULL THEN least(4 * max_in_flight, %(page)s)
             ELSE ceil(runs_pace(rate) * %(passes)s * CASE WHEN backlog THEN part ELSE 1 END) END AS most,
        CASE WHEN rate IS NULL THEN %(page)s ELSE ceil(runs_pace(rate) * %(passes)s * share) END AS own_most,
        row_number() OVER (PARTITION BY capacity, backlog, dependency ORDER BY priority DESC, deadline, id) AS turn
    FROM waiting
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY capacity, backlog ORDER BY turn, priority DESC, deadline, id) AS place
    FROM may WHERE turn <= own_most
)
SELECT id FROM placed WHERE place <= most ORDER BY backlog, place, capacity LIMIT %(page)s
"""


def next_to_send(now: datetime, page: int, *, unchecked: Collection[str], frozen: Sequence[UUID] = ()) -> list[UUID]:
    """Ready effects that their capacities can take in the next seconds, at most ``page``, in order. One query.

    ``unchecked``: codes of a run's gate that hold it until the checks have passed. ``frozen``: workspaces that a
    restore holds.
    """
    given: dict[str, Any] = {
        "now": now,
        "page": page,
        "passes": PASSES,
        "frozen": list(frozen),
        "unchecked": sorted(unchecked),
    }
    with connection.cursor() as cursor:
        cursor.execute(_SQL, given)
        return [id for (id,) in cursor.fetchall()]
