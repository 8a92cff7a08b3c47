"""The sweep after a restore: what happened in the stretch that the record lost, asked of those who know.

It only reads outside. One call does a bounded part, any number of calls at once do no more than one: each row is
changed by its prior state. What cannot be found out is listed, and stays guarded by ``recovery/engine/lookfirst.py``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef

from recovery import failpoints
from recovery.contract import registry
from recovery.contract.errors import UnknownOperation
from recovery.engine import lookfirst, reconcile, snapshots
from recovery.engine.lookfirst import Stretch
from recovery.upkeep import listings, voided
from runs import clock, record
from runs.errors import LostRace
from runs.models import Attempt, Effect, Evidence, Recovered, Restore
from runs.record import Commit, Entry
from runs.restored import RestoreState
from runs.states import ATTEMPT_LIVE, Claim, EffectState, EventKind, EvidenceKind

log = logging.getLogger("recourse.restore")

SLICE: Final = 5.0
"""Seconds that one call works; the sweep rings again."""

PATIENCE: Final = timedelta(minutes=15)
"""How long after the last possible arrival the sweep goes on asking what does not answer."""

LISTED: Final = 50
PAGE: Final = 500
_DOUBTFUL = (EffectState.IN_FLIGHT, EffectState.UNKNOWN, EffectState.ACCEPTED)

_clear: dict[UUID, set[UUID]] = {}
"""By restore: effects that were found not sent. Only spares this process a second look."""


def carry_on(restore_id: UUID) -> str:
    """Do the next part for one workspace. Returns what came of it, for the log."""
    restore = Restore.objects.get(pk=restore_id)
    if restore.state != RestoreState.FROZEN:
        return restore.state
    until = time.monotonic() + SLICE
    now = clock.now()
    stretch = Stretch(restore.pk, restore.backup_at, restore.began_at)
    _give_up_attempts(restore)
    undoubted = _doubt_open(restore, stretch, now)
    voided.void(restore.workspace_id, restore.epoch)
    if now < _arrived(stretch):
        return "what was sent may still arrive"
    over = now >= _arrived(stretch) + PATIENCE
    unlisted = listings.carry_on(restore, stretch, until=until)
    unlooked = _look(restore, stretch, until) + undoubted
    unread = _unread(restore)
    if (unlisted or unlooked or unread) and not over:
        return f"to list: {len(unlisted)}, to look at: {unlooked}, to read: {unread}"
    return _finish(restore, unlisted, unlooked)


def _arrived(stretch: Stretch) -> datetime:
    """When nothing that was sent in the stretch can arrive any more, by the slowest contract."""
    return max((stretch.arrives_until(contract) for contract in registry.effects()), default=stretch.until)


def _give_up_attempts(restore: Restore) -> None:
    """Attempts that the backup shows as out: their senders worked on in a world that is gone."""
    rows = Attempt.objects.filter(
        workspace_id=restore.workspace_id, state__in=list(ATTEMPT_LIVE), committed_at__lt=restore.began_at
    )
    for pk in list(rows.values_list("pk", flat=True)):
        reconcile.lose(pk)


def _doubt_open(restore: Restore, stretch: Stretch, now: datetime) -> int:
    """Each effect that was out or unknown may have been tried once more: "not found" counts from the last arrival.

    Returns how many this process knows no contract for; whoever does will.
    """
    left = 0
    marked = Attempt.objects.filter(effect_id=OuterRef("pk"), worker=restore.pk)
    rows = Effect.objects.filter(workspace_id=restore.workspace_id, state__in=_DOUBTFUL, requested_at__lt=stretch.until)
    for effect in rows.filter(~Exists(marked)):
        try:
            contract = registry.effect_contract(effect.operation, effect.contract_version)
        except UnknownOperation:
            left += 1
            continue
        entries = lookfirst.doubt(effect, contract, snapshots.run_of(effect), stretch, now)
        _try("doubt", Commit(effect.workspace_id, effect.run_id, entries))
    return left


def _look(restore: Restore, stretch: Stretch, until: float) -> int:
    """Ask about what looks unsent. Returns how many are not clear yet."""
    clear = _clear.setdefault(restore.pk, set())
    left = 0
    for pk in _unsent(restore, stretch):
        if pk in clear:
            continue
        if time.monotonic() > until or _look_at(Effect.objects.get(pk=pk), stretch):
            left += 1
        else:
            clear.add(pk)
    return left


def _unsent(restore: Restore, stretch: Stretch) -> Iterator[UUID]:
    """What looks unsent, in pages that are read whole: connections are given back in between."""
    rows = Effect.objects.filter(
        workspace_id=restore.workspace_id,
        state__in=lookfirst.UNSENT,
        requested_at__lt=stretch.until,
        next_check_at__isnull=False,
    ).order_by("id")
    page = list(rows.values_list("pk", flat=True)[:PAGE])
    while page:
        yield from page
        page = list(rows.filter(pk__gt=page[-1]).values_list("pk", flat=True)[:PAGE])


def _look_at(effect: Effect, stretch: Stretch) -> bool:
    """One effect; True while it is not clear whether it was sent."""
    try:
        contract = registry.effect_contract(effect.operation, effect.contract_version)
    except UnknownOperation:
        return True  # no process here knows how to ask; whoever does will
    now = clock.now()
    run = snapshots.run_of(effect)
    snap = snapshots.take(effect, contract, run, now)
    if not lookfirst.may_be_lost(effect, contract, stretch, snap):
        return False
    if contract.reconcile is None and lookfirst.replays(contract, stretch, now):
        return False
    looked = any(one.received_at > stretch.until for one in snap.evidence)
    if looked and effect.not_before is not None and effect.not_before > now:
        return True
    return lookfirst.look(effect, contract, run, snap, stretch, now) not in ("", "doubtful", "found")


def _unread(restore: Restore) -> int:
    """Effects in doubt that can be read and have not been since: the ordinary sweep reads them."""
    lost = Attempt.objects.filter(effect_id=OuterRef("pk"), worker=restore.pk)
    read = Evidence.objects.filter(
        effect_id=OuterRef("pk"), kind=EvidenceKind.READBACK, received_at__gte=restore.began_at
    ).exclude(claim=Claim.UNAVAILABLE)
    unknown = Effect.objects.filter(workspace_id=restore.workspace_id, state=EffectState.UNKNOWN)
    rows = unknown.filter(Exists(lost), ~Exists(read))
    return sum(_can_read(effect) for effect in rows.only("operation", "contract_version"))


def _can_read(effect: Effect) -> bool:
    try:
        return registry.effect_contract(effect.operation, effect.contract_version).reconcile is not None
    except UnknownOperation:
        return False


def _finish(restore: Restore, unlisted: list[dict[str, Any]], unlooked: int) -> str:
    touched = Effect.objects.filter(workspace_id=restore.workspace_id).filter(
        Exists(Attempt.objects.filter(effect_id=OuterRef("pk"), worker=restore.pk))
    )
    counts: dict[str, int] = {}
    for state in touched.values_list("state", flat=True):
        counts[state] = counts.get(state, 0) + 1
    clear = _clear.pop(restore.pk, set())
    found = {
        "recovered": Recovered.objects.filter(restore=restore).count(),
        "clear": len(clear),
        "effects": counts,
    }
    left: list[dict[str, Any]] = [{"code": "not_listed", **one} for one in unlisted]
    if unlooked:
        left.append({"code": "not_looked_at", "n": unlooked})
    open_still = [str(pk) for pk in touched.filter(state__in=_DOUBTFUL).order_by("id").values_list("pk", flat=True)]
    if open_still:
        left.append({"code": "unknown", "n": len(open_still), "effects": open_still[:LISTED]})
    swept = {"state": RestoreState.SWEPT, "found": found, "left": left}
    data = {"restore": str(restore.pk), "epoch": restore.epoch, "found": found, "left": left}
    change = record.move("restore", restore.pk, [RestoreState.FROZEN], swept, times={"swept_at": 0})
    _try("swept", Commit(restore.workspace_id, None, [Entry(EventKind.EPOCH_SWEPT, data, [change])]))
    return "swept"


def _try(room: str, commit: Commit) -> bool:
    try:
        with failpoints.committing(room):
            record.commit(commit)
    except LostRace as error:
        log.info("after the restore: %s", error)
        return False
    return True
