"""Verifying a chain: each event's stored text hashes to its hash and names the one before."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from runs.models import Event, Run, Workspace


@dataclass(frozen=True, slots=True)
class ChainReport:
    """``good`` events in sequence from #1; ``bad`` is the first that does not hold, with ``why``."""

    good: int
    bad: int | None = None
    why: str = ""

    @property
    def ok(self) -> bool:
        return self.bad is None


def verify_run(run: Run) -> ChainReport:
    """Check a run's chain against its head. Reads the events in order, in pages."""
    rows = Event.objects.filter(run_id=run.pk).order_by("seq")
    return _verify(
        rows.values_list("seq", "text", "hash", "kind", "at", "actor_id"), run.head_seq, run.head_hash, run.pk
    )


def verify_workspace(workspace: Workspace) -> ChainReport:
    """Check the chain of what has no run."""
    rows = Event.objects.filter(workspace=workspace, run=None).order_by("seq")
    values = rows.values_list("seq", "text", "hash", "kind", "at", "actor_id")
    return _verify(values, workspace.head_seq, workspace.head_hash, None)


def _as_text(kind: str, at: datetime, actor: UUID | None) -> list[object]:
    """An event's columns, which lists read, as its hashed text has them."""
    return [kind, at, str(actor) if actor else None]


def _verify(rows: object, head_seq: int, head_hash: str, run: UUID | None) -> ChainReport:
    previous, count = "", 0
    for seq, text, stored, *listed in rows.iterator(chunk_size=2000):  # type: ignore[attr-defined]
        expected = count + 1
        if seq != expected:
            return ChainReport(count, expected, f"#{expected} is missing")
        if hashlib.sha256(text.encode()).hexdigest() != stored:
            return ChainReport(count, seq, f"#{seq} does not match its hash")
        try:
            body = json.loads(text)
            follows = (body["prev"], body["seq"], body["run"]) == (previous, seq, str(run) if run else None)
            agrees = [body["kind"], datetime.fromisoformat(body["at"]), body["actor"]] == _as_text(*listed)
        except (ValueError, LookupError, TypeError):
            return ChainReport(count, seq, f"#{seq} cannot be read")
        if not follows:
            return ChainReport(count, seq, f"#{seq} does not follow the one before")
        if not agrees:
            return ChainReport(count, seq, f"#{seq} is listed otherwise than its text says")
        previous, count = stored, seq
    if count != head_seq or previous != head_hash:
        return ChainReport(count, count + 1, f"the head names #{head_seq}, the chain ends at #{count}")
    return ChainReport(count)
