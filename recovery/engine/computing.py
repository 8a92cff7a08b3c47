"""Recorded computations: budget reserved and the call committed before it is made, its output used for ever.

A call changes nothing outside. One whose answer is lost is lost, never unknown: another sample is asked for while the
contract bears one, then a person decides whether one more is. A short call is made by the run's owner, a longer one by
the senders; either way its output is committed before a step sees it, and never asked for again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Coalesce, Now
from pydantic import ValidationError

from recovery import failpoints
from recovery.contract import Compute, ComputeContract, ComputeRequest, StepComputed, canonical, registry
from recovery.contract.effects import fields_of
from recovery.contract.outcomes import Outcome, OutcomeKind
from recovery.engine import finish, intents, outbound, workers
from recovery.engine.changes import reason, unchecked
from recovery.engine.memory import Computing
from recovery.engine.session import Session
from recovery.ports.base import Answer, AnswerKind, Prepared
from recovery.traffic import admission
from runs import clock, record
from runs.errors import IllegalMove, LostRace, NoPermit
from runs.models import Call, Event, Run, Worker
from runs.models.base import new_id
from runs.record import DEAD_AFTER, Admission, Commit, Entry
from runs.states import RUN_ENDED, CallState, EventKind, RunState, WaitingOn

log = logging.getLogger("recourse.compute")

LIVE = (CallState.READY, CallState.COMMITTED)
OUTPUT_INVALID = "output_invalid"

MAY_ASK = tuple(state for state in RunState if state not in RUN_ENDED | {RunState.CANCELLING, RunState.QUARANTINED})
"""States of a run for which a sender still asks."""

_MAY_CLAIM = tuple(state for state in MAY_ASK if state not in (RunState.PAUSING, RunState.PAUSED))
"""A pause that came first holds the call back; whoever is first under the run's lock decides."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What the step receives now, and which step."""

    then: str
    given: StepComputed


def begin(s: Session, transition: Compute) -> str | Delivered:
    """Take up what a step asks for. Returns why the run stops here, or what its next step receives."""
    request = transition.request
    s.memory.calls += 1
    s.memory.computing = Computing(
        s.memory.calls, request.contract.operation, request.contract.version, request.data, transition.then
    )
    s.memory.step = transition.then
    return go(s)


def go(s: Session) -> str | Delivered:
    """Do the next thing about the computation that the run waits for.

    Raises ContractError where its contract is not declared here.
    """
    asked = s.memory.computing
    assert asked is not None
    contract = registry.compute_contract(asked.operation, asked.version)
    request = contract(**asked.params)
    while True:
        calls = list(Call.objects.filter(run_id=s.id, place=asked.place).order_by("n"))
        answer = _next(s, contract, request, calls)
        if isinstance(answer, StepComputed):
            for call in calls:
                s.memory.remember_spent(call.unit, call.reserved if call.spent is None else call.spent)
            s.memory.computing = None
            return Delivered(asked.then, answer)
        if answer:
            return answer


def _next(s: Session, contract: ComputeContract, request: ComputeRequest, calls: Sequence[Call]) -> str | StepComputed:
    """One move. An empty text: look again."""
    now = s.watch.now()
    last = calls[-1] if calls else None
    if last is not None and last.state in LIVE:
        if last.state == CallState.COMMITTED and _is_lost(last, now):
            _commit(s, [_ended(last, CallState.LOST, code=_lost_by(last, now))])
            return ""
        if last.state == CallState.READY and now >= _over(calls, contract, now):
            _commit(s, [_ended(last, CallState.NOT_SENT, code="deadline_passed")])
            return ""
        at = last.expires_at if last.state == CallState.COMMITTED else _over(calls, contract, now)
        return finish.wait(s, WaitingOn.IN_FLIGHT, wake_at=at)
    if last is not None and last.state == CallState.ANSWERED:
        return _told(last)
    if last is not None and last.state == CallState.REFUSED and _code(last) != OUTPUT_INVALID:
        return _told(last)
    if _samples(s, calls) >= contract.samples:
        if last is not None and last.state == CallState.REFUSED:
            return _told(last)
        return finish.quarantine(s, reason("computation_lost", operation=contract.operation, samples=contract.samples))
    if now >= _over(calls, contract, now):
        return _refused(contract, calls[0].pk, "deadline_passed")
    if last is not None and last.state == CallState.NOT_SENT:
        assert last.ended_at is not None
        pause = contract.backoff.ceiling(sum(one.state == CallState.NOT_SENT for one in calls))
        told = (last.outcome or {}).get("retry_after_s")
        at = last.ended_at + (pause if told is None else max(pause, timedelta(seconds=told)))
        if now < at:
            return finish.wait(s, WaitingOn.IN_FLIGHT, wake_at=at)
    reserve = contract.reserve(request.params)
    if contract.limit is not None and _used(s, contract) + reserve > contract.limit:
        return _refused(contract, s.id, "budget_used_up", unit=contract.unit, limit=contract.limit)
    over = _over(calls, contract, now)
    return _ask(s, contract, request, n=len(calls) + 1, reserve=reserve, over=over)


def _over(calls: Sequence[Call], contract: ComputeContract, now: datetime) -> datetime:
    """When the computation is given up, counted from the first time that it was asked for: now, if never yet."""
    return (calls[0].asked_at if calls else now) + contract.deadline


def _ask(
    s: Session, contract: ComputeContract, request: ComputeRequest, *, n: int, reserve: int, over: datetime
) -> str:
    row = _row(s, contract, request, n=n, reserve=reserve)
    entry = {"call": str(row["id"]), "operation": contract.operation, "place": row["place"], "n": n}
    told = {**entry, "pinned": dict(contract.pinned), "reserved": reserve, "unit": contract.unit}
    if contract.timeout <= intents.INLINE_AT_MOST:
        row |= {"state": CallState.COMMITTED, "worker": s.me.id}
        times = {"asked_at": 0.0, "sent_at": 0.0, "expires_at": _limit(contract)}
        try:
            done = s.commit(
                [Entry(EventKind.CALL_SENT, {**told, "how": "inline"}, [record.new("call", row, times)])],
                run={"tries": 0},
                why="before_call",
                admission=Admission(ahead=admission.AHEAD_INLINE),
            )
        except NoPermit:
            row |= {"worker": None}
        else:
            admission.wait(done)
            failpoints.hit("call.committed")
            _send(Call.objects.get(pk=row["id"]), contract, handed=False)
            return ""
    row["state"] = CallState.READY
    asked = Entry(
        EventKind.CALL_SENT, {**told, "how": "handed"}, [record.new("call", row, {"asked_at": 0, "not_before": 0})]
    )
    return finish.wait(s, WaitingOn.IN_FLIGHT, wake_at=over, entries=[asked])


def ask(call_id: UUID) -> str:
    """Make a call that was handed over. Returns what came of it, for the log."""
    call = Call.objects.select_related("dependency").get(pk=call_id)
    if call.state != CallState.READY:
        return call.state
    run = Run.objects.get(pk=call.run_id)
    if run.state not in MAY_ASK:
        entry = _ended(call, CallState.NOT_SENT, code="no_longer_wanted")
        return str(_quietly(call, [entry]) or CallState.NOT_SENT)
    if run.state in (RunState.PAUSING, RunState.PAUSED):
        return "paused"
    if run.waiting_on == WaitingOn.PERSON or unchecked({"gate": run.gate}):
        # Its gate says that nothing is sent before the checks have passed (invariant 13).
        return "waits for a person"
    contract = registry.compute_contract(call.operation, call.contract_version)
    asked = Call.objects.filter(run_id=call.run_id, place=call.place).order_by("n")
    now = clock.now()
    if now >= _over(list(asked[:1]), contract, now) or (run.deadline is not None and now >= run.deadline):
        # What has expired while it waited for its turn is not sent (invariant 12); its run hears of it.
        entry = _ended(call, CallState.NOT_SENT, code="deadline_passed")
        entry.changes = [*entry.changes, record.reckon(wake=True)]
        return str(_quietly(call, [entry]) or CallState.NOT_SENT)
    me = workers.me("dispatch")
    claim = record.move(
        "call",
        call.pk,
        [CallState.READY],
        {"state": CallState.COMMITTED, "worker": me.id, "not_before": None},
        times={"sent_at": 0, "expires_at": _limit(contract)},
    )
    # Whoever dies with it: the run looks for itself once the limit is over.
    wakes = record.run_moves({}, prior=_MAY_CLAIM, times={"wake_at": _limit(contract)}, soonest=True)
    data = {"call": str(call.pk), "operation": call.operation, "place": call.place, "n": call.n, "how": "claimed"}
    try:
        entries = [Entry(EventKind.CALL_SENT, data, [claim, wakes])]
        admit = Admission(ahead=admission.AHEAD)
        failpoints.hit("call.before_claim")
        done = record.commit(Commit(call.workspace_id, call.run_id, entries, admission=admit))
        failpoints.hit("call.after_claim")
    except NoPermit:
        return "no permit"
    except (LostRace, IllegalMove):
        return "another was first"
    connection.close()
    admission.wait(done)
    failpoints.hit("call.committed")
    call.state, call.worker = CallState.COMMITTED, me.id
    return _send(call, contract, handed=True)


def lose(call_id: UUID) -> str:
    """Give up a call that is past its limit or whose sender died, whatever became of its run; its permit comes back.

    A run that is at work looks for itself; one that has ended, stands still or is in quarantine does not.
    """
    call = Call.objects.get(pk=call_id)
    now = clock.now()
    if call.state != CallState.COMMITTED or not _is_lost(call, now):
        return call.state
    entry = _ended(call, CallState.LOST, code=_lost_by(call, now))
    entry.changes = [*entry.changes, record.reckon(wake=True)]
    return str(_quietly(call, [entry]) or CallState.LOST)


def lost(now: datetime) -> QuerySet[Call]:
    """Calls that :func:`lose` would give up at ``now``."""
    out = Call.objects.filter(state=CallState.COMMITTED)
    return out.filter(Q(expires_at__lte=now) | ~Exists(_alive(OuterRef("worker")))).order_by("expires_at")


def _send(call: Call, contract: ComputeContract, *, handed: bool) -> str:
    """Make the call and record what came of it. No transaction and no connection is held meanwhile."""
    if handed:
        connection.close()
    try:
        answer = contract.port.send(
            Prepared.from_stored(call.request, call.body),
            key=str(call.pk),
            attempt_id=call.pk,
            token=call.token,
            timeout_s=contract.timeout.total_seconds(),
            authorization=outbound.authorization(call.request["credential"]),
        )
    except outbound.CredentialMissing:
        now = clock.now()
        answer = Answer(AnswerKind.NOT_SENT, now, now, error="credential_missing")
    failpoints.hit("call.answered")
    entry = _outcome(call, contract, answer)
    if handed:
        entry.changes = [*entry.changes, record.reckon(wake=True)]
    return _quietly(call, [entry]) or str(entry.data["state"])


def _outcome(call: Call, contract: ComputeContract, answer: Answer) -> Entry:
    """The entry for a call that ended: what its answer proves, and its output if that is one."""
    try:
        outcome = contract.outcomes.classify(answer)
    except Exception:
        # An author's function met an answer it did not expect.
        log.exception("%s: its outcomes raised", contract.operation)
        outcome = Outcome(OutcomeKind.UNKNOWN, "unreadable_answer", answer.status)
    told = outcome.as_json()
    if outcome.kind is OutcomeKind.SUCCEEDED:
        try:
            output = contract.output.model_validate(outcome.result).model_dump(mode="json")
            # What no column could hold would be lost with the call, and asked for again.
            canonical.check(output, nfc=False)
            spent = int(contract.spent(outcome.result or {}))
            if not 0 <= spent <= canonical.MAX_INT:
                raise ValueError(f"spent {spent:.0e}")
        except ValidationError as error:
            wrong = {"code": OUTPUT_INVALID, "fields": fields_of(error)}
            return _ended(call, CallState.REFUSED, code=OUTPUT_INVALID, outcome={**told, **wrong}, spent=call.reserved)
        except Exception as error:
            # An author's functions: whatever they raise, the call has been answered, and with no output.
            log.exception("%s: its output cannot be taken", contract.operation)
            wrong = {"code": OUTPUT_INVALID, "said": ascii(str(error))[:300]}
            return _ended(call, CallState.REFUSED, code=OUTPUT_INVALID, outcome={**told, **wrong}, spent=call.reserved)
        return _ended(call, CallState.ANSWERED, code=outcome.code, outcome=told, output=output, spent=spent)
    state = {
        OutcomeKind.REJECTED: CallState.REFUSED,
        OutcomeKind.REFUSED: CallState.REFUSED,
        OutcomeKind.INVALID: CallState.REFUSED,
        OutcomeKind.NOT_SENT: CallState.NOT_SENT,
        OutcomeKind.TRANSIENT: CallState.NOT_SENT,
        OutcomeKind.OVERLOADED: CallState.NOT_SENT,
    }.get(outcome.kind, CallState.LOST)
    # What was not taken has cost nothing; what was lost may have cost all of it.
    return _ended(call, state, code=outcome.code, outcome=told, spent=0 if state == CallState.NOT_SENT else None)


def _ended(call: Call, state: CallState, *, code: str, **columns: Any) -> Entry:
    change: dict[str, Any] = {"state": state, "not_before": None, **columns}
    change.setdefault("outcome", {"code": code})
    moved = record.move("call", call.pk, [call.state], change, times={"ended_at": 0})
    data = {"call": str(call.pk), "operation": call.operation, "place": call.place, "n": call.n, "state": state}
    return Entry(EventKind.CALL_ENDED, {**data, "code": code, "spent": columns.get("spent")}, [moved])


def _quietly(call: Call, entries: list[Entry]) -> str:
    """Commit what a call came to, whoever owns the run by now; an empty text if it was committed."""
    try:
        failpoints.hit("call.before_outcome")
        record.commit(Commit(call.workspace_id, call.run_id, entries))
        failpoints.hit("call.after_outcome")
    except (LostRace, IllegalMove):
        return "taken for lost"
    return ""


def _commit(s: Session, entries: list[Entry]) -> None:
    s.buffer.extend(entries)
    s.flush()


def _row(s: Session, contract: ComputeContract, request: ComputeRequest, *, n: int, reserve: int) -> dict[str, Any]:
    where = intents.dependency(s.workspace, contract.dependency)
    prepared = contract.port.prepare(request.params, where.base_url, where.credential)
    asked = s.memory.computing
    assert asked is not None
    return {
        "id": new_id(),
        "workspace_id": s.workspace,
        "run_id": s.id,
        "dependency_id": where.pk,
        "place": asked.place,
        "n": n,
        "operation": contract.operation,
        "contract_version": contract.version,
        "contract_digest": contract.digest,
        "params": request.data,
        "pinned": dict(contract.pinned),
        "digest": request.digest,
        "request": prepared.as_json(),
        "body": prepared.body.decode(),
        "token": int(s.run["token"]),
        "unit": contract.unit,
        "reserved": reserve,
    }


def _limit(contract: ComputeContract) -> float:
    return (contract.timeout + intents.ATTEMPT_GRACE).total_seconds()


def _expires(call: Call) -> datetime:
    assert call.expires_at is not None
    return call.expires_at


def _is_lost(call: Call, now: datetime) -> bool:
    """Its sender is dead, or its limit is over."""
    if now >= _expires(call):
        return True
    return call.worker is None or not _alive(call.worker).exists()


def _alive(worker: UUID | OuterRef) -> QuerySet[Worker]:
    return Worker.objects.filter(pk=worker, seen_at__gt=Now() - timedelta(seconds=DEAD_AFTER))


def _lost_by(call: Call, now: datetime) -> str:
    return "dead_sender" if now < _expires(call) else "limit_passed"


def _samples(s: Session, calls: Sequence[Call]) -> int:
    """Samples taken since a person last let the run out of quarantine, which is word that one more may be."""
    let_out = Event.objects.filter(run_id=s.id, kind=EventKind.RUN_RELEASED).order_by("-seq").first()
    since = None if let_out is None else let_out.at
    taken = [one for one in calls if one.state == CallState.LOST or _code(one) == OUTPUT_INVALID]
    return sum(1 for one in taken if since is None or one.asked_at > since)


def _used(s: Session, contract: ComputeContract) -> int:
    """What this run has spent on the operation, or reserved where nobody knows what was spent."""
    rows = Call.objects.filter(run_id=s.id, operation=contract.operation)
    return int(rows.aggregate(used=Sum(Coalesce("spent", "reserved")))["used"] or 0)


def _told(call: Call) -> StepComputed:
    outcome: Mapping[str, Any] = call.outcome or {}
    answered = call.state == CallState.ANSWERED
    return StepComputed(
        state=CallState(call.state),
        operation=call.operation,
        call=call.pk,
        output=call.output if answered else None,
        reason=None if answered else reason(str(outcome.get("code")), status=outcome.get("status")),
    )


def _refused(contract: ComputeContract, about: UUID, code: str, **facts: Any) -> StepComputed:
    return StepComputed(CallState.REFUSED, contract.operation, about, None, reason(code, **facts))


def _code(call: Call) -> str:
    return str((call.outcome or {}).get("code", ""))
