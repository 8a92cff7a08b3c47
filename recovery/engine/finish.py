"""How an advance ends: the run waits, ends, is quarantined, or asks a person. One commit each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from recovery import failpoints
from recovery.contract import Fail, Finish
from recovery.engine import approvals, contents, lineage
from recovery.engine.changes import open_review, reason
from recovery.engine.session import Session
from runs import record
from runs.models import Effect
from runs.record import Change, Entry
from runs.states import (
    EFFECT_BLOCKS_END,
    EFFECT_OPEN,
    EffectState,
    EventKind,
    ReviewKind,
    RunState,
    WaitingOn,
)

EVIDENCE_KEPT = 20_000
"""Characters of a traceback that the event keeps."""

DUE_IN = 1200.0
"""Seconds until a review without a contract of its own is due (20 min, DESIGN section 4)."""


def waits_for(effects: Sequence[Effect]) -> WaitingOn:
    """What a run with these effects waits for: the most urgent."""
    states = {e.state for e in effects}
    if states & {EffectState.UNKNOWN, EffectState.DISPUTED}:
        return WaitingOn.UNKNOWN
    if EffectState.AWAITING_APPROVAL in states:
        return WaitingOn.APPROVAL
    return WaitingOn.IN_FLIGHT


def wait_for_effects(
    s: Session, effects: Sequence[Effect], *, entries: Sequence[Entry] = (), changed: bool = False
) -> str:
    """Release the run until its effects settle. ``entries`` come first; ``changed``: the checkpoint differs."""
    s.open = contents.open_effects(effects, entries)
    on = waits_for(effects)
    wait(s, on, wake_at=None, entries=entries, checkpoint=changed or bool(s.buffer))
    return f"waits: {on}"


def wait(
    s: Session,
    on: WaitingOn,
    *,
    wake_at: datetime | None,
    event: str = "",
    entries: Sequence[Entry] = (),
    checkpoint: bool = True,
) -> str:
    """Release the lease; the run holds no worker (invariant 11). It is due again at ``wake_at`` or its deadline."""
    deadline = s.deadline
    # A deadline that is over was acted on; only what is still open wakes the run now.
    later = deadline if deadline is not None and deadline > s.watch.now() else None
    times = [t for t in (wake_at, later) if t is not None]
    s.commit(
        [*entries, Entry(EventKind.RUN_WAITED, {"on": on, "until": wake_at, "event": event})],
        run={
            "state": RunState.WAITING,
            "waiting_on": on,
            "wait_event": event,
            "wake_at": min(times) if times else None,
            "lease_owner": None,
            "tries": 0,
            "gate": [],
        },
        changes=(record.reckon(),),
        why="wait",
        checkpoint=checkpoint,
        soonest=True,
    )
    return f"waits: {on}"


def end(s: Session, transition: Finish | Fail) -> str:
    """End as a step said, once nothing that was sent is open any more; what was not sent is dropped."""
    if isinstance(transition, Finish):
        return _complete(s, transition)
    return _fail(s, transition)


def _complete(s: Session, transition: Finish) -> str:
    """End as completed, if nothing of the run is in flight, accepted, unknown or disputed (invariants 4 and 7)."""
    held = held_by_open(s)
    if held:
        return held
    how = reason(transition.reason or "finished", **transition.facts)
    how["verified"] = [str(id) for id in transition.verified]
    how["effects"] = ends(s)
    close(s, EventKind.RUN_COMPLETED, RunState.COMPLETED, how)
    return "completed"


def _fail(s: Session, transition: Fail) -> str:
    """End as failed, because a step said so."""
    held = held_by_open(s)
    if held:
        return held
    close(
        s,
        EventKind.RUN_FAILED,
        RunState.FAILED,
        {**reason(transition.reason, **transition.facts), "effects": ends(s)},
    )
    return "failed"


def expire(s: Session) -> str:
    """The run's own deadline: nothing new is sent; it ends as expired once what was sent is settled."""
    held = held_by_open(s, EffectState.EXPIRED)
    if held:
        return held
    if lineage.alive(s.id):
        # Their deadline is no later than this one's; each ends by itself.
        return wait(s, WaitingOn.CHILD, wake_at=None)
    close(s, EventKind.RUN_EXPIRED, RunState.EXPIRED, {**reason("deadline_passed"), "effects": ends(s)})
    return "expired"


def quarantine(s: Session, why: Mapping[str, Any], *, evidence: str = "", prior: RunState = RunState.RUNNING) -> str:
    """Take the run out of circulation with the evidence; a person looks at it. What was known is kept."""
    data = {**why, "evidence": evidence[-EVIDENCE_KEPT:]}
    # No step has heard it: it is still there when a person takes the run out.
    s.consume = None
    review = open_review(
        ReviewKind.QUARANTINED, s.id, workspace=s.workspace, run=s.id, why=why, due_in=DUE_IN, high=True
    )
    held = {
        "state": RunState.QUARANTINED,
        "waiting_on": "",
        "lease_owner": None,
        "wake_at": None,
        "gate": [dict(why)],
    }
    with failpoints.committing("quarantine"):
        s.commit([Entry(EventKind.RUN_QUARANTINED, data, [review])], run=held, checkpoint=False, prior=prior)
    return "quarantined"


def drop_unsent(s: Session, into: EffectState, code: str) -> list[Change]:
    """Changes that end what has not been sent: effects to ``into``, their requests for signatures revoked."""
    return drop_unsent_of(s.id, into, code)


def drop_unsent_of(run: UUID, into: EffectState, code: str) -> list[Change]:
    """The same of a run that nobody here owns."""
    changes: list[Change] = []
    for effect in Effect.objects.filter(
        run_id=run, state__in=[EffectState.PLANNED, EffectState.AWAITING_APPROVAL, EffectState.READY]
    ).order_by("id"):
        changes += approvals.revoke(effect)
        changes.append(
            record.move(
                "effect",
                effect.pk,
                [effect.state],
                {"state": into, "reason": reason(code), "next_check_at": None, "not_before": None},
                times={"settled_at": 0},
            )
        )
        changes.append(record.close_reviews(effect.pk))
    return changes


def held_by_open(s: Session, into: EffectState = EffectState.CANCELLED) -> str:
    """End what is unsent; if something sent is still open, wait for it. Returns the wait, or an empty text."""
    found = Effect.objects.filter(run_id=s.id, state__in=EFFECT_OPEN).order_by("ordinal")
    if s.settling is not None and s.settling.state not in EFFECT_OPEN:
        # Settled in this very commit: the table does not say so yet.
        found = found.exclude(pk=s.settling.pk)
    still = list(found)
    if not still:
        return ""
    blocking = [e for e in still if e.state in EFFECT_BLOCKS_END]
    entries = []
    if len(blocking) < len(still):
        code = "run_expired" if into == EffectState.EXPIRED else "no_longer_wanted"
        entries.append(Entry(EventKind.EFFECT_SETTLED, {"state": into}, drop_unsent(s, into, code)))
    if blocking:
        return wait_for_effects(s, blocking, entries=entries, changed=True)
    s.buffer.extend(entries)
    return ""


def close(
    s: Session,
    kind: EventKind,
    state: RunState,
    how: Mapping[str, Any],
    *,
    checkpoint: bool = True,
    prior: RunState = RunState.RUNNING,
) -> None:
    """End the run in ``state``: nothing of it waits, is held, or asks a person any more."""
    s.open = []
    s.commit(
        [Entry(kind, how, [record.close_reviews(s.id)])],
        run={
            "state": state,
            "waiting_on": "",
            "wait_event": "",
            "wake_at": None,
            "lease_owner": None,
            "tries": 0,
            "ended_how": how,
            "gate": [],
        },
        times={"ended_at": 0},
        why="end",
        checkpoint=checkpoint,
        prior=prior,
    )
    lineage.ring_parent(s.run)


def ends(s: Session) -> list[dict[str, Any]]:
    """How each effect of the run ended, for the event that ends it."""
    rows = Effect.objects.filter(run_id=s.id).order_by("ordinal").values("id", "describe", "state")
    fresh = {s.settling.pk: s.settling.state} if s.settling is not None else {}
    return [{"effect": str(r["id"]), "describe": r["describe"], "state": fresh.get(r["id"], r["state"])} for r in rows]


def what_stays(s: Session) -> list[dict[str, Any]]:
    """What happened in the run and still stands, for the event that ends it."""
    return [
        {"effect": str(e.pk), "describe": e.describe, "state": e.state, "stake": e.stake}
        for e in Effect.objects.filter(run_id=s.id, state__in=[EffectState.SUCCEEDED, EffectState.PARTIAL])
    ]
