"""Where a checkpoint's bytes are, nearest first: process memory, the hot tier, PostgreSQL, the archive.

The row in PostgreSQL says which bytes they are (their digest). Each read compares; a copy that differs is reported,
and the next tier is asked. So an older copy, one of another timeline, or a damaged one is never taken for it.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import BinaryField, Case, F, When

from runs import record
from runs.checkpoints import archive, keeping
from runs.checkpoints.hot import Hot
from runs.checkpoints.memory import Memory
from runs.errors import ArchiveAway, RunsError, Unreadable
from runs.models import Checkpoint
from runs.record import Commit, Entry
from runs.states import EventKind

log = logging.getLogger("recourse.checkpoints")

COMES_ALONG = 16 * 1024
"""Bytes of a stored checkpoint that come with its row: asking twice would cost more than they weigh."""

memory = Memory()
hot = Hot()
_reported: set[tuple[str, str]] = set()


@dataclass(frozen=True, slots=True)
class Kept:
    """A checkpoint's row without its bytes, unless they are small."""

    id: int
    workspace: UUID
    run: UUID
    seq: int
    schema: int
    base: int | None
    digest: str
    size: int
    address: str
    at: datetime
    along: bytes | None


def digest(blob: bytes) -> str:
    """How a row names its bytes: SHA-256, lower-case hex."""
    return hashlib.sha256(blob).hexdigest()


def row(run: UUID, seq: int, **also: Any) -> Kept | None:
    """The row of checkpoint ``seq``; ``also`` narrows it."""
    along = Case(When(size__lte=COMES_ALONG, then=F("sealed")), default=None, output_field=BinaryField())
    names = ("id", "workspace_id", "run_id", "seq", "schema", "base", "digest", "size", "address", "at")
    rows = Checkpoint.objects.filter(run_id=run, seq=seq, **also).annotate(along=along)
    found: dict[str, Any] | None = rows.values(*names, "along").first()
    if found is None:
        return None
    where = {"workspace": found.pop("workspace_id"), "run": found.pop("run_id")}
    along_with = found.pop("along")
    return Kept(**where, **found, along=None if along_with is None else bytes(along_with))


def newest(run: UUID, blob: bytes, *, leaving: bool) -> None:
    """Keep what was just committed near. ``leaving``: the run is released, so another process may be the next."""
    memory.put(digest(blob), blob)
    if leaving:
        hot.put(run, blob)


def fetch(kept: Kept, *, durable: bool = False) -> bytes:
    """The bytes of a checkpoint, their digest verified. ``durable``: only PostgreSQL and the archive are asked, which
    is how it is found out whether they could be relied on. Raises Unreadable when no tier holds them whole."""
    damaged: list[str] = []
    away = ""
    for tier, get in _tiers(kept, durable):
        try:
            blob = get()
        except archive.Away as error:
            away = str(error)
            continue
        if blob is None:
            continue
        if digest(blob) == kept.digest:
            if tier != "memory" and not durable:
                memory.put(kept.digest, blob)
            for bad in damaged:
                _report(kept, bad, mended=_mend(kept, bad, blob))
            return blob
        damaged.append(tier)
    for bad in damaged:
        _report(kept, bad, mended=False)
    if away:
        raise ArchiveAway(f"the archive does not answer: {away}", run=str(kept.run), seq=kept.seq)
    why = "the stored bytes do not match their digest" if damaged else "the stored bytes are missing"
    raise Unreadable(f"{why} ({', '.join(damaged) or 'archive'})", run=str(kept.run), seq=kept.seq)


def _tiers(kept: Kept, durable: bool) -> Iterator[tuple[str, Callable[[], bytes | None]]]:
    if not durable:
        yield "memory", lambda: memory.get(kept.digest)
    if kept.along is not None:
        yield "record", lambda: kept.along
    if not durable:
        yield "hot", lambda: hot.get(kept.run, kept.digest)
    if kept.along is None and not kept.address:
        yield "record", lambda: _stored(kept)
    if kept.address:
        yield "archive", lambda: archive.get(kept.address)


def _stored(kept: Kept) -> bytes | None:
    found = Checkpoint.objects.filter(pk=kept.id).values_list("sealed", flat=True).first()
    return None if found is None else bytes(found)


def _mend(kept: Kept, tier: str, good: bytes) -> bool:
    """Put verified bytes in the place of a damaged copy. True where that copy is good again."""
    if tier == "memory":
        memory.put(kept.digest, good)
        return True
    if tier == "hot":
        hot.drop(kept.run)
        return False
    if tier == "record":
        return keeping.mend(kept.id, kept.digest, good)
    return False


def _report(kept: Kept, tier: str, *, mended: bool) -> None:
    """Say once a process that a copy was damaged: in the log, and as a line of the run's history."""
    log.error("checkpoint %s of run %s: its copy in %s is damaged", kept.seq, kept.run, tier)
    mark = (tier, kept.digest)
    if mark in _reported:
        return
    _reported.add(mark)
    data = {"seq": kept.seq, "tier": tier, "mended": mended}
    try:
        record.commit(Commit(kept.workspace, kept.run, [Entry(EventKind.CHECKPOINT_DAMAGED, data)]))
    except RunsError as error:
        log.error("the damaged checkpoint could not be noted: %s", error)
