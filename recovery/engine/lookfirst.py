"""What a restore makes uncertain: an effect that looks unsent may have been sent in the stretch that the record lost.

Before such an effect is sent its authority is asked, as if a try of it had been lost: the same rules decide
(``decide``), so the same lag and the same two "not found" count. What is found, or cannot be found out, makes the
effect unknown with that try in the record; what is not found leaves it as it was. Invariants 2, 3 and 4.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection

from recovery import failpoints
from recovery.contract import EffectContract
from recovery.contract.readback import ReadbackAnswer
from recovery.engine import approvals, endings, intents, reading
from recovery.engine.changes import reason
from recovery.engine.decide import decide
from recovery.engine.snapshot import AttemptView, Decision, Snapshot, Verb
from runs import clock, record
from runs.errors import IllegalMove, LostRace, StaleVersion
from runs.models import Dependency, Effect, Restore, Run
from runs.record import Commit, Entry
from runs.states import AttemptState, Claim, EffectState, EventKind

LOOK_FOR: Final = timedelta(days=7)
"""How long after a restore first sends look first: also whoever submits again what was lost is met by it."""

UNSENT: Final = (EffectState.READY, EffectState.AWAITING_APPROVAL)
KEEP: Final = 5.0
"""Seconds for which a process believes what it read; nothing is sent that soon after a restore is noticed."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a restored record does not know: from ``start`` (its backup) ``until`` the restore was noticed."""

    id: UUID
    start: datetime
    until: datetime

    def lost(self, n: int, contract: EffectContract) -> AttemptView:
        """The try number ``n`` that may have been made in it."""
        return AttemptView(
            id=self.id,
            n=n,
            state=AttemptState.LOST,
            committed_at=self.start,
            expires_at=self.arrives_until(contract),
            ended_at=self.until,
        )

    def arrives_until(self, contract: EffectContract) -> datetime:
        """The latest moment at which something that was sent in it could still reach the other side."""
        return self.until + contract.timeout + intents.ATTEMPT_GRACE


_known: dict[UUID, tuple[float, Stretch | None]] = {}


def forget() -> None:
    """Read anew: a restore was noticed by this process."""
    _known.clear()


def stretch_of(workspace: UUID, now: datetime) -> Stretch | None:
    """The workspace's lost stretch, while it matters; kept for 5 s."""
    known = _known.get(workspace)
    if known is None or time.monotonic() - known[0] >= KEEP:
        row = Restore.objects.filter(workspace_id=workspace).order_by("-epoch").first()
        known = (time.monotonic(), None if row is None else Stretch(row.pk, row.backup_at, row.began_at))
        _known[workspace] = known
    found = known[1]
    return found if found is not None and now < found.until + LOOK_FOR else None


def replays(contract: EffectContract, stretch: Stretch, now: datetime) -> bool:
    """Whether the other side would answer a repeat of a send in the stretch with what it did then."""
    promise = contract.promise
    if not promise.protects_resend(now):
        return False
    return promise.window is None or now + contract.timeout < stretch.start + promise.window


def must_look(workspace: UUID, contract: EffectContract, now: datetime) -> bool:
    """Whether a first send of ``contract`` looks first: then the run's owner does not send it by itself."""
    stretch = stretch_of(workspace, now)
    return stretch is not None and not replays(contract, stretch, now)


def before_send(effect: Effect, contract: EffectContract, run: Mapping[str, Any], snap: Snapshot, now: datetime) -> str:
    """Look, where a first send after a restore needs it. Returns why nothing is sent now, or an empty text."""
    stretch = stretch_of(effect.workspace_id, now)
    if stretch is None or replays(contract, stretch, now) or not may_be_lost(effect, contract, stretch, snap):
        return ""
    return look(effect, contract, run, snap, stretch, now)


def may_be_lost(effect: Effect, contract: EffectContract, stretch: Stretch, snap: Snapshot) -> bool:
    """Whether a send in the stretch is possible and nobody has tried, or looked, since."""
    if effect.state not in UNSENT or any(a.committed_at >= stretch.until for a in snap.attempts):
        return False
    if contract.reconcile is not None:
        return True
    # Nothing can be read: a run that was accepted after the restore cannot have asked before it.
    return Run.objects.filter(pk=effect.run_id, accepted_at__lt=stretch.until).exists()


def look(
    effect: Effect, contract: EffectContract, run: Mapping[str, Any], snap: Snapshot, stretch: Stretch, now: datetime
) -> str:
    """Do the next thing about an effect that may have been sent in the stretch; what was done, empty: it is clear."""
    decision = judge(contract, snap, stretch, now)
    if decision.verb == Verb.SETTLE and decision.settle_as == EffectState.NOT_APPLIED:
        return ""
    if decision.verb == Verb.RESEND:
        return ""  # the promise covers a repeat: the first send is one
    if decision.verb == Verb.WAIT and decision.becomes != EffectState.DISPUTED:
        return _wait(effect, decision, now)
    if decision.verb != Verb.READ_BACK:
        return _commit(effect, doubt(effect, contract, run, stretch, now), "doubtful")
    readback = contract.reconcile
    assert readback is not None
    where = _places(effect, contract)
    connection.close()  # given back to the pool: none is held during the call
    since = min(effect.requested_at, stretch.start)
    answer = _first_word([reading.read(effect, contract, readback, one, since) for one in where])
    now = clock.now()
    row = reading.evidence(effect, answer, now)
    if answer.claim not in (Claim.NOT_FOUND, Claim.UNAVAILABLE):
        return _commit(effect, doubt(effect, contract, run, stretch, now, row), "found")
    seen = replace(snap, evidence=(*snap.evidence, endings.evidence_view(row, now)))
    after = judge(contract, seen, stretch, now)
    told = {"evidence": str(row["id"]), "claim": row["claim"], "strength": row["strength"], "error": answer.error}
    changed: dict[str, Any] = {"checks": effect.checks + 1}
    if effect.state == EffectState.READY:
        changed["not_before"] = after.not_before or now
    entry = Entry(
        EventKind.EFFECT_CHECKED,
        {**endings.told_of(effect), **told, "after_restore": str(stretch.id)},
        [
            record.new("evidence", row, {"received_at": 0}),
            record.move("effect", effect.pk, [effect.state], changed, version=effect.version),
        ],
    )
    return _commit(effect, [entry], "looked")


def _places(effect: Effect, contract: EffectContract) -> list[Dependency]:
    """Where it may have been sent in the stretch: where it goes now, its contract's dependency, that one's failover."""
    named = Dependency.objects.filter(workspace_id=effect.workspace_id, name=contract.dependency).first()
    ids = [effect.dependency_id, *([] if named is None else [named.pk, named.failover_id])]
    found = Dependency.objects.in_bulk([id for id in ids if id is not None])
    return [found[id] for id in dict.fromkeys(ids) if id in found]


def _first_word(answers: Sequence[ReadbackAnswer]) -> ReadbackAnswer:
    """What several places say together: found in one is found; "not found" only if each of them says so."""
    silent = [one for one in answers if one.claim == Claim.UNAVAILABLE]
    found = [one for one in answers if one.claim not in (Claim.NOT_FOUND, Claim.UNAVAILABLE)]
    return (found or silent or list(answers))[0]


def judge(contract: EffectContract, snap: Snapshot, stretch: Stretch, now: datetime) -> Decision:
    """What the rules say if the last try of the effect had been lost in the stretch. Pure."""
    n = max((a.n for a in snap.attempts), default=0) + 1
    attempts = (*snap.attempts, stretch.lost(n, contract))
    as_if = replace(snap, state=EffectState.UNKNOWN, attempts=attempts, needs_approval=False, not_before=None)
    if contract.reconcile is not None and not _looked(snap, stretch):
        return Decision(verb=Verb.READ_BACK, reason="check_first")
    return decide(as_if, contract, now)


def _looked(snap: Snapshot, stretch: Stretch) -> bool:
    return any(one.received_at >= stretch.until for one in snap.evidence)


def doubt(
    effect: Effect,
    contract: EffectContract,
    run: Mapping[str, Any],
    stretch: Stretch,
    now: datetime,
    evidence: Mapping[str, Any] | None = None,
) -> list[Entry]:
    """The effect is unknown, with the try that the record lost; what was read is kept with it."""
    n = effect.attempts + 1
    lost = stretch.lost(n, contract)
    row = intents.attempt_row(
        {"workspace_id": effect.workspace_id, "run_id": effect.run_id, "id": effect.pk},
        n=n,
        token=int(run["token"]),
        worker=stretch.id,
    )
    row |= {"state": lost.state, "committed_at": lost.committed_at, "expires_at": lost.expires_at}
    moved: dict[str, Any] = {"attempts": n, "next_check_at": now, "not_before": None}
    if effect.state in UNSENT:
        why = reason("after_restore", since=stretch.start.isoformat(), until=stretch.until.isoformat())
        moved |= {
            "state": EffectState.UNKNOWN,
            "reason": why,
            "unknown_since": now,
            "review_at": now + contract.review_after,
        }
    changes = [
        record.new("attempt", row, {"ended_at": 0}),
        *([] if evidence is None else [record.new("evidence", evidence, {"received_at": 0})]),
        *(approvals.revoke(effect) if effect.state in UNSENT else []),
        record.move("effect", effect.pk, [effect.state], moved, version=effect.version, bump=True),
        record.reckon(),
    ]
    told = {**endings.told_of(effect), "attempt": str(row["id"]), "n": n, "lost": "after_restore"}
    if evidence is not None:
        told |= {"evidence": str(evidence["id"]), "claim": evidence["claim"], "strength": evidence["strength"]}
    kind = EventKind.EFFECT_RECOVERED if evidence is not None else EventKind.EFFECT_UNKNOWN
    return [Entry(kind, told, changes)]


def _wait(effect: Effect, decision: Decision, now: datetime) -> str:
    if effect.state == EffectState.READY and decision.not_before is not None and decision.not_before > now:
        look = {"not_before": decision.not_before}
        entry = Entry(
            EventKind.EFFECT_CHECKED,
            {**endings.told_of(effect), "after_restore": True},
            [record.move("effect", effect.pk, [effect.state], look, version=effect.version)],
        )
        if effect.not_before is None or effect.not_before < decision.not_before:
            return _commit(effect, [entry], "waits")
    return "waits"


def _commit(effect: Effect, entries: list[Entry], word: str) -> str:
    try:
        with failpoints.committing("look"):
            record.commit(Commit(effect.workspace_id, effect.run_id, entries))
    except (LostRace, StaleVersion, IllegalMove):
        return "another was first"
    return word
