"""Finding out how an effect ended: read the authority, send again under the same key, or ask a person.

Called by the sweep, by a doorbell, or by a person who presses "Check with … now". Everything is decided by
``decide`` and guarded by the prior state, so any number of calls at once do no more than one.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import DataError, connection

from recovery import failpoints
from recovery.contract import EffectContract, registry
from recovery.contract.readback import ReadbackAnswer
from recovery.engine import approvals, dispatch, endings, missing, plans, reading, snapshots
from recovery.engine.decide import decide
from recovery.engine.snapshot import Decision, Snapshot, Verb
from recovery.traffic import admission, lanes
from recovery.traffic.admission import Standing, standing
from runs import clock, record
from runs.errors import IllegalMove, LostRace, NoPermit, NotUnknown, StaleVersion
from runs.models import Attempt, Dependency, Effect
from runs.record import Act, Commit, Committed, Entry
from runs.states import ATTEMPT_LIVE, AttemptState, Claim, EffectState, EventKind, EvidenceKind

log = logging.getLogger("recourse.reconcile")

AGAIN_IF_STOPPED = timedelta(minutes=1)
"""Until an effect is looked at again whose run a person has to let go on."""


def reconcile(effect_id: UUID) -> str:
    """Do the next thing about ``effect_id``. Returns what came of it, for the log."""
    effect = Effect.objects.get(pk=effect_id)
    contract = missing.contract_of(effect)
    if contract is None:
        return "version_missing"
    run = snapshots.run_of(effect)
    now = clock.now()
    if effect.state == EffectState.IN_FLIGHT:
        lost = _lost(effect, contract, run, now)
        if lost:
            return lost
    at = standing(effect.dependency_id)
    snap = snapshots.take(effect, contract, run, now, at)
    decision = decide(snap, contract, now)
    if decision.verb == Verb.READ_BACK or _before_the_drain(effect, contract, snap, at):
        try:
            _, seen, done = _ask(effect, contract, run, snap)
        except NoPermit:
            return "no permit"
        return seen if done else "another was first"
    if decision.verb == Verb.RESEND and dispatch.stopped(run):
        # A send again may be the first to arrive: not before the run's checks have passed (invariant 13).
        again = now + AGAIN_IF_STOPPED
        decision = replace(decision, verb=Verb.WAIT, reason="run_stopped", not_before=again)
    if decision.verb == Verb.RESEND:
        lane = dispatch.lane_of(at)
        return dispatch.send(effect, contract, run, snap, consume=[], decided_at=now, lane=lane)
    if decision.verb == Verb.SEND:
        return dispatch.dispatch(effect.pk)
    if effect.state == EffectState.AWAITING_APPROVAL:
        return _awaiting(effect, contract, decision, now)
    return _carry_out(effect, contract, run, decision, now)


def _before_the_drain(effect: Effect, contract: EffectContract, snap: Snapshot, at: Standing) -> bool:
    """A drain reads back what nobody knows before anything is written: once, whenever its next check was due."""
    if effect.state != EffectState.UNKNOWN or contract.reconcile is None:
        return False
    since = at.wants_check(effect.requested_at)
    looked = [e.received_at for e in snap.evidence if e.kind == EvidenceKind.READBACK]
    return since is not None and all(when < since for when in looked)


def check(effect_id: UUID, *, actor: UUID, act: Act) -> tuple[dict[str, Any], Committed]:
    """Ask the dependency now because a person wants to know. Reads only. Returns the evidence row and the commit.

    Raises NotUnknown where nothing can be asked.
    """
    effect = Effect.objects.get(pk=effect_id)
    contract = registry.effect_contract(effect.operation, effect.contract_version)
    if contract.reconcile is None or not effect.attempts:
        raise NotUnknown("there is no way to check", dependency=contract.dependency)
    run = snapshots.run_of(effect)
    snap = snapshots.take(effect, contract, run, clock.now())
    row, _, done = _ask(effect, contract, run, snap, actor=actor, act=act)
    assert done is not None
    return row, done


def look(effect: Effect, contract: EffectContract) -> dict[str, Any]:
    """Ask the dependency about an effect that has happened; the answer is kept, and a contradiction disputes it.

    Reads only. Returns the evidence row. Its contract must have a readback.
    """
    run = snapshots.run_of(effect)
    snap = snapshots.take(effect, contract, run, clock.now())
    row, _, _ = _ask(effect, contract, run, snap)
    return row


def lose(attempt_id: UUID) -> str:
    """An attempt past its limit, or whose sender died, is lost: its effect is unknown (or known not sent)."""
    attempt = Attempt.objects.select_related("effect").get(pk=attempt_id)
    if attempt.state not in ATTEMPT_LIVE:
        return attempt.state
    effect = attempt.effect
    contract = missing.contract_of(effect, attempt)
    if contract is None:
        return "version_missing"
    return _lost(effect, contract, snapshots.run_of(effect), clock.now()) or "still out"


def _lost(effect: Effect, contract: EffectContract, run: Mapping[str, Any], now: datetime) -> str:
    snap = snapshots.take(effect, contract, run, now)
    live = [a for a in snap.attempts if a.state in ATTEMPT_LIVE]
    if live and not any(not a.sender_alive or now >= a.expires_at for a in live):
        return "in flight"
    if not live:
        # Its end was recorded and the effect's was not: cannot happen in one commit, so look at it as it stands.
        decision = decide(snap, contract, now)
        return _carry_out(effect, contract, run, decision, now)
    last = live[-1]
    unsent = contract.claims_before_send and last.state == AttemptState.COMMITTED
    state = AttemptState.NOT_SENT if unsent else AttemptState.LOST
    before = [record.move("attempt", last.id, [last.state], {"state": state}, times={"ended_at": 0})]
    views = tuple(replace(a, state=state, ended_at=now) if a.id == last.id else a for a in snap.attempts)
    decision = decide(replace(snap, attempts=views), contract, now)
    if decision.verb == Verb.SETTLE and decision.settle_as == EffectState.NOT_APPLIED and not unsent:
        decision = replace(decision, becomes=EffectState.UNKNOWN, verb=Verb.WAIT, not_before=now, settle_as=None)
    why = "dead_sender" if not last.sender_alive else "limit_passed"
    ended = endings.conclude(
        effect, decision, contract, now=now, before=before, data={"attempt": str(last.id), "lost": why}
    )
    failpoints.hit("lose.before_commit")
    if not _commit(effect, [ended.entry]):
        return "another was first"
    failpoints.hit("lose.after_commit")
    return ended.effect.state


def _ask(
    effect: Effect,
    contract: EffectContract,
    run: Mapping[str, Any],
    snap: Snapshot,
    *,
    actor: UUID | None = None,
    act: Act | None = None,
) -> tuple[dict[str, Any], str, Committed | None]:
    """Read the authority, keep what it said, and carry out what follows, in one commit."""
    readback = contract.reconcile
    assert readback is not None
    where = Dependency.objects.get(pk=effect.dependency_id)
    _take_turn(where, hold=act is not None)
    failpoints.hit("reconcile.before_ask")
    if act is None:
        connection.close()  # given back to the pool: none is held during the call
    answer = reading.read(effect, contract, readback, where, min((a.committed_at for a in snap.attempts), default=None))
    failpoints.hit("reconcile.after_ask")
    try:
        return _keep(effect, contract, run, snap, answer, actor=actor, act=act)
    except (DataError, TypeError, UnicodeError) as unstorable:
        # What they said cannot be kept as it is (a number or a text that no column holds): a check without an answer,
        # so that the effect is looked at again and its reviews come as for any other.
        log.exception("effect %s: what its readback said cannot be recorded", effect.pk)
        none = reading.no_answer("unreadable_answer", "".join(traceback.format_exception_only(unstorable)))
        return _keep(effect, contract, run, snap, none, actor=actor, act=act)


def _keep(
    effect: Effect,
    contract: EffectContract,
    run: Mapping[str, Any],
    snap: Snapshot,
    answer: ReadbackAnswer,
    *,
    actor: UUID | None,
    act: Act | None,
) -> tuple[dict[str, Any], str, Committed | None]:
    """Keep what a readback said and carry out what follows from it."""
    now = clock.now()
    row = reading.evidence(effect, answer, now)
    seen = replace(snap, evidence=(*snap.evidence, endings.evidence_view(row, now)))
    decision = decide(seen, contract, now)
    answered = answer.claim != Claim.UNAVAILABLE
    if decision.verb in (Verb.READ_BACK, Verb.RESEND):
        # Not in this commit: the next look does it. What is kept is that it is due now.
        decision = replace(decision, verb=Verb.WAIT, not_before=now)
    ended = endings.conclude(
        effect,
        decision,
        contract,
        now=now,
        before=[record.new("evidence", row, {"received_at": 0})],
        data={
            "evidence": str(row["id"]),
            "claim": row["claim"],
            "strength": row["strength"],
            "error": answer.error,
        },
        bump=answered,
        extra={"checks": effect.checks + 1},
        version=effect.version,
    )
    failpoints.hit("reconcile.before_commit")
    facts = {"evidence": str(row["id"]), "claim": row["claim"], "state": ended.effect.state}
    entries = [ended.entry, *plans.late(str(run["state"]), ended.effect, now)]
    commit = Commit(effect.workspace_id, effect.run_id, entries, actor=actor, act=act, facts=facts)
    try:
        done = record.commit(commit)
    except (LostRace, StaleVersion, IllegalMove):
        if act is None:
            return row, "another was first", None
        return row, effect.state, _keep_only(effect, row, actor=actor, act=act)
    failpoints.hit("reconcile.after_commit")
    return row, ended.effect.state, done


def _take_turn(where: Dependency, *, hold: bool) -> None:
    """A readback is a call like others: paced, though no breaker stops it. Raises NoPermit when too many wait."""
    wait = record.take_moment(where.pk, ahead=admission.AHEAD)
    if wait is None:
        return
    if not hold:
        connection.close()
    lanes.road(where.capacity_id).depart(wait, 0.0)


def _keep_only(effect: Effect, row: dict[str, Any], *, actor: UUID | None, act: Act) -> Committed:
    """The effect moved while a person's check was under way: keep what was read, decide nothing from it here."""
    entry = Entry(
        EventKind.EFFECT_CHECKED,
        {
            **endings.told_of(effect),
            "evidence": str(row["id"]),
            "claim": row["claim"],
            "strength": row["strength"],
        },
        [
            record.new("evidence", row, {"received_at": 0}),
            record.move("effect", effect.pk, None, {}, times={"next_check_at": 0}, bump=True),
        ],
    )
    facts = {"evidence": str(row["id"]), "claim": row["claim"]}
    return record.commit(Commit(effect.workspace_id, effect.run_id, [entry], actor=actor, act=act, facts=facts))


def _awaiting(effect: Effect, contract: EffectContract, decision: Decision, now: datetime) -> str:
    """An effect that waits for signatures: only its own deadline ends it here."""
    if decision.verb != Verb.SETTLE:
        look = {"next_check_at": decision.not_before, "decision": decision.as_json()}
        again = [record.move("effect", effect.pk, [effect.state], look)]
        _commit(effect, [Entry(EventKind.EFFECT_CHECKED, endings.told_of(effect), again)])
        return decision.reason
    ended = endings.conclude(effect, decision, contract, now=now, before=approvals.revoke(effect))
    return ended.effect.state if _commit(effect, [ended.entry]) else "another was first"


def _carry_out(
    effect: Effect, contract: EffectContract, run: Mapping[str, Any], decision: Decision, now: datetime
) -> str:
    """Record a decision that needs no call. The same decision as last time only moves the next look."""
    # Only what was never sent has a request for signatures that is still open.
    before = approvals.revoke(effect) if decision.verb == Verb.SETTLE and not effect.attempts else []
    ended = endings.conclude(effect, decision, contract, now=now, before=before, version=effect.version)
    late = plans.late(str(run["state"]), ended.effect, now)
    return ended.effect.state if _commit(effect, [ended.entry, *late]) else "another was first"


def _commit(effect: Effect, entries: list[Entry]) -> bool:
    failpoints.hit("reconcile.before_settle")
    try:
        record.commit(Commit(effect.workspace_id, effect.run_id, entries))
    except (LostRace, StaleVersion, IllegalMove):
        return False
    failpoints.hit("reconcile.after_settle")
    return True
