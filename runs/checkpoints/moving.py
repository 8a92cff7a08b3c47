"""Checkpoints older than a week leave PostgreSQL for the archive; digest and address stay.

A full one and its deltas move together, once the youngest of them is old enough. The bytes are there, read back and
verified, before PostgreSQL lets go of them: a stop at any point leaves them whole in one place at least.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from runs.checkpoints import archive, keeping, tiers
from runs.errors import Unreadable
from runs.models import Checkpoint

log = logging.getLogger("recourse.checkpoints")

AFTER = timedelta(days=7)
PAGE = 200
"""Full ones that one call looks at."""


def move_due(now: datetime, *, beyond: int = 0, page: int = PAGE) -> tuple[int, int]:
    """Move what is due by ``now``, oldest first, from row id ``beyond`` on. Returns how many checkpoints moved, and
    the id to go on from (0: everything was looked at). Raises archive.Away when the archive does not answer."""
    young = Checkpoint.objects.filter(run_id=OuterRef("run_id"), base=OuterRef("seq"), at__gt=now - AFTER)
    due = Checkpoint.objects.filter(id__gt=beyond, address="", base=None, at__lte=now - AFTER).filter(~Exists(young))
    found = list(due.order_by("id").values_list("id", "run_id", "seq")[:page])
    moved = 0
    for id, run, seq in found:
        try:
            moved += _move(run, seq)
        except Unreadable as error:
            # Its copy here is the only one, and damaged: it stays for a person to see, and was reported.
            log.error("checkpoint row %s is not moved: %s", id, error)
    return moved, found[-1][0] if len(found) == page else 0


def _move(run: UUID, full: int) -> int:
    """Move a full checkpoint and its deltas. Returns how many; 0 if one of them changed meanwhile."""
    rows = Checkpoint.objects.filter(run_id=run, address="").filter(Q(seq=full) | Q(base=full))
    places: list[tuple[int, str, str]] = []
    for seq in rows.order_by("seq").values_list("seq", flat=True):
        kept = tiers.row(run, seq)
        assert kept is not None
        blob = tiers.fetch(kept, durable=True)
        address = archive.address_of(kept.workspace, kept.run, kept.seq, kept.digest)
        archive.put(address, blob)
        there = archive.get(address)
        if there is None or tiers.digest(there) != kept.digest:
            raise archive.Away(f"{address} reads back differently")
        places.append((kept.id, kept.digest, address))
    return len(places) if keeping.moved(places) else 0
