"""Handed effects: a dispatch worker claims one by its state, commits the attempt, sends, commits the outcome.

It calls no step and moves no run; the outcome's commit wakes the run. No connection is held during a call.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from recovery import failpoints
from recovery.contract import EffectContract
from recovery.engine import approvals, endings, insisting, intents, lookfirst, missing, outbound, snapshots, workers
from recovery.engine.changes import unchecked
from recovery.engine.decide import decide
from recovery.engine.snapshot import Snapshot, Verb
from recovery.traffic import admission, lanes
from recovery.traffic.admission import Standing, standing_of
from recovery.traffic.lanes import Lane, Turn
from runs import clock, record
from runs.errors import IllegalMove, LostRace, NoPermit, StaleVersion
from runs.models import Approval, Effect, Run
from runs.record import Admission, Change, Commit, Committed, Entry
from runs.states import RUN_ENDED, EffectState, EventKind, RunState, WaitingOn

_STANDS = frozenset({RunState.CANCELLING, RunState.QUARANTINED, RunState.PAUSING, RunState.PAUSED})
MAY_SEND = tuple(state for state in RunState if state not in RUN_ENDED | _STANDS)
"""States of a run whose effects may be sent; in quarantine nothing happens, and while it stands nothing new."""


def stopped(run: Mapping[str, Any]) -> bool:
    """Whether the nine checks have stopped ``run``: until they have passed nothing of it is sent, also not while its
    owner makes them again (invariant 13).
    """
    return run["waiting_on"] == WaitingOn.PERSON or unchecked(run)


def dispatch(effect_id: UUID) -> str:
    """Send ``effect_id`` if it is ready and may be sent now. Returns what came of it, for the log.

    Where its dependency is paced, few threads wait for it; what they find no room for is sent by them afterwards.
    """
    effect = _read(effect_id)
    at = standing_of(effect.dependency)
    lane = lane_of(at)
    if lane is None:
        return _dispatch(effect, at, None)
    if not lane.enter(effect_id):
        return "behind others"
    word, next_one = _in_lane(lane, effect_id)
    while next_one is not None:
        word, next_one = _in_lane(lane, next_one)
    return word


def _read(effect_id: UUID) -> Effect:
    return Effect.objects.select_related("dependency__capacity").get(pk=effect_id)


def _in_lane(lane: Lane, effect_id: UUID) -> tuple[str, UUID | None]:
    connection.close()  # whoever waits for a turn holds none
    turn = lane.turn()
    try:
        effect = _read(effect_id)
        word = _dispatch(effect, standing_of(effect.dependency), lane, turn)
    except BaseException:
        lane.give_up()
        raise
    finally:
        turn.over()
    return word, lane.leave()


def lane_of(at: Standing) -> Lane | None:
    """This process's lane to a dependency that is paced, else None."""
    if at.pace is None or at.capacity.rate is None:
        return None
    return lanes.lane(at.dependency.pk, at.capacity.pk, at.pace, admission.pace(at.capacity.rate))


def _dispatch(effect: Effect, at: Standing, lane: Lane | None, turn: Turn | None = None) -> str:
    if effect.state != EffectState.READY:
        return effect.state
    contract = missing.contract_of(effect)
    if contract is None:
        return "version_missing"
    run = snapshots.run_of(effect)
    if stopped(run):
        return "waits for a person"
    now = clock.now()
    snap = snapshots.take(effect, contract, run, now, at)
    decision = decide(snap, contract, now)
    if decision.verb != Verb.SEND:
        return _not_now(effect, contract, decision, now)
    looked = lookfirst.before_send(effect, contract, run, snap, now)
    if looked:
        return looked
    consume: list[Change] = []
    if contract.approval is not None:
        checked = approvals.check_before_send(effect, now)
        if isinstance(checked, approvals.Refused):
            entries = approvals.give_back(effect, checked)
            return _quietly(Commit(effect.workspace_id, effect.run_id, entries), "held back")
        if isinstance(checked, Approval):
            consume = approvals.consume(checked)
    return send(effect, contract, run, snap, consume=consume, decided_at=now, lane=lane, turn=turn)


def send(
    effect: Effect,
    contract: EffectContract,
    run: Mapping[str, Any],
    snap: Snapshot,
    *,
    consume: list[Change],
    decided_at: datetime,
    lane: Lane | None = None,
    turn: Turn | None = None,
) -> str:
    """Claim, send, record: for an effect that is ready, or unknown and sent again with the same key.

    ``snap``: what was decided on; ``consume``: the changes that use its signatures up. ``decided_at``: when; whoever
    slept since decides anew, since a window, a budget or a signer may have gone meanwhile (invariants 8 and 10).
    ``lane``: where its dependency is paced; ``turn``: the caller's turn in it, given up once the attempt is committed.
    """
    token = int(run["token"])
    attempt, entry = _intent(effect, contract, token, consume)
    failpoints.hit("dispatch.before_claim")
    began = clock.elapsed()
    try:
        fresh = decided_at + intents.ATTEMPT_GRACE + timedelta(seconds=0 if lane is None else admission.AHEAD)
        admit = Admission(ahead=admission.AHEAD, budget=contract.retry.budget)
        commit = Commit(effect.workspace_id, effect.run_id, [entry], before=fresh, admission=admit)
        done = _claim(effect, contract, commit, lane, turn)
    except NoPermit as error:
        why = error.facts.get("why")
        return "no permit" if why == "permits" else f"no permit: {why}"
    except (LostRace, StaleVersion, IllegalMove):
        return "another was first"
    failpoints.hit("dispatch.after_claim")
    watch = clock.Watch(done.at, began)
    claimed = endings.twin(effect)
    claimed.state, claimed.attempts, claimed.version = EffectState.IN_FLIGHT, attempt["n"], effect.version + 1
    if done.wait is not None and lane is not None:
        connection.close()
        lane.road.depart(done.wait, lane.gap)
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

    def keep() -> str:
        ended = outbound.ended(
            claimed,
            attempt["id"],
            attempt["n"],
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
        return str(ended.effect.state)

    came = insisting.insist(keep)
    failpoints.hit("dispatch.after_outcome")
    return came


def _intent(
    effect: Effect, contract: EffectContract, token: int, consume: list[Change]
) -> tuple[dict[str, Any], Entry]:
    """The row of the next attempt, and the entry that claims the effect for it."""
    attempt = intents.attempt_row(
        {"workspace_id": effect.workspace_id, "run_id": effect.run_id, "id": effect.pk},
        n=effect.attempts + 1,
        token=token,
        worker=workers.me("dispatch").id,
    )
    how = "again" if effect.state == EffectState.UNKNOWN else "handed"
    flies = {"state": EffectState.IN_FLIGHT, "attempts": attempt["n"], "not_before": None, "next_check_at": None}
    changes = [
        # A cancel request that came first stops this send; whoever is first under the run's lock decides.
        record.run_moves({}, prior=MAY_SEND),
        *consume,
        record.move("effect", effect.pk, [effect.state], flies, version=effect.version),
        record.new("attempt", attempt, intents.attempt_times(contract.timeout)),
        record.reckon(),
    ]
    told = {**endings.told_of(effect), "attempt": str(attempt["id"]), "n": attempt["n"], "how": how}
    return attempt, Entry(EventKind.EFFECT_SENT, told, changes)


def _claim(effect: Effect, contract: EffectContract, commit: Commit, lane: Lane | None, turn: Turn | None) -> Committed:
    """Commit an attempt. In a lane few threads ask for a moment at once, and wait until they may have one.

    Raises NoPermit when that is too far away, or when it is not the pace that stops it.
    """
    if lane is None:
        return _commit(effect, contract, commit)
    if turn is None:
        connection.close()
        turn = lane.turn()
    until = time.monotonic() + admission.AHEAD
    try:
        while True:
            try:
                return _commit(effect, contract, commit)
            except NoPermit as error:
                wait = error.facts.get("wait")
                if error.facts.get("why") != "pace" or wait is None or time.monotonic() + wait > until:
                    raise
            connection.close()  # none is held while waiting
            time.sleep(max(float(wait) - lane.gap, 0.001))
    finally:
        turn.over()


def _commit(effect: Effect, contract: EffectContract, commit: Commit) -> Committed:
    """Commit the attempt. With signatures: judged once more under the run's lock, in the same transaction (R5)."""
    if contract.approval is None:
        return record.commit(commit)
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(pk=effect.run_id)
        checked = approvals.check_before_send(effect, clock.now())
        if isinstance(checked, approvals.Refused):
            raise LostRace(f"its signatures do not hold any more: {checked.code}", thing="approval")
        return record.commit(commit)


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
    if decision.reason in _TOLD and (effect.decision or {}).get("reason") != decision.reason:
        # Once: whoever looks at it sees what it waits for. It stays due, and goes when its dependency lets it.
        told = record.move("effect", effect.pk, [effect.state], {"decision": decision.as_json()})
        entry = Entry(EventKind.EFFECT_CHECKED, {**endings.told_of(effect), "decision": decision.as_json()}, [told])
        return _quietly(Commit(effect.workspace_id, effect.run_id, [entry]), str(decision.reason))
    return str(decision.reason)


_TOLD = ("dependency_held", "budget_used_up")


def _quietly(commit: Commit, word: str) -> str:
    failpoints.hit("dispatch.before_hold")
    try:
        record.commit(commit)
    except (LostRace, StaleVersion, IllegalMove):
        return "another was first"
    failpoints.hit("dispatch.after_hold")
    return word
