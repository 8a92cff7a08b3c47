"""Reading checkpoints back, newest first."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from runs.checkpoints import codec
from runs.errors import Unreadable
from runs.models import Checkpoint


@dataclass(frozen=True, slots=True)
class Restored:
    """An opened checkpoint; ``seq`` is its place in the run, ``at`` when it was committed."""

    seq: int
    schema: int
    content: dict[str, Any]
    at: datetime


def at(workspace: UUID, run: UUID, seq: int) -> Restored:
    """Checkpoint ``seq`` of the run, its digest verified. Raises Unreadable (missing, damaged, moved, key absent)."""
    row = Checkpoint.objects.filter(workspace_id=workspace, run_id=run, seq=seq).first()
    if row is None:
        raise Unreadable("there is no such checkpoint", run=str(run), seq=seq)
    blob = bytes(row.sealed)
    if hashlib.sha256(blob).hexdigest() != row.digest:
        raise Unreadable("the stored bytes do not match their digest", run=str(run), seq=seq)
    if row.schema > codec.SCHEMA:
        return Restored(seq, row.schema, {}, row.at)
    content = codec.unseal(blob, workspace=workspace, run=run, seq=seq)
    return Restored(seq, row.schema, content, row.at)
