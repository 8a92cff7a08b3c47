"""Reading checkpoints back: at most two blobs, each from the nearest tier that holds it whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from runs.checkpoints import codec, tiers
from runs.checkpoints.codec import Base
from runs.checkpoints.tiers import Kept
from runs.errors import Unreadable


@dataclass(frozen=True, slots=True)
class Restored:
    """An opened checkpoint; ``seq`` is its place in the run, ``at`` when it was committed.

    ``base``: what the next checkpoint may be a delta of; None where it has to be a full one.
    """

    seq: int
    schema: int
    content: dict[str, Any]
    at: datetime
    base: Base | None = None


def at(workspace: UUID, run: UUID, seq: int) -> Restored:
    """Checkpoint ``seq`` of the run, digests verified. Raises Unreadable (missing, damaged in every tier, moved) and
    Undecryptable (its key is not here)."""
    kept = tiers.row(run, seq, workspace_id=workspace)
    if kept is None:
        raise Unreadable("there is no such checkpoint", run=str(run), seq=seq)
    if kept.schema > codec.SCHEMA:
        return Restored(seq, kept.schema, {}, kept.at)
    raw, base = read(kept)
    return Restored(seq, kept.schema, codec.parse(raw), kept.at, base)


def read(kept: Kept, *, durable: bool = False) -> tuple[bytes, Base | None]:
    """The JSON of a checkpoint, and what the next one may be a delta of. Raises Unreadable, Undecryptable."""
    blob = tiers.fetch(kept, durable=durable)
    before = codec.head(blob, run=kept.run, seq=kept.seq).base
    if before is None:
        raw = codec.opened(blob, workspace=kept.workspace, run=kept.run, seq=kept.seq)
        return raw, _base(kept, raw)
    full = tiers.row(kept.run, before, workspace_id=kept.workspace)
    if full is None:
        raise Unreadable(f"number {before}, which it needs, is not there", run=str(kept.run), seq=kept.seq)
    under = codec.opened(tiers.fetch(full, durable=durable), workspace=full.workspace, run=full.run, seq=full.seq)
    raw = codec.opened(blob, workspace=kept.workspace, run=kept.run, seq=kept.seq, base=under)
    return raw, _base(full, under)


def _base(full: Kept, raw: bytes) -> Base | None:
    """What is in the archive gets no new deltas: a full one and its deltas stay together."""
    return Base(full.seq, raw, full.size) if len(raw) >= codec.DELTA_FROM and not full.address else None
