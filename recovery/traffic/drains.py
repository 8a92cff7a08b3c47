"""The way out of an outage: check, drop, canary, go-ahead, ramp, steady, drained (invariant 12).

``next_move`` is pure and decides on counts; the sweep reads them each second and records what follows. The backlog's
pace is enforced where a send is committed (``runs_admit``), so that a drain whose sweep is away sends no faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from recovery import failpoints
from recovery.contract import EffectContract, registry
from recovery.contract.errors import UnknownOperation
from recovery.engine.changes import UNCHECKED, open_review, reason
from recovery.traffic.admission import WAITING
from runs import record
from runs.errors import LostRace
from runs.models import Attempt, Capacity, Dependency, Drain, Effect, Evidence
from runs.record import Change, Commit, Entry
from runs.states import (
    ATTEMPT_LIVE,
    DRAIN_ENDED,
    BreakerState,
    DrainState,
    EffectState,
    EventKind,
    EvidenceKind,
    ReviewKind,
)

RAMP: Final = (0.25, 0.5, 0.75)
"""Parts of the pace while ramping, each for an equal share of the warm-up; then all of it."""

CHECK_AT_MOST: Final = timedelta(minutes=2)
"""After this the drain goes on without the unknown effects that could not be read back; they stay unknown."""

REVIEW_DUE: Final = 1200.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What the sweep counted of a drain's backlog. ``failed``: of the canary's attempts, those that failed.

    ``unread``: unknown effects that can be read back and were not since it began. ``late``: ready, past the last
    moment to send. ``before_us``: dependencies of a lower recovery order that still drain or are not called.
    """

    ready: int
    out: int
    unread: int = 0
    late: int = 0
    canaries_out: int = 0
    failed: int = 0
    breaker_open: bool = False
    before_us: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """What a drain becomes; ``part``: of the pace its backlog then has."""

    to: DrainState
    code: str
    part: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def next_move(drain: Drain, seen: Seen, now: datetime) -> Move | None:
    """What becomes of ``drain`` at ``now``; None: it goes on as it is. Pure."""
    state = DrainState(drain.state)
    if state in DRAIN_ENDED or state == DrainState.HELD:
        return None
    if not seen.ready and not seen.out and not seen.unread:
        return Move(DrainState.DRAINED, "drained")
    if state == DrainState.CHECKING:
        return _checking(drain, seen, now)
    if state == DrainState.DROPPING:
        return None if seen.late else Move(DrainState.CANARY, "canary")
    if seen.breaker_open and state in (DrainState.RAMPING, DrainState.STEADY):
        return Move(DrainState.HELD, "breaker_open")
    if state == DrainState.CANARY:
        return _canary(drain, seen)
    if state == DrainState.RAMPING:
        return _ramping(drain, now)
    return None


def _checking(drain: Drain, seen: Seen, now: datetime) -> Move | None:
    if seen.before_us or (seen.unread and now < drain.began_at + CHECK_AT_MOST):
        return None
    return Move(DrainState.DROPPING, "dropping", facts={"unread": seen.unread})


def _canary(drain: Drain, seen: Seen) -> Move | None:
    tried = len(drain.canaries)
    if seen.canaries_out or (tried < drain.canary and seen.ready):
        return None
    if seen.failed * 2 >= tried > 0:
        return Move(DrainState.HELD, "canary_failed", facts={"failed": seen.failed, "tried": tried})
    facts = {"failed": seen.failed, "tried": tried}
    if drain.asks:
        return Move(DrainState.GO_AHEAD, "go_ahead", facts=facts)
    return Move(DrainState.RAMPING, "ramping", RAMP[0], facts)


def _ramping(drain: Drain, now: datetime) -> Move | None:
    each = drain.warm_up / len(RAMP)
    done = int((now - drain.moved_at).total_seconds() / each) if each > 0 else len(RAMP)
    if done >= len(RAMP):
        return Move(DrainState.STEADY, "steady", 1.0)
    if RAMP[done] > drain.part:
        return Move(DrainState.RAMPING, "ramping", RAMP[done])
    return None


STANDS_STILL: Final = reduce(
    or_,
    (Q(run__gate__contains=[{"code": code}]) for code in sorted(UNCHECKED)),
    Q(run__state__in=["quarantined", "pausing", "paused"]) | Q(run__waiting_on="person"),
)
"""What waits for a person of its own, or for its run's checks, is not waited for: it goes as other work when its run
goes on."""


def backlog(drain: Drain) -> Q:
    """Which effects belong to the drain's backlog."""
    return Q(dependency_id=drain.dependency_id, requested_at__lte=drain.began_at)


def look(drain: Drain, now: datetime) -> tuple[Seen, list[UUID], list[UUID]]:
    """Count the backlog. Also the ids to ring now: those to read back, and those to drop."""
    mine = Effect.objects.filter(backlog(drain))
    ready = mine.filter(state=EffectState.READY, not_before__isnull=False).exclude(STANDS_STILL)
    unread: list[UUID] = []
    late: list[UUID] = []
    if drain.state == DrainState.CHECKING:
        unread = _unread(drain, mine)
    elif drain.state == DrainState.DROPPING:
        late = _late(ready, now)
    attempts = Attempt.objects.filter(pk__in=drain.canaries)
    bad = Q(state="lost") | Q(state="not_sent") | Q(outcome__kind__in=["transient", "overloaded", "unknown"])
    live = Attempt.objects.filter(state__in=list(ATTEMPT_LIVE), effect__dependency=drain.dependency_id)
    own = Dependency.objects.get(pk=drain.dependency_id)
    seen = Seen(
        ready=ready.count(),
        out=live.filter(effect__requested_at__lte=drain.began_at).count(),
        unread=len(unread),
        late=len(late),
        canaries_out=attempts.filter(state__in=list(ATTEMPT_LIVE)).count() if drain.state == DrainState.CANARY else 0,
        failed=attempts.filter(bad).count() if drain.state == DrainState.CANARY else 0,
        breaker_open=Capacity.objects.filter(pk=own.capacity_id, state=BreakerState.OPEN).exists(),
        before_us=_before(own) if drain.state == DrainState.CHECKING else (),
    )
    return seen, unread, late


def _unread(drain: Drain, mine: Any) -> list[UUID]:
    since = Evidence.objects.filter(effect=OuterRef("pk"), kind=EvidenceKind.READBACK, received_at__gte=drain.began_at)
    rows = mine.filter(WAITING, state=EffectState.UNKNOWN).filter(~Exists(since))
    found = rows.values_list("pk", "operation", "contract_version")
    return [pk for pk, *of in found if (contract := _contract(*of)) is not None and contract.reconcile]


def _late(ready: Any, now: datetime) -> list[UUID]:
    rows = ready.values_list("pk", "deadline", "operation", "contract_version")
    return [
        pk
        for pk, deadline, *of in rows
        if (contract := _contract(*of)) is not None and now >= deadline - contract.reserve
    ]


def _contract(operation: str, version: int) -> EffectContract | None:
    """The contract, or None where this process does not know it: one such effect must not stop every drain."""
    try:
        return registry.effect_contract(operation, version)
    except UnknownOperation:
        return None


def _before(own: Dependency) -> tuple[str, ...]:
    """Names of the workspace's dependencies that must be well before this one is drained."""
    first = Dependency.objects.filter(workspace_id=own.workspace_id, recovery_order__lt=own.recovery_order)
    unwell = Q(draining__isnull=False) | Q(held_at__isnull=False) | ~Q(capacity__state=BreakerState.CLOSED)
    return tuple(first.filter(unwell).order_by("recovery_order", "name").values_list("name", flat=True))


def step(drain: Drain, now: datetime) -> tuple[bool, list[UUID], list[UUID]]:
    """Look at one drain and record what becomes of it. True if it moved; ids to read back, ids to drop."""
    seen, unread, late = look(drain, now)
    move = next_move(drain, seen, now)
    if move is None:
        return False, unread, late
    facts: dict[str, Any] = {}
    if move.to == DrainState.CANARY or move.to in DRAIN_ENDED:
        facts["dropped"] = dropped(drain)
    try:
        carry_out(drain, move, facts)
    except LostRace:
        return False, [], []
    return True, [], []


def dropped(drain: Drain) -> int:
    """How many effects of the backlog expired unsent since the drain began."""
    gone = Effect.objects.filter(backlog(drain), state=EffectState.EXPIRED, settled_at__gte=drain.began_at)
    return gone.count()


def carry_out(drain: Drain, move: Move, set: Mapping[str, Any] | None = None) -> None:
    """Record a move of the system's own. Raises LostRace when somebody moved it first."""
    entry = Entry(kind_of(move), told(drain, move), changes(drain, move, set))
    with failpoints.committing("drain"):
        record.commit(Commit(drain.workspace_id, None, [entry]))


def kind_of(move: Move) -> EventKind:
    """The line that tells of ``move``."""
    return EventKind.DRAIN_ENDED if move.to in DRAIN_ENDED else EventKind.DRAIN_MOVED


def told(drain: Drain, move: Move) -> dict[str, Any]:
    """What that line says."""
    return {
        "drain": str(drain.pk),
        "dependency": _name(drain),
        "from": drain.state,
        "to": move.to,
        "code": move.code,
        "part": move.part,
        "sent": drain.sent,
        "total": drain.total,
        **move.facts,
    }


def _name(drain: Drain) -> str:
    return Dependency.objects.values_list("name", flat=True).get(pk=drain.dependency_id)


def changes(drain: Drain, move: Move, set: Mapping[str, Any] | None = None) -> list[Change]:
    """The changes of ``move``: dependency before drain, as everywhere (locks are taken in one order)."""
    why = reason(move.code, dependency=_name(drain), **dict(move.facts))
    row: dict[str, Any] = {"state": move.to, "why": why, **(set or {})}
    times = {"moved_at": 0.0} if move.to != drain.state else {}
    if move.part is not None:
        row["part"] = move.part
    if move.to == DrainState.HELD:
        row["held_from"] = drain.state
    found: list[Change] = []
    if move.to in DRAIN_ENDED:
        times["ended_at"] = 0.0
        found.append(record.move("dependency", drain.dependency_id, None, {"draining": None}))
    found.append(record.move("drain", drain.pk, [drain.state], row, times=times))
    if move.to in (DrainState.GO_AHEAD, DrainState.HELD):
        found.append(
            open_review(
                ReviewKind.DRAIN_STOPPED,
                drain.pk,
                workspace=drain.workspace_id,
                run=None,
                why=why,
                due_in=REVIEW_DUE,
            )
        )
    elif drain.state in (DrainState.GO_AHEAD, DrainState.HELD):
        found.append(record.close_reviews(drain.pk, [ReviewKind.DRAIN_STOPPED]))
    return found


def live() -> list[Drain]:
    """Every drain that has not ended."""
    return list(Drain.objects.filter(ended_at=None).order_by("began_at"))
