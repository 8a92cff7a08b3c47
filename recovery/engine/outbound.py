"""The bytes go out: one send of one committed attempt, and its outcome as an entry. No transaction is open here."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from recovery import failpoints
from recovery.contract import EffectContract
from recovery.contract.outcomes import Outcome, OutcomeKind
from recovery.engine import endings, intents, snapshots
from recovery.engine.decide import decide
from recovery.engine.endings import Ended
from recovery.engine.snapshot import AttemptView, EvidenceView
from recovery.ports.base import Answer, AnswerKind, Prepared
from runs import record
from runs.checkpoints import tokens
from runs.errors import LostRace, NotFound, StaleOwner, Unreadable
from runs.models import Attempt, Effect
from runs.record import Commit, Entry
from runs.states import ATTEMPT_LIVE, AttemptState, EventKind

log = logging.getLogger("recourse.send")


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of a send."""

    answer: Answer
    outcome: Outcome


class CredentialMissing(Exception):
    """The credential's alias has no secret in this process's environment; nothing is sent."""


def authorization(alias: str) -> str | None:
    """The Authorization header of a credential, by its alias; none for the sandbox. Raises CredentialMissing."""
    if alias.startswith("sandbox"):
        return None
    name = "RECOURSE_CREDENTIAL_" + "".join(c if c.isalnum() else "_" for c in alias).upper()
    try:
        return os.environ[name]
    except KeyError:
        raise CredentialMissing(f"{name} is not set: nothing is sent with {alias!r}") from None


def send(
    effect: Effect,
    attempt: UUID,
    token: int,
    contract: EffectContract,
    *,
    committed_at: datetime,
    now: datetime,
    execute_by: datetime | None = None,
) -> Sent:
    """Send the stored bytes once, under the stored key. Never raises for what the other side did.

    ``committed_at``: of the attempt; ``now``: the database's time. Nothing is sent too long after the commit, nor once
    ``execute_by`` of the signatures or the effect's deadline less its reserve has come (invariants 8 and 12).
    """
    try:
        secret = authorization(effect.request["credential"])
    except CredentialMissing:
        answer = Answer(AnswerKind.NOT_SENT, now, now, error="credential_missing")
        return Sent(answer, contract.outcomes.classify(answer))
    until = [committed_at + intents.ATTEMPT_GRACE, effect.deadline - contract.reserve]
    if now >= min(until if execute_by is None else [*until, execute_by]):
        # Paused since it was judged, or since its commit for so long that the attempt may be taken for lost before
        # these bytes arrive.
        answer = Answer(AnswerKind.NOT_SENT, now, now, error="too_late")
        return Sent(answer, contract.outcomes.classify(answer))
    try:
        body, shown = tokens.opened(effect.workspace_id, effect.body)
    except Unreadable:
        log.exception("effect %s: a sealed field of its request cannot be opened", effect.pk)
        answer = Answer(AnswerKind.NOT_SENT, now, now, error="sealed_field")
        return Sent(answer, contract.outcomes.classify(answer))
    failpoints.hit("send.before")
    answer = contract.port.send(
        Prepared.from_stored(effect.request, body),
        key=effect.sent_key,
        attempt_id=attempt,
        token=token,
        timeout_s=contract.timeout.total_seconds(),
        authorization=secret,
    )
    failpoints.hit("send.after")
    answer = _without_echo(answer, shown)
    return Sent(answer, _classify(contract, answer))


def _without_echo(answer: Answer, shown: tuple[str, ...]) -> Answer:
    """What the other side repeats of sealed fields is masked before anything of its answer is kept."""
    if not shown:
        return answer
    body = answer.body
    for value in shown:
        for said in {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}:
            body = body.replace(said.encode(), tokens.MASK.encode()) if said else body
    return replace(answer, body=body)


def _classify(contract: EffectContract, answer: Answer) -> Outcome:
    try:
        return contract.outcomes.classify(answer)
    except Exception:
        # An author's function met an answer it did not expect: the effect may well be there.
        log.exception("%s: its outcomes raised", contract.operation)
        return Outcome(OutcomeKind.UNKNOWN, "unreadable_answer", answer.status)


def claim(effect: Effect, attempt: UUID) -> None:
    """Right before the first byte, where neither key nor readback exists: a death before this is known-not-sent.

    Raises LostRace when the attempt was taken for lost meanwhile: then nothing is sent.
    """
    change = record.move(
        "attempt", attempt, [AttemptState.COMMITTED], {"state": AttemptState.CLAIMED}, times={"claimed_at": 0}
    )
    entry = Entry(EventKind.EFFECT_CLAIMED, {"effect": str(effect.pk), "attempt": str(attempt)}, [change])
    failpoints.hit("send.before_claim")
    record.commit(Commit(effect.workspace_id, effect.run_id, [entry]))
    failpoints.hit("send.after_claim")


def ended(
    effect: Effect,
    attempt: UUID,
    n: int,
    sent: Sent,
    contract: EffectContract,
    run: Mapping[str, object],
    *,
    committed_at: datetime,
    now: datetime,
    earlier: Iterable[AttemptView] = (),
    evidence: Iterable[EvidenceView] = (),
) -> Ended:
    """The entry for an attempt that ended: the attempt, its evidence, and what decide makes of the effect."""
    state = endings.attempt_state(sent.answer)
    view = AttemptView(
        id=attempt,
        n=n,
        state=state,
        committed_at=committed_at,
        expires_at=committed_at + contract.timeout + intents.ATTEMPT_GRACE,
        ended_at=now,
        outcome=sent.outcome,
    )
    before = [
        record.move(
            "attempt",
            attempt,
            list(ATTEMPT_LIVE),
            {"state": state, "outcome": sent.outcome.as_json()},
            times={"ended_at": 0},
        )
    ]
    seen = list(evidence)
    if sent.answer.kind is AnswerKind.ANSWERED:
        row = endings.answer_evidence(effect, attempt, sent.answer, sent.outcome)
        before.append(record.new("evidence", row, {"observed_at": 0, "received_at": 0}))
        seen.append(endings.evidence_view(row, now))
    snap = snapshots.build(effect, contract, run, attempts=[*earlier, view], evidence=seen, now=now)
    decision = decide(snap, contract, now)
    data = {"attempt": str(attempt), "n": n, "outcome": sent.outcome.as_json()}
    end = endings.conclude(effect, decision, contract, now=now, before=before, data=data, bump=bool(seen))
    return Ended(end.entry, end.effect, decision.evidence)


def keep_late(effect: Effect, attempt: UUID, sent: Sent, now: datetime) -> bool:
    """An answer that came after its attempt was given up: evidence, never a change of state (invariant 6).

    Reconciliation reads it first: the effect is due to be looked at now, unless it is settled. False if it is not
    late: the commit that was tried again had been carried out, only its answer was lost (fault 7).
    """
    stored = Attempt.objects.filter(pk=attempt).first()
    if stored is None:
        # The record was restored and does not know it; the sweep after the restore finds what it led to.
        log.error("an answer to attempt %s, which the record does not know: %s %s", attempt, effect, sent.outcome.code)
        return True
    if stored.outcome == _as_stored(sent.outcome) and stored.state in (
        endings.attempt_state(sent.answer),
        AttemptState.LATE,
    ):
        return stored.state == AttemptState.LATE
    if sent.answer.kind is not AnswerKind.ANSWERED:
        return True
    changes = []
    if stored.state in ATTEMPT_LIVE:
        # A message of theirs settled the effect before this answer came; the attempt itself was answered.
        ended = {"state": AttemptState.ANSWERED, "outcome": sent.outcome.as_json()}
        changes.append(record.move("attempt", attempt, list(ATTEMPT_LIVE), ended, times={"ended_at": 0}))
    if stored.state == AttemptState.LOST:
        changes.append(
            record.move(
                "attempt",
                attempt,
                [AttemptState.LOST],
                {"state": AttemptState.LATE, "outcome": sent.outcome.as_json()},
            )
        )
    row = endings.answer_evidence(effect, attempt, sent.answer, sent.outcome)
    changes.append(record.new("evidence", row, {"observed_at": 0, "received_at": 0}))
    if stored.state in ATTEMPT_LIVE:
        # Its owner lost the run and not the attempt: nothing may be concluded before the attempt is given up.
        changes.append(record.move("effect", effect.pk, None, {"next_check_at": stored.expires_at}, bump=True))
    else:
        changes.append(record.move("effect", effect.pk, None, {}, times={"next_check_at": 0}, bump=True))
    entry = Entry(EventKind.EVIDENCE_RECEIVED, {**endings.told_of(effect), "late": True}, changes)
    failpoints.hit("late.before_commit")
    record.commit(Commit(effect.workspace_id, effect.run_id, [entry]))
    failpoints.hit("late.after_commit")
    return True


def _as_stored(outcome: Outcome) -> Any:
    return json.loads(json.dumps(outcome.as_json(), default=str))


def commit_or_keep(commit: Callable[[], Any], effect: Effect, attempt: UUID, sent: Sent, now: datetime) -> bool:
    """Commit an outcome; where somebody else was first, keep the answer as evidence. False if it came too late."""
    try:
        commit()
    except (LostRace, StaleOwner, NotFound):
        return not keep_late(effect, attempt, sent, now)
    return True
