"""After a restore: everything that the other sides made since the backup under keys of ours, and what of it is news."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from django.db import connection

from recovery import failpoints
from recovery.contract import EffectContract, registry
from recovery.contract.errors import UnknownOperation
from recovery.contract.readback import Listed
from recovery.engine import endings, intents, outbound, reading, snapshots
from recovery.engine.decide import decide
from recovery.engine.lookfirst import Stretch
from runs import clock, record
from runs.errors import LostRace, StaleVersion
from runs.models import Dependency, Effect, Restore, Run
from runs.models.base import new_id
from runs.record import Change, Commit, Entry
from runs.restored import RestoreState
from runs.states import EFFECT_FREES_KEY, EventKind

log = logging.getLogger("recourse.restore")

MARGIN: Final = timedelta(minutes=5)
"""Their clock may be behind ours by this much (fault 26): the list begins so much earlier."""


def carry_on(restore: Restore, stretch: Stretch, *, until: float) -> list[dict[str, Any]]:
    """Read the next pages. Returns the operations that are not listed to their end, each with why."""
    left = []
    for contract in _contracts():
        where = Dependency.objects.filter(workspace_id=restore.workspace_id, name=contract.dependency).first()
        if where is None or not _ours_alone(where):
            continue
        state = dict(restore.progress.get(contract.operation, {}))
        while not state.get("done") and time.monotonic() < until:
            page = _read(contract, where, stretch, state.get("cursor"))
            if page.error is not None or not _late_enough(contract, page, stretch):
                state["error"] = page.error or "not_up_to_date"
                break
            state = {"cursor": page.next, "n": state.get("n", 0) + len(page.items), "done": page.next is None}
            _keep(restore, contract, where, page, state)
        if not state.get("done"):
            left.append({"operation": contract.operation, "error": state.get("error"), "n": state.get("n", 0)})
    return left


def _contracts() -> list[EffectContract]:
    """The newest version of each operation that can be listed."""
    newest = {contract.operation: contract for contract in registry.effects()}
    return [one for one in newest.values() if one.reconcile is not None and one.reconcile.listing is not None]


def _ours_alone(where: Dependency) -> bool:
    """Whether, of the workspaces that use this account, the record knows runs of this one alone.

    Of a shared account nothing tells whose a record is, and nobody sees another's (invariant 14): it is not listed.
    """
    sharing = Dependency.objects.filter(base_url=where.base_url, credential=where.credential)
    spaces = set(sharing.values_list("workspace_id", flat=True))
    at_work = {space for space in spaces if Run.objects.filter(workspace_id=space).exists()}
    return spaces == {where.workspace_id} or at_work == {where.workspace_id}


def _read(contract: EffectContract, where: Dependency, stretch: Stretch, cursor: str | None) -> Listed:
    readback = contract.reconcile
    assert readback is not None
    connection.close()  # given back to the pool: none is held during the call
    try:
        secret = outbound.authorization(where.credential)
        return readback.list_since(contract.port, where.base_url, stretch.start - MARGIN, cursor, authorization=secret)
    except outbound.CredentialMissing:
        return Listed([], None, None, "credential_missing")
    except Exception:
        # Functions of the contract's author: whatever they raise, it is listed as not read.
        log.exception("%s: its listing raised", contract.operation)
        return Listed([], None, None, "check_raised")


def _late_enough(contract: EffectContract, page: Listed, stretch: Stretch) -> bool:
    """Whether the list speaks of a moment after which nothing of the stretch could arrive."""
    assert contract.reconcile is not None
    lag = max(contract.reconcile.lag, contract.promise.lag or timedelta(0))
    speaks_of = page.as_of if page.as_of is not None else clock.now() - lag
    return speaks_of >= stretch.arrives_until(contract)


def _keep(restore: Restore, contract: EffectContract, where: Dependency, page: Listed, state: dict[str, Any]) -> None:
    """What the record does not know is kept as found; what it knows otherwise is contradicted by this evidence."""
    known = _known(restore, contract, [reference for reference, _item, _made in page.items])
    news: list[Change] = []
    for reference, item, made in page.items:
        effect = known.get(reference)
        if effect is None:
            row = {
                "id": new_id(),
                "workspace_id": restore.workspace_id,
                "restore_id": restore.pk,
                "dependency_id": where.pk,
                "operation": contract.operation,
                "reference": reference[:255],
                "item": item,
                "made_at": made,
            }
            news.append(record.new("recovered", row, {"found_at": 0}))
        elif effect.state in EFFECT_FREES_KEY:
            _contradict(effect, item, reference)
    restore.progress = {**restore.progress, contract.operation: state}
    moved = record.move("restore", restore.pk, [RestoreState.FROZEN], {"progress": restore.progress})
    told = {"restore": str(restore.pk), "operation": contract.operation, "listed": len(page.items), "new": len(news)}
    try:
        with failpoints.committing("listing"):
            record.commit(Commit(restore.workspace_id, None, [Entry(EventKind.EFFECT_RECOVERED, told, [*news, moved])]))
    except LostRace as error:
        log.info("after the restore: %s", error)


def _known(restore: Restore, contract: EffectContract, references: list[str]) -> dict[str, Effect]:
    """Effects of the record by the key as sent, of any operation at this dependency."""
    keys = {part for one in references for part in (one, one.rpartition("/")[0])} - {""}
    operations = {one.operation for one in registry.effects() if one.dependency == contract.dependency}
    rows = Effect.objects.filter(workspace_id=restore.workspace_id, operation__in=operations, key__in=keys)
    return {row.sent_key: row for row in rows}


def _contradict(effect: Effect, item: Any, reference: str) -> None:
    """The record says that it did not happen, the authority that it did: evidence, and a dispute if it proves."""
    try:
        contract = registry.effect_contract(effect.operation, effect.contract_version)
    except UnknownOperation as error:
        log.error("effect %s is contradicted, and no process here can say so: %s", effect.pk, error)
        return
    if contract.reconcile is None:
        return
    now = clock.now()
    params = intents.load_request(effect).params
    answer = contract.reconcile.compare(item, params, reference, body=effect.body.encode(), at=now)
    row = reading.evidence(effect, answer, now)
    snap = snapshots.take(effect, contract, snapshots.run_of(effect), now)
    if any(one.kind == row["kind"] and one.claim == row["claim"] for one in snap.evidence):
        return
    seen = replace(snap, evidence=(*snap.evidence, endings.evidence_view(row, now)))
    decision = decide(seen, contract, now)
    ended = endings.conclude(
        effect,
        decision,
        contract,
        now=now,
        before=[record.new("evidence", row, {"received_at": 0})],
        data={"evidence": str(row["id"]), "claim": row["claim"], "strength": row["strength"]},
        bump=True,
        version=effect.version,
    )
    try:
        record.commit(Commit(effect.workspace_id, effect.run_id, [ended.entry]))
    except (LostRace, StaleVersion) as error:
        log.info("after the restore: %s", error)
