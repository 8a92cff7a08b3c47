"""A run that has itself mended: from the step or the cancellation that asks for it to what follows its plan.

The run is ``compensating`` meanwhile and holds no worker; its plan's run works. It goes on when its plan is
compensated, or when people have ended the plan and accepted what stays: never by itself when something did not work.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from recovery import failpoints
from recovery.contract import Compensate, StepPlan
from recovery.engine import compensate, finish, memory, mending_runs, plans
from recovery.engine.changes import reason
from recovery.engine.memory import Mending
from recovery.engine.plans import Made
from recovery.engine.session import Session
from runs import record
from runs.errors import Unreadable
from runs.models import Effect, Plan
from runs.record import Entry
from runs.states import EffectState, EventKind, PlanState, RunState


def asked(s: Session, transition: Compensate) -> str:
    """A step asks for it. Kept: what is still open may take its time, and the step has had its say."""
    effects = None if transition.effects is None else list(transition.effects)
    s.memory.mending = Mending(effects, transition.then)
    return ""


def go(s: Session, mending: Mending) -> str | StepPlan:
    """Settle what is open, make the plan and begin it. Returns why the run stops here, or what its step is told."""
    if mending.plan is not None:
        return _told(Plan.objects.get(pk=mending.plan))
    held = finish.held_by_open(s)
    if held:
        return held
    s.flush()
    happened = _happened(s)
    if happened:
        made = _made(s, happened, reason("asked_by_step", step=s.memory.step), only=mending.effects)
        s.memory.mending = Mending(mending.effects, mending.then, made.id)
        return _begin(s, made, prior=RunState.RUNNING, checkpoint=True)
    if mending.then is not None:
        return StepPlan(None, PlanState.COMPENSATED, 0, 0)
    s.memory.mending = None
    into = record.run_moves({"state": RunState.COMPENSATING}, prior=[RunState.RUNNING])
    s.buffer.append(Entry(EventKind.RUN_COMPENSATING, {"to_mend": 0}, [into]))
    how = {**reason("compensated", mended=0, of=0), "stays": []}
    finish.close(s, EventKind.RUN_COMPENSATED, RunState.COMPENSATED, how, prior=RunState.COMPENSATING)
    return "compensated"


def demanded(s: Session) -> str:
    """A cancelled run with nothing in flight: mend what its contracts demand. Empty: nothing is demanded."""
    plan = plans.open_plan(s.id)
    at_work = plan is not None and plan.state != PlanState.DRAFT
    happened = _happened(s)
    wanted = [e.pk for e in happened if compensate.demanded(e)]
    if not at_work and (not wanted or Plan.objects.filter(run_id=s.id, state=PlanState.ENDED).exists()):
        # What people accepted as it is is not mended after all.
        return ""
    made = _made(s, happened, reason("cancelled_run"), only=wanted)
    return _begin(s, made, prior=RunState.CANCELLING, checkpoint=False)


def proposed(s: Session) -> list[Entry]:
    """A cancelled run that leaves something: a draft that would mend it, for people to begin or to leave."""
    if Plan.objects.filter(run_id=s.id).exists():
        return []
    why = reason("happened_and_cancelled")
    made = plans.make(s.workspace, s.id, _happened(s), now=s.watch.now(), why=why)
    return made.entries if made.active else []


def look(s: Session) -> str:
    """A compensating run was woken: its plan is over and it ends or goes on (an empty text), or it waits further."""
    plan = Plan.objects.filter(run_id=s.id).order_by("-id").first()
    assert plan is not None, "a compensating run has a plan"
    if not plan.over:
        s.commit(
            [Entry(EventKind.RUN_WAITED, {"plan": str(plan.pk), "state": plan.state})],
            run={"lease_owner": None, "tries": 0},
            checkpoint=False,
            prior=RunState.COMPENSATING,
        )
        return "compensating"
    if s.run["cancel_asked_at"] is not None:
        # Needs neither checkpoint nor code, like every cancellation.
        return _end(s, plan, cancelled=True)
    try:
        _, s.memory = memory.restore(s.run)
    except Unreadable as error:
        why = reason(error.code, why=str(error), **error.facts)
        return finish.quarantine(s, why, prior=RunState.COMPENSATING)
    if s.memory.mending is None or s.memory.mending.then is None:
        return _end(s, plan, cancelled=False)
    # The step hears how it ended; the run goes on as any other.
    s.commit(
        [Entry(EventKind.RUN_ADVANCED, {"plan": str(plan.pk), "state": plan.state})],
        run={"state": RunState.RUNNING, "gate": []},
        why="compensated",
        prior=RunState.COMPENSATING,
    )
    return ""


def _happened(s: Session) -> list[Effect]:
    return list(Effect.objects.filter(run_id=s.id, state__in=compensate.HAPPENED))


def _made(s: Session, happened: list[Effect], why: dict[str, Any], only: list[UUID] | None) -> Made:
    plan = plans.open_plan(s.id)
    if plan is not None and plan.state not in plans.MAY_BEGIN:
        return Made(plan.pk, plans.items_of(plan), plan.digest, [])
    return plans.make(s.workspace, s.id, happened, now=s.watch.now(), why=why, only=only, plan=plan)


def _begin(s: Session, made: Made, *, prior: RunState, checkpoint: bool) -> str:
    """Commit the plan as begun and the run as compensating; then have the plan's run accepted."""
    plan = Plan.objects.filter(pk=made.id).first()
    state = PlanState.DRAFT if plan is None else PlanState(plan.state)
    entries = list(made.entries)
    fresh = state == PlanState.DRAFT or (prior == RunState.RUNNING and state in plans.MAY_BEGIN)
    if fresh:
        entries.append(plans.begin(made, by=_starter(s), prior=state))
    entries.append(Entry(EventKind.RUN_COMPENSATING, {"plan": str(made.id), "to_mend": len(made.active)}))
    s.commit(
        entries,
        run={
            "state": RunState.COMPENSATING,
            "waiting_on": "",
            "wait_event": "",
            "lease_owner": None,
            "wake_at": None,
            "tries": 0,
            "gate": [reason("compensating", of=len(made.active))],
        },
        # A plan that was at work before may be over by now, and would not wake a run that was not compensating yet.
        times=None if fresh else {"wake_at": 0},
        why="compensating",
        checkpoint=checkpoint,
        prior=prior,
    )
    failpoints.hit("compensate.begun")
    mending_runs.mend(made.id)
    return "compensating"


def _starter(s: Session) -> UUID | None:
    by = s.run["cancel_by_id"] or s.run["started_by_id"]
    return None if by is None else UUID(str(by))


def _told(plan: Plan) -> StepPlan:
    items = [i for i in plans.items_of(plan) if i.active]
    states = dict(Effect.objects.filter(pk__in=[i.effect for i in items]).values_list("pk", "state"))
    mended = sum(1 for i in items if states[i.effect] == EffectState.COMPENSATED)
    return StepPlan(plan.pk, PlanState(plan.state), mended, len(items), plan.stays)


def _end(s: Session, plan: Plan, *, cancelled: bool) -> str:
    told = _told(plan)
    counts = {"mended": told.mended, "of": told.of}
    how: dict[str, Any] = {"plan": str(plan.pk), "stays": list(told.stays), "left": finish.what_stays(s)}
    if plan.state == PlanState.ENDED:
        kind, state = EventKind.RUN_CLOSED_UNRESOLVED, RunState.COMPLETED_UNRESOLVED
        how |= reason("residue_accepted", **counts)
    elif cancelled:
        kind, state = EventKind.RUN_CANCELLED, RunState.CANCELLED
        how |= reason("cancelled", **counts)
        how["facts"]["left"] = len(how["left"])
    else:
        kind, state = EventKind.RUN_COMPENSATED, RunState.COMPENSATED
        how |= reason("compensated", **counts)
    finish.close(s, kind, state, how, checkpoint=False, prior=RunState.COMPENSATING)
    return str(state)
