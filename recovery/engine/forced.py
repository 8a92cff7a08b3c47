"""Ends that a person gives a run while something of it is still open: what is dropped, what stays, who was told.

Nothing here says that something in flight did not happen: it stays as it is under the ended run, is read on, and its
reviews stay open (invariants 4 and 7).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from recovery.engine import finish, lineage
from recovery.engine.changes import open_review, reason
from runs import record
from runs.models import Effect, Run
from runs.record import Change, Entry
from runs.states import (
    EFFECT_OPEN,
    EffectState,
    EventKind,
    ReviewKind,
    RunState,
)

CONFIRM_WITHIN: Final = timedelta(hours=24)
"""A second person confirms a broken glass within this time (invariant 8)."""

CLOSABLE: Final = (
    RunState.WAITING,
    RunState.CANCELLING,
    RunState.COMPENSATING,
    RunState.QUARANTINED,
    RunState.PAUSED,
)
"""States that two people may close as unresolved: nothing of it is at work."""

_UNSENT: Final = (EffectState.PLANNED, EffectState.AWAITING_APPROVAL, EffectState.READY)
_STAYS: Final = sorted((EFFECT_OPEN - set(_UNSENT)) | {EffectState.PARTIAL})


def unresolved(run: Run) -> dict[str, Any]:
    """What stays open if ``run`` ends now: effects that nobody knows or that happened in part, and children."""
    effects = Effect.objects.filter(run_id=run.pk, state__in=_STAYS).order_by("ordinal")
    return {
        "open": [
            {"effect": str(e.pk), "describe": e.describe, "state": str(e.state), "stake": e.stake, "version": e.version}
            for e in effects
        ],
        "children": lineage.named(lineage.alive(run.pk)),
    }


def end(run: Run, state: RunState, kind: EventKind, how: Mapping[str, Any], more: list[Change]) -> list[Entry]:
    """The entries that end ``run`` as ``state``: what was not sent is cancelled, what was sent stays open.

    ``more``: further changes of the same event. A worker that still has the run loses it with this commit.
    """
    dropped = finish.drop_unsent_of(run.pk, EffectState.CANCELLED, "run_ended_by_person")
    entries = [Entry(EventKind.EFFECT_SETTLED, {"state": EffectState.CANCELLED}, dropped)] if dropped else []
    ended: dict[str, Any] = {
        "state": state,
        "waiting_on": "",
        "wait_event": "",
        "wake_at": None,
        "lease_owner": None,
        "tries": 0,
        "ended_how": dict(how),
        "gate": [],
    }
    moves = record.run_moves(ended, prior=[run.state], times={"ended_at": 0})
    return [*entries, Entry(kind, how, [record.close_reviews(run.pk), moves, *more])]


def broken_glass(run: Run, code: str, by: Mapping[str, str], reason_given: str, **about: Any) -> Change:
    """The review that has a second person confirm what was done alone. ``about``: effect, approval, group, subject."""
    subject: UUID = about.pop("subject", run.pk)
    return open_review(
        ReviewKind.BREAK_GLASS,
        subject,
        workspace=run.workspace_id,
        run=run.pk,
        high=True,
        why=reason(code, by=by["name"], person=by["id"], said=reason_given),
        due_in=CONFIRM_WITHIN.total_seconds(),
        **about,
    )


def proposal_digest(run: Run, stays: Mapping[str, Any], person: UUID, reason_given: str) -> str:
    """What a second person confirms: this run, as it stands, with what stays open, proposed by whom and why."""
    content = [str(run.pk), run.version, dict(stays), str(person), reason_given]
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
