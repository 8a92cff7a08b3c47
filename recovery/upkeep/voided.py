"""After a restore: requests for signatures of an earlier epoch are void, whatever the restored record shows of them."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from recovery import failpoints
from recovery.contract import registry
from recovery.contract.errors import UnknownOperation
from recovery.engine import approvals
from recovery.engine.approvals.asking import OPEN, review_of
from recovery.engine.changes import is_high, reason
from recovery.engine.endings import told_of
from runs import record
from runs.errors import LostRace
from runs.models import Approval
from runs.record import Commit, Entry
from runs.states import ApprovalState, EffectState, EventKind

log = logging.getLogger("recourse.restore")


def void(workspace: UUID, epoch: int) -> int:
    """End every open request of an epoch before ``epoch``; returns how many. Whoever signed it signs a renewal anew.

    What was granted and, by the restored record, not used may have been used since the backup (fault 37).
    """
    rows = Approval.objects.filter(workspace_id=workspace, state__in=OPEN, epoch__lt=epoch)
    return sum(_void(one) for one in rows.select_related("effect", "group", "run"))


def _void(approval: Approval) -> int:
    effect = approval.effect
    facts: dict[str, Any] = {"epoch": approval.epoch}
    if effect.state == EffectState.READY and approval.state == ApprovalState.GRANTED:
        entries = approvals.give_back(effect, approvals.Refused("approval_void", facts, approval))
    else:
        ended = {"state": ApprovalState.EXPIRED, "reason": reason("approval_void", **facts)}
        changes = [
            record.move("approval", approval.pk, [approval.state], ended, times={"ended_at": 0}),
            record.close_reviews(approval.pk),
        ]
        if effect.state == EffectState.AWAITING_APPROVAL:
            told = reason("approval_void", describe=effect.describe, stake=effect.stake, **facts)
            try:
                due_in = registry.effect_contract(effect.operation, effect.contract_version).due_in
            except UnknownOperation:
                log.error("request %s stays: no process here knows %s", approval.pk, effect.operation)
                return 0
            changes.append(review_of(approval, told, high=is_high(effect), due_in=due_in))
        data = {**told_of(effect), "approval": str(approval.pk), "revision": approval.revision, "code": "approval_void"}
        entries = [Entry(EventKind.APPROVAL_VOIDED, data | facts, [*changes, record.reckon()])]
    try:
        with failpoints.committing("void"):
            record.commit(Commit(approval.workspace_id, approval.run_id, entries))
    except LostRace as error:
        log.info("after the restore: %s", error)
        return 0
    return 1
