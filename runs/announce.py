"""What a commit touched, for the doorbells."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from runs import clock, doorbells
from runs.commits import Commit, Committed
from runs.states import CallState, EffectState


def ring_of(c: Commit, done: Committed) -> doorbells.Ring:
    effects: dict[UUID, None] = {}
    approvals: dict[UUID, None] = {}
    ready: list[UUID] = []
    calls: list[UUID] = []
    reviews = False
    for change in (change.data for entry in c.entries for change in entry.changes):
        row = change.get("row") or change.get("set") or {}
        id: Any = change.get("id") or row.get("id")
        if change["t"] == "effect":
            effects[id] = None
            if row.get("state") == EffectState.READY:
                ready.append(id)
        elif change["t"] == "call" and row.get("state") == CallState.READY:
            calls.append(id)
        elif change["t"] in ("attempt", "evidence", "verdict") and row.get("effect_id"):
            effects[row["effect_id"]] = None
        elif change["t"] == "approval":
            approvals[id] = None
        elif change["t"] == "signature" and row.get("approval_id"):
            approvals[row["approval_id"]] = None
        elif change["t"] in ("review", "close_reviews"):
            reviews = True
    wake_at = done.run.get("wake_at")
    return doorbells.Ring(
        workspace=c.workspace,
        run=c.run,
        kinds=tuple(entry.kind for entry in c.entries),
        effects=tuple(effects),
        approvals=tuple(approvals),
        reviews=reviews,
        ready=tuple(ready),
        trip=done.trip,
        calls=tuple(calls),
        wake=bool(wake_at) and clock.parse(str(wake_at)) <= done.at and not done.run.get("lease_owner"),
    )
