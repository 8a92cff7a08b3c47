"""What can be measured of recovery, from the record alone; no workspace is told from another.

Every query is bounded: it looks at the latest rows by id (ids grow with time), or stops counting. A figure over "the
latest" is a gauge over that window, not a counter: the record is what lasts, not this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection

from recovery.contract import registry
from runs import queries
from runs.states import EffectState, EventKind

EVENTS: Final = 20_000
"""Latest lines of history that are looked at."""

EFFECTS: Final = 10_000
"""Latest effects, attempts and reviews that are looked at; counting of what is open stops there too."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. ``name`` without prefix; ``labels``: run type, dependency, kind; never a workspace."""

    name: str
    help: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


def figures() -> list[Figure]:
    """All figures, as of now. A dozen bounded queries."""
    return [
        *_recovery(),
        *_targets(),
        *_outcomes_recovered(),
        *_unknown(),
        *_resumes(),
        *_ends(),
        *_calls(),
        *_queues(),
        *_people(),
        *_restores(),
        *_fences(),
        *_mending(),
        *_computations(),
    ]


def _rows(sql: str, **given: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        return list(cursor.fetchall())


_LATEST: Final = "(SELECT * FROM runs_event ORDER BY id DESC LIMIT %(events)s)"
_QUANTILES: Final = (0.5, 0.95, 0.99)


def _recovery() -> Iterator[Figure]:
    """From the last line that a worker wrote of a run to the first look of whoever took the run over from it.

    The lease stands between the two. A run that only waited long is none of these.
    """
    rows = _rows(
        f"""SELECT r.type, percentile_cont(%(q)s::float8[]) WITHIN GROUP (ORDER BY
                       extract(epoch FROM e.at - before.at)), count(*)
            FROM {_LATEST} e
            JOIN runs_event before ON before.run_id = e.run_id AND before.seq = e.seq - 2
            JOIN runs_run r ON r.id = e.run_id
            WHERE e.kind = %(kind)s AND e.text::jsonb->'data'->>'why' IN ('other_owner', 'other_epoch')
            GROUP BY r.type""",
        q=list(_QUANTILES),
        kind=EventKind.RUN_CHECKED,
        events=EVENTS,
    )
    for type, seconds, n in rows:
        for quantile, value in zip(_QUANTILES, seconds, strict=True):
            labels = {"type": type, "quantile": str(quantile)}
            yield Figure(
                "time_to_recover_seconds", "From a worker's last word to its heir's first look.", value, labels
            )
        yield Figure("taken_over", "Runs that another worker took over.", n, {"type": type})


def _targets() -> Iterator[Figure]:
    """What each run type promises, to be drawn beside."""
    for run_type in registry.run_types():
        within = run_type.contract.targets.recover_within.total_seconds()
        labels = {"type": run_type.name}
        yield Figure("recover_within_seconds", "The run type's target for the time to recover.", within, labels)


def _outcomes_recovered() -> Iterator[Figure]:
    """Effects whose outcome was unknown and is settled: how long that took, by dependency."""
    rows = _rows(
        """SELECT d.name, percentile_cont(%(q)s::float8[]) WITHIN GROUP (ORDER BY
                      extract(epoch FROM e.settled_at - e.unknown_since)), count(*)
           FROM (SELECT * FROM runs_effect ORDER BY id DESC LIMIT %(effects)s) e
           JOIN runs_dependency d ON d.id = e.dependency_id
           WHERE e.unknown_since IS NOT NULL AND e.settled_at >= e.unknown_since GROUP BY d.name""",
        q=list(_QUANTILES),
        effects=EFFECTS,
    )
    for name, seconds, n in rows:
        for quantile, value in zip(_QUANTILES, seconds, strict=True):
            labels = {"dependency": name, "quantile": str(quantile)}
            yield Figure("time_to_know_seconds", "From an unknown outcome to its evidence.", value, labels)
        yield Figure("unknown_settled", "Unknown outcomes that are settled.", n, {"dependency": name})


def _unknown() -> Iterator[Figure]:
    """Outcomes nobody knows now, and the age of the oldest: what is checked again, and what a person has."""
    rows = _rows(
        """SELECT d.name, count(*), max(extract(epoch FROM runs_now() - e.unknown_since))
           FROM runs_effect e JOIN runs_dependency d ON d.id = e.dependency_id
           WHERE e.unknown_since IS NOT NULL AND e.state = ANY(%(states)s) AND e.id IN (
               (SELECT id FROM runs_effect WHERE next_check_at IS NOT NULL ORDER BY next_check_at LIMIT %(effects)s)
               UNION (SELECT effect_id FROM runs_review WHERE state = 'open' AND effect_id IS NOT NULL
                      LIMIT %(effects)s))
           GROUP BY d.name""",
        states=[str(EffectState.UNKNOWN), str(EffectState.DISPUTED)],
        effects=EFFECTS,
    )
    for name, n, age in rows:
        yield Figure("unknown", "Outcomes that nobody knows now.", n, {"dependency": name})
        yield Figure("unknown_oldest_seconds", "Age of the oldest of them.", age, {"dependency": name})


def _resumes() -> Iterator[Figure]:
    """What the checks before going on concluded."""
    rows = _rows(
        f"""SELECT e.text::jsonb->'data'->>'verdict', count(*) FROM {_LATEST} e WHERE e.kind = %(kind)s GROUP BY 1""",
        kind=EventKind.RUN_CHECKED,
        events=EVENTS,
    )
    for verdict, n in rows:
        yield Figure("resumes", "Looks at a run that was away, by what came of them.", n, {"verdict": verdict or ""})


def _ends() -> Iterator[Figure]:
    """Runs that ended, by type and how; and those of them with every effect verified that had been in doubt."""
    rows = _rows(
        """SELECT r.type, r.state, count(*),
                  count(*) FILTER (WHERE r.state = 'completed' AND EXISTS (
                      SELECT 1 FROM runs_effect e WHERE e.run_id = r.id AND e.unknown_since IS NOT NULL))
           FROM (SELECT * FROM runs_run ORDER BY id DESC LIMIT %(effects)s) r
           WHERE r.ended_at IS NOT NULL GROUP BY r.type, r.state""",
        effects=EFFECTS,
    )
    for type, state, n, checked in rows:
        yield Figure("runs_ended", "Runs that ended, of the latest.", n, {"type": type, "state": state})
        if checked:
            help = "Completed runs that had met an unknown outcome: recovered to a checked result."
            yield Figure("runs_recovered", help, checked, {"type": type})


def _calls() -> Iterator[Figure]:
    """Tries by dependency and what came of them, tries for each effect, and answers that came too late."""
    rows = _rows(
        """SELECT d.name, a.state, coalesce(a.outcome->>'kind', ''), count(*), count(DISTINCT a.effect_id),
                  count(*) FILTER (WHERE a.n = 1)
           FROM (SELECT * FROM runs_attempt ORDER BY id DESC LIMIT %(effects)s) a
           JOIN runs_effect e ON e.id = a.effect_id JOIN runs_dependency d ON d.id = e.dependency_id
           GROUP BY 1, 2, 3""",
        effects=EFFECTS,
    )
    tries: dict[str, int] = {}
    firsts: dict[str, int] = {}
    for name, state, kind, n, _effects, first in rows:
        tries[name] = tries.get(name, 0) + n
        firsts[name] = firsts.get(name, 0) + first
        yield Figure("tries", "Tries, by what came of them.", n, {"dependency": name, "state": state, "outcome": kind})
    for name, n in tries.items():
        help = "Tries for each first try (retry amplification)."
        yield Figure("tries_per_first", help, n / max(firsts[name], 1), {"dependency": name})


def _queues() -> Iterator[Figure]:
    """What is due and not taken: how much, and for how long the oldest."""
    for queue, table, column, more in (
        ("advance", "runs_run", "wake_at", "lease_owner IS NULL AND state <> 'quarantined'"),
        ("dispatch", "runs_effect", "not_before", "state = 'ready'"),
        ("checks", "runs_effect", "next_check_at", "state IN ('unknown', 'accepted')"),
    ):
        ((n, lag),) = _rows(
            f"""SELECT count(*), coalesce(max(extract(epoch FROM runs_now() - {column})), 0) FROM (
                    SELECT {column} FROM {table} WHERE {column} <= runs_now() AND {more}
                    ORDER BY {column} LIMIT %(effects)s) due""",
            effects=EFFECTS,
        )
        yield Figure("due", "What is due and nobody has taken; counted up to 10,000.", n, {"queue": queue})
        yield Figure("due_oldest_seconds", "For how long the oldest of it is due.", lag, {"queue": queue})


def _people() -> Iterator[Figure]:
    """How long what needs a person is open: closed ones from opening to closing, and what is open and late."""
    rows = _rows(
        """SELECT kind, avg(extract(epoch FROM closed_at - opened_at)) FILTER (WHERE closed_at IS NOT NULL),
                  count(*) FILTER (WHERE state = 'open'),
                  count(*) FILTER (WHERE state = 'open' AND due_at <= runs_now())
           FROM (SELECT * FROM runs_review ORDER BY id DESC LIMIT %(effects)s) r GROUP BY kind""",
        effects=EFFECTS,
    )
    for kind, seconds, opened, late in rows:
        if seconds is not None:
            yield Figure("review_seconds", "From opening to closing, on average.", seconds, {"kind": kind})
        yield Figure("reviews_open", "Reviews that are open.", opened, {"kind": kind})
        yield Figure("reviews_late", "Open reviews past their time.", late, {"kind": kind})


def _restores() -> Iterator[Figure]:
    """Whether a restore of the record holds sends back anywhere."""
    held = 1.0 if queries.any_holding() else 0.0
    yield Figure("frozen", "1: the record was restored and sending is held back somewhere.", held)


def _fences() -> Iterator[Figure]:
    """Writes of workers that had lost their run, and leases under which nothing was committed: done again since."""
    rows = _rows(
        f"""SELECT r.type, count(*) FILTER (WHERE e.kind = %(refused)s), count(*) FILTER (WHERE e.kind = %(leased)s)
            FROM {_LATEST} e JOIN runs_run r ON r.id = e.run_id
            LEFT JOIN runs_event before ON before.run_id = e.run_id AND before.seq = e.seq - 1
            WHERE e.kind = %(refused)s OR e.kind = %(leased)s AND before.kind = %(leased)s GROUP BY r.type""",
        refused=EventKind.RUN_STALE_REFUSED,
        leased=EventKind.RUN_LEASED,
        events=EVENTS,
    )
    for type, refused, again in rows:
        yield Figure("stale_refused", "Writes refused because another worker owned the run.", refused, {"type": type})
        help = "Leases that ended before anything was committed: what was done under them was done again."
        yield Figure("leases_without_progress", help, again, {"type": type})


def _mending() -> Iterator[Figure]:
    """Compensation plans that are not over, by state, and the age of the oldest."""
    rows = _rows(
        """SELECT state, count(*), max(extract(epoch FROM runs_now() - made_at))
           FROM (SELECT * FROM runs_plan WHERE ended_at IS NULL ORDER BY id LIMIT %(effects)s) p GROUP BY state""",
        effects=EFFECTS,
    )
    for state, n, age in rows:
        yield Figure("plans_open", "Compensation plans that are not over.", n, {"state": state})
        yield Figure("plans_oldest_seconds", "Age of the oldest of them.", age, {"state": state})


def _computations() -> Iterator[Figure]:
    """Computations by what came of them, and what they cost in their authors' units."""
    rows = _rows(
        """SELECT operation, unit, state, count(*), sum(coalesce(spent, reserved))
           FROM (SELECT * FROM runs_call ORDER BY id DESC LIMIT %(effects)s) c GROUP BY 1, 2, 3""",
        effects=EFFECTS,
    )
    for operation, unit, state, n, cost in rows:
        labels = {"operation": operation, "state": state}
        yield Figure("computations", "Samples that were asked for, by what came of them.", n, labels)
        help = "What they cost, or may have cost, in the contract's unit."
        yield Figure("computation_cost", help, cost or 0, {**labels, "unit": unit})
