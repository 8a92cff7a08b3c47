"""Whether the checkpoints that are kept can be opened: a backup is worth what this says of it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import F, QuerySet

from runs.checkpoints import codec, load, tiers
from runs.errors import ArchiveAway, Undecryptable, Unreadable
from runs.models import Checkpoint


@dataclass(slots=True)
class Verified:
    """What was found. ``missing``: keys that are not here, with how much they would open. ``from_future``: written by
    a newer version, digest verified, not opened."""

    looked: int = 0
    opened: int = 0
    from_future: int = 0
    seconds: float = 0.0
    damaged: list[str] = field(default_factory=list)
    away: list[str] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """Opened, of all that were looked at; 1 where there were none."""
        return (self.opened + self.from_future) / self.looked if self.looked else 1.0

    def as_json(self) -> dict[str, object]:
        """For scripts, and for the drill that restores a backup."""
        return {
            "looked": self.looked,
            "opened": self.opened,
            "from_future": self.from_future,
            "share": round(self.share, 6),
            "seconds": round(self.seconds, 3),
            "damaged": self.damaged,
            "archive_away": self.away,
            "missing_keys": dict(self.missing),
        }


def verify(*, workspace: UUID | None = None, newest: bool = False, sample: int | None = None) -> Verified:
    """Open checkpoints from where they are kept durably (no process memory, no Valkey) and say what came of it.

    ``newest``: only the one that each run would go on from. ``sample``: that many at random.
    """
    rows: QuerySet[Checkpoint] = Checkpoint.objects.all()
    if workspace is not None:
        rows = rows.filter(workspace_id=workspace)
    if newest:
        rows = rows.filter(seq=F("run__checkpoint_seq"))
    rows = rows.order_by("id") if sample is None else rows.order_by("?")[:sample]
    told, began = Verified(), time.monotonic()
    for run, seq in rows.values_list("run_id", "seq").iterator(chunk_size=500):
        _one(run, seq, told)
    told.seconds = time.monotonic() - began
    return told


def _one(run: UUID, seq: int, told: Verified) -> None:
    kept = tiers.row(run, seq)
    assert kept is not None
    told.looked += 1
    try:
        if kept.schema > codec.SCHEMA:
            tiers.fetch(kept, durable=True)
            told.from_future += 1
            return
        codec.parse(load.read(kept, durable=True)[0])
        told.opened += 1
    except Undecryptable as error:
        told.missing[error.facts["key"]] += 1
    except ArchiveAway as error:
        told.away.append(f"checkpoint {seq} of run {run}: {error}")
    except Unreadable as error:
        told.damaged.append(f"checkpoint {seq} of run {run}: {error}")
