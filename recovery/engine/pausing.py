"""A pause, carried out: nothing new is sent, what is in flight settles, then the run is paused.

An unknown outcome does not keep a run from being paused: it is looked for by reading meanwhile, and never sent again
before a person lets the run go on. Deadlines go on: a run whose deadline passes while it is paused expires.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import Max

from recovery import failpoints
from recovery.engine import children, finish, lineage
from recovery.engine.changes import reason
from recovery.engine.session import Session
from runs import record
from runs.models import Call, Effect
from runs.record import Entry
from runs.states import EFFECT_BLOCKS_END, CallState, EffectState, EventKind, RunState, Scope, WaitingOn

MUST_SETTLE = (EffectState.IN_FLIGHT, EffectState.ACCEPTED)
"""Effects that a pause waits for: the answer is under way, or the other side has promised one. So it does for calls."""


def settle(s: Session) -> str:
    """One step towards paused; a paused run that was woken is given back as it is."""
    failpoints.hit("pause.before_settle")
    state = RunState(s.run["state"])
    deadline = s.deadline
    if deadline is not None and s.watch.now() >= deadline:
        return _expire(s, state)
    if state == RunState.PAUSED:
        return _release(s, Entry(EventKind.RUN_ADVANCED, {"stays": "paused"}), state)
    moving = children.pause_all(s) if s.run["pause_scope"] in (Scope.CHILDREN, Scope.PARENT) else []
    under_way = Effect.objects.filter(run_id=s.id, state__in=MUST_SETTLE).count()
    calls = Call.objects.filter(run_id=s.id, state=CallState.COMMITTED, expires_at__gt=s.watch.now())
    until = calls.aggregate(until=Max("expires_at"))["until"]
    if under_way or until or moving:
        told = {"to_settle": under_way, "children": lineage.named(moving), "until": until}
        on = WaitingOn.CHILD if moving and not (under_way or until) else WaitingOn.IN_FLIGHT
        return _release(s, Entry(EventKind.RUN_WAITED, {"on": on, **told}), state, on=on, until=until)
    unknown = Effect.objects.filter(run_id=s.id, state__in=[EffectState.UNKNOWN, EffectState.DISPUTED])
    told = {"unknown": [{"effect": str(e.pk), "describe": e.describe} for e in unknown.order_by("ordinal")]}
    # Whoever let it rest is told again when it goes on: the wait it had is kept in the checkpoint.
    s.commit(
        [Entry(EventKind.RUN_PAUSED, told)],
        run={"state": RunState.PAUSED, "lease_owner": None, "tries": 0, "wake_at": _deadline_ahead(s), "gate": []},
        checkpoint=False,
        prior=RunState.PAUSING,
    )
    lineage.ring_parent(s.run)
    return "paused"


def _expire(s: Session, state: RunState) -> str:
    """The run's own deadline passed while it stood: what is unsent ends, what was sent settles first."""
    dropped = finish.drop_unsent(s, EffectState.EXPIRED, "run_expired")
    if dropped:
        s.buffer.append(Entry(EventKind.EFFECT_SETTLED, {"state": EffectState.EXPIRED}, dropped))
    blocking = list(Effect.objects.filter(run_id=s.id, state__in=EFFECT_BLOCKS_END).order_by("ordinal"))
    living = lineage.alive(s.id)
    if blocking or living:
        on = finish.waits_for(blocking) if blocking else WaitingOn.CHILD
        told = {"on": on, "to_settle": len(blocking), "children": lineage.named(living)}
        return _release(s, Entry(EventKind.RUN_WAITED, told), state, on=on)
    how = {**reason("deadline_passed"), "effects": finish.ends(s)}
    finish.close(s, EventKind.RUN_EXPIRED, RunState.EXPIRED, how, checkpoint=False, prior=state)
    return "expired"


def _release(
    s: Session, entry: Entry, state: RunState, *, on: WaitingOn | None = None, until: datetime | None = None
) -> str:
    """Give the run back; it is looked at again at ``until`` (a call that is lost by then) or its deadline."""
    s.commit(
        [entry],
        run={
            "lease_owner": None,
            "tries": 0,
            "wake_at": min((t for t in (until, _deadline_ahead(s)) if t is not None), default=None),
            **({} if on is None else {"waiting_on": on}),
        },
        changes=(record.reckon(),),
        checkpoint=False,
        soonest=True,
        prior=state,
    )
    return str(state)


def _deadline_ahead(s: Session) -> datetime | None:
    return s.deadline if s.deadline is not None and s.deadline > s.watch.now() else None
