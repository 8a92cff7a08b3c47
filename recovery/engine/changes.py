"""Changes that several rooms of the engine make alike. Pure: each returns what ``record.commit`` takes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from runs import record
from runs.models import Effect
from runs.models.base import new_id
from runs.record import Change
from runs.states import EFFECT_SETTLED, EffectState, ReviewKind, ReviewState

UNCHECKED: Final = frozenset({"checks_ask", "class_asks", "released", "resumed", "authority_silent"})
"""Codes of a run's gate that stand until the checks have passed."""


def reason(code: str, **facts: Any) -> dict[str, Any]:
    """A reason as it is stored: a stable code and the facts that fill its sentence in any language."""
    return {"code": code, "facts": facts}


def unchecked(run: Mapping[str, Any]) -> bool:
    """Whether the checks of this run (its row) have stopped it and not passed since."""
    return any(line.get("code") in UNCHECKED for line in run["gate"])


def open_review(
    kind: ReviewKind,
    subject: UUID,
    *,
    workspace: UUID,
    run: UUID | None,
    effect: UUID | None = None,
    approval: UUID | None = None,
    verdict: UUID | None = None,
    group: UUID | None = None,
    high: bool = False,
    why: Mapping[str, Any] | None = None,
    due_in: float | None = None,
    due_at: datetime | None = None,
) -> Change:
    """Open a review unless one is open for (kind, subject). Give ``due_in`` (seconds from now) or ``due_at``."""
    row: dict[str, Any] = {
        "id": new_id(),
        "workspace_id": workspace,
        "kind": kind,
        "subject": subject,
        "run_id": run,
        "effect_id": effect,
        "approval_id": approval,
        "verdict_id": verdict,
        "group_id": group,
        "state": ReviewState.OPEN,
        "severity": "high" if high else "normal",
        "why": why or {},
    }
    times: dict[str, float] = {"opened_at": 0}
    if due_at is not None:
        row["due_at"] = due_at
    else:
        assert due_in is not None, "a review is due at some time"
        times["due_at"] = due_in
    return record.new("review", row, times)


def settle_effect(
    effect: Effect,
    state: EffectState,
    why: Mapping[str, Any],
    *,
    result: Mapping[str, Any] | None = None,
    prior: tuple[str, ...] | None = None,
    version: int | None = None,
    extra: Mapping[str, Any] | None = None,
) -> list[Change]:
    """Move ``effect`` to a settled state (or partial), close its reviews, and let its run see it.

    The run is woken when nothing of it is open, and at once when this one did not succeed (``then`` is called at the
    first that did not). ``prior`` defaults to the state that was read.
    """
    change: dict[str, Any] = {
        "state": state,
        "reason": why,
        "next_check_at": None,
        "review_at": None,
        "not_before": None,
        **(extra or {}),
    }
    if result is not None:
        change["result"] = result
    times = {"settled_at": 0.0} if state in EFFECT_SETTLED else None
    return [
        record.move("effect", effect.pk, prior or (effect.state,), change, times=times, version=version),
        record.close_reviews(effect.pk),
        record.reckon(wake=state != EffectState.SUCCEEDED),
    ]


def is_high(effect: Effect) -> bool:
    """Severity is high where what happened cannot be taken back."""
    return bool(effect.irreversible)
