"""Handed effects: a dispatch worker claims one by its state, commits the attempt, sends, commits the outcome.

It calls no step and moves no run; the outcome's commit wakes the run. No connection is held during a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import connection

from recovery import failpoints
from recovery.contract import EffectContract, registry
from recovery.engine import approvals, endings, intents, outbound, snapshots, workers
from recovery.engine.decide import decide
from recovery.engine.snapshot import Snapshot, Verb
from runs import clock, record
from runs.errors import IllegalMove, LostRace, NoPermit, StaleVersion
from runs.models import Approval, Effect
from runs.record import Change, Commit, Entry
from runs.states import RUN_ENDED, EffectState, EventKind, RunState, WaitingOn

MAY_SEND = tuple(state for state in RunState if state not in RUN_ENDED | {RunState.CANCELLING, RunState.QUARANTINED})
"""States of a run whose effects may be sent; in quarantine nothing happens, and while cancelling nothing new."""


def dispatch(effect_id: UUID) -> str:
    """Send ``effect_id`` if it is ready and may be sent now. Returns what came of it, for the log."""
    effect = Effect.objects.get(pk=effect_id)
    if effect.state != EffectState.READY:
        return effect.state
    contract = registry.effect_contract(effect.operation, effect.contract_version)
    run = snapshots.run_of(effect)
    if run["waiting_on"] == WaitingOn.PERSON:
        # The nine checks asked a person whether this run goes on: until then nothing of it is sent (invariant 13).
        return "waits for a person"
    now = clock.now()
    snap = snapshots.take(effect, contract, run, now)
    decision = decide(snap, contract, now)
    if decision.verb != Verb.SEND:
        return _not_now(effect, contract, decision, now)
    consume: list[Change] = []
    if contract.approval is not None:
        checked = approvals.check_before_send(effect, now)
        if isinstance(checked, approvals.Refused):
            entries = approvals.give_back(effect, checked)
            return _quietly(Commit(effect.workspace_id, effect.run_id, entries), "held back")
        if isinstance(checked, Approval):
            consume = approvals.consume(checked)
    return send(effect, contract, run, snap, consume=consume)


def send(
    effect: Effect,
    contract: EffectContract,
    run: Mapping[str, Any],
    snap: Snapshot,
    *,
    consume: list[Change],
) -> str:
    """Claim, send, record: for an effect that is ready, or unknown and sent again with the same key.

    ``snap``: what was decided on; ``consume``: the changes that use its signatures up.
    """
    me = workers.me("dispatch")
    n = effect.attempts + 1
    token = int(run["token"])
    attempt = intents.attempt_row(
        {"workspace_id": effect.workspace_id, "run_id": effect.run_id, "id": effect.pk},
        n=n,
        token=token,
        worker=me.id,
    )
    how = "again" if effect.state == EffectState.UNKNOWN else "handed"
    entry = Entry(
        EventKind.EFFECT_SENT,
        {**endings.told_of(effect), "attempt": str(attempt["id"]), "n": n, "how": how},
        [
            # A cancel request that came first stops this send; whoever is first under the run's lock decides.
            record.run_moves({}, prior=MAY_SEND),
            *consume,
            record.move(
                "effect",
                effect.pk,
                [effect.state],
                {"state": EffectState.IN_FLIGHT, "attempts": n, "not_before": None, "next_check_at": None},
                version=effect.version,
            ),
            record.new("attempt", attempt, intents.attempt_times(contract.timeout)),
            record.reckon(),
        ],
    )
    failpoints.hit("dispatch.before_claim")
    try:
        done = record.commit(Commit(effect.workspace_id, effect.run_id, [entry]))
    except NoPermit:
        return "no permit"
    except (LostRace, StaleVersion, IllegalMove):
        return "another was first"
    failpoints.hit("dispatch.after_claim")
    watch = clock.Watch(done.at)
    claimed = endings.twin(effect)
    claimed.state, claimed.attempts, claimed.version = EffectState.IN_FLIGHT, n, effect.version + 1
    if contract.claims_before_send:
        try:
            outbound.claim(effect, attempt["id"])
        except LostRace:
            return "taken for lost"
    connection.close()  # given back to the pool: none is held during the call
    sent = outbound.send(
        claimed,
        attempt["id"],
        token,
        contract,
        committed_at=done.at,
        now=watch.now(),
        execute_by=snap.execute_by if snap.needs_approval else None,
    )
    failpoints.hit("dispatch.before_outcome")
    ended = outbound.ended(
        claimed,
        attempt["id"],
        n,
        sent,
        contract,
        snapshots.run_of(effect),
        committed_at=done.at,
        now=watch.now(),
        earlier=snap.attempts,
        evidence=snap.evidence,
    )
    commit = Commit(effect.workspace_id, effect.run_id, [ended.entry])
    if not outbound.commit_or_keep(lambda: record.commit(commit), claimed, attempt["id"], sent, watch.now()):
        return "late"
    failpoints.hit("dispatch.after_outcome")
    return ended.effect.state


def _not_now(effect: Effect, contract: EffectContract, decision: Any, now: Any) -> str:
    if decision.verb == Verb.SETTLE or decision.becomes is not None:
        if decision.becomes == EffectState.AWAITING_APPROVAL:
            refused = approvals.Refused(decision.reason, dict(decision.facts))
            entries = approvals.give_back(effect, refused)
        else:
            entries = [endings.conclude(effect, decision, contract, now=now).entry]
            if decision.verb == Verb.SETTLE:
                entries[0].changes = [*approvals.revoke(effect), *entries[0].changes]
        return _quietly(Commit(effect.workspace_id, effect.run_id, entries), str(decision.reason))
    return str(decision.reason)


def _quietly(commit: Commit, word: str) -> str:
    try:
        record.commit(commit)
    except (LostRace, StaleVersion, IllegalMove):
        return "another was first"
    return word
