"""Reading an effect from the record as decide wants it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models.functions import Now

from recovery.contract import EffectContract
from recovery.contract.outcomes import Outcome
from recovery.engine import approvals, endings
from recovery.engine.snapshot import AttemptView, Snapshot
from recovery.traffic import degraded
from recovery.traffic.admission import Standing, room_for_repeat, standing
from runs.models import Approval, Attempt, Effect, Evidence, Run, Worker
from runs.record import DEAD_AFTER
from runs.states import RUN_ENDED, ApprovalState, AttemptState, EffectState, RunState


def attempts_of(effect: UUID) -> tuple[AttemptView, ...]:
    """The effect's attempts, oldest first, with whether each sender still lives."""
    rows = list(Attempt.objects.filter(effect_id=effect).order_by("n"))
    alive = set(
        Worker.objects.filter(
            pk__in=[a.worker for a in rows if a.ended_at is None],
            seen_at__gt=Now() - timedelta(seconds=DEAD_AFTER),
        ).values_list("pk", flat=True)
    )
    return tuple(attempt_view(a, a.worker in alive) for a in rows)


def attempt_view(attempt: Attempt, alive: bool) -> AttemptView:
    """One stored attempt, as decide sees it."""
    return AttemptView(
        id=attempt.pk,
        n=attempt.n,
        state=AttemptState(attempt.state),
        committed_at=attempt.committed_at,
        expires_at=attempt.expires_at,
        ended_at=attempt.ended_at,
        outcome=Outcome.from_json(attempt.outcome) if attempt.outcome else None,
        sender_alive=alive or attempt.ended_at is not None,
    )


def take(
    effect: Effect,
    contract: EffectContract,
    run: Mapping[str, object],
    now: datetime,
    at: Standing | None = None,
) -> Snapshot:
    """The whole snapshot of a stored effect. ``run``: its state and deadline. A handful of queries.

    ``at``: how its dependency stands, where the caller has read it already.
    """
    evidence = Evidence.objects.filter(effect_id=effect.pk).order_by("id")
    if at is None:
        at = standing(effect.dependency_id)
    snap = build(
        effect,
        contract,
        run,
        attempts=attempts_of(effect.pk),
        evidence=(endings.stored_view(e) for e in evidence),
        now=now,
    )
    return replace(
        snap,
        held=at.holds(effect.requested_at),
        shed=degraded.refuses(at.dependency, contract),
        budget_left=not snap.attempts
        or at.in_backlog(effect.requested_at)  # paced by its drain, canary first: no storm
        or room_for_repeat(at.capacity, contract.retry.budget, now),
    )


def build(
    effect: Effect,
    contract: EffectContract,
    run: Mapping[str, object],
    *,
    attempts: Iterable[AttemptView],
    evidence: Iterable[object],
    now: datetime,
) -> Snapshot:
    """The snapshot from parts that the caller has in hand."""
    approval, good = _approval(effect, contract, now)
    deadline = run["deadline"]
    return Snapshot(
        effect=effect.pk,
        state=EffectState(effect.state),
        attempts=tuple(attempts),
        evidence=tuple(evidence),  # type: ignore[arg-type]
        deadline=effect.deadline,
        key=effect.sent_key,
        what=effect.describe,
        needs_approval=approval is not None,
        execute_by=approval.execute_by if approval else None,
        approve_by=approval.approve_by if approval else None,
        approval_good=good,
        cancelling=run["state"] == RunState.CANCELLING or run["state"] in RUN_ENDED,
        paused=run["state"] in (RunState.PAUSING, RunState.PAUSED),
        not_before=effect.not_before,
        unknown_since=effect.unknown_since,
        settled_at=effect.settled_at,
        run_deadline=datetime.fromisoformat(deadline) if isinstance(deadline, str) else deadline,  # type: ignore[arg-type]
    )


def asked(effect: Effect, approve_by: datetime | None) -> Snapshot:
    """The snapshot of an effect that is being asked for: nothing was tried, nothing is signed."""
    return Snapshot(
        effect=effect.pk,
        state=EffectState(effect.state),
        attempts=(),
        evidence=(),
        deadline=effect.deadline,
        key=effect.sent_key,
        what=effect.describe,
        needs_approval=approve_by is not None,
        approve_by=approve_by,
    )


def run_of(effect: Effect) -> Mapping[str, object]:
    """State, what it waits on, deadline and token of the effect's run."""
    return Run.objects.values("id", "workspace_id", "state", "waiting_on", "deadline", "token", "gate").get(
        pk=effect.run_id
    )


def _approval(effect: Effect, contract: EffectContract, now: datetime) -> tuple[Approval | None, bool]:
    if contract.approval is None:
        return None, True
    approval = (
        Approval.objects.filter(effect_id=effect.pk)
        .exclude(state=ApprovalState.SUPERSEDED)
        .order_by("-revision")
        .first()
    )
    if approval is None or approval.execute_by is None:
        return approval, True
    return approval, approvals.still_good(effect, now)
