"""After the faults: everything goes on until it has ended or visibly waits for somebody; then people end the rest."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from recovery.actions import approvals, runs
from recovery.simulation import answering, holding, invariants, mending, people, stage
from recovery.simulation.contracts import LAG
from recovery.simulation.invariants import history
from recovery.upkeep.sweep import Sweep
from runs import clock
from runs.history import chain
from runs.models import Approval, Attempt, Call, Capacity, Effect, EffectLink, Review, Run, Verdict
from runs.states import (
    ATTEMPT_LIVE,
    RUN_ENDED,
    ApprovalState,
    BreakerState,
    CallState,
    EffectState,
    ReviewState,
    RunState,
    VerdictState,
    WaitingOn,
)

if TYPE_CHECKING:
    from recovery.simulation.world import World

PASSES: Final = 150
"""Passes of the sweep after which a seed that is still busy has not come to rest."""

ROUNDS: Final = 12
"""How often people go through the inbox."""


def settle(world: World) -> None:
    """Drive ``world`` to its end. What does not come to rest breaks liveness."""
    world.weather.calm = True
    world.weather.outages.clear()
    for name in "BCF":
        stage.activate(world.stage.people[name], True)
    _finish_calls(world)
    world.bodies.bury_all()
    holding.let_all_go(world)
    # Nothing is on its way any more: who looks at the other side's books then sees all there is.
    world.moments.pass_by(2 * LAG.total_seconds())
    _drive(world)
    if world.wrong:
        return
    for row in _hidden():
        world.violate("liveness", f"run {world.label(row.pk)} waits for {row.waiting_on or row.state}, seen by nobody")
    for _round in range(ROUNDS):
        if world.wrong or not Run.objects.exclude(state__in=RUN_ENDED).exists():
            break
        _inbox(world, cancel=_round >= 1)
        _drive(world)
    for row in Run.objects.exclude(state__in=RUN_ENDED).order_by("pk"):
        world.violate("liveness", f"run {world.label(row.pk)} does not end: {row.state} {row.waiting_on}")
    _verify(world)


def _finish_calls(world: World) -> None:
    while world.bodies.stopped:
        for worker in world.bodies.stopped:
            world.ended(world.bodies.go_on(worker))
            invariants.check(world)


def _drive(world: World) -> None:
    """Sweep and work; let time pass to what is due next, until nothing moves by itself any more."""
    for _pass in range(PASSES):
        if world.wrong:
            return
        if _pass_once(world):
            continue
        if not _hidden():
            return
        due = _next_due()
        if due is None:
            return
        # A hair more than is missing: a look at the clock takes time, too.
        world.moments.pass_by(max((due - clock.now()).total_seconds(), 0.0) + 0.01)
    world.violate("liveness", f"still busy after {PASSES} passes")


def _pass_once(world: World) -> int:
    counts = Sweep().run_once()
    rang = 0
    while world.bells and rang < PASSES:
        found = list(dict.fromkeys(world.bells))
        world.bells.clear()
        for bell in found:
            world.subject = None
            subject = world.subject_of(bell)
            call = world.bodies.start(world.bodies.workers[0], bell.task, subject, world.work(bell))
            world.tell(f"{bell.task} {world.label(subject)}: {world.ended(call)}")
        invariants.check(world)
        rang += len(found)
    return rang + sum(counts.get(name, 0) for name in ("links", "expired", "children"))


def _next_due() -> datetime | None:
    """The next moment at which the sweep finds something."""
    ready = Effect.objects.filter(state=EffectState.READY).exclude(not_before=None)
    ready = ready.exclude(run__waiting_on=WaitingOn.PERSON).exclude(run__state=RunState.QUARANTINED)
    live = Attempt.objects.filter(state__in=ATTEMPT_LIVE)
    calls = Call.objects.exclude(run__state=RunState.QUARANTINED)
    awake = Run.objects.exclude(wake_at=None).exclude(state=RunState.QUARANTINED)
    found: list[datetime | None] = [
        *awake.values_list("wake_at", flat=True),
        *Effect.objects.exclude(next_check_at=None).values_list("next_check_at", flat=True),
        *ready.values_list("not_before", flat=True),
        *live.values_list("expires_at", flat=True),
        *calls.filter(state=CallState.READY).values_list("not_before", flat=True),
        *calls.filter(state=CallState.COMMITTED).values_list("expires_at", flat=True),
        *Capacity.objects.filter(state=BreakerState.OPEN).values_list("reopen_at", flat=True),
    ]
    return min((at for at in found if at is not None), default=None)


def _hidden() -> list[Run]:
    """Runs that have not ended and wait for nobody who could see it: not in the inbox, not for a named event.

    Who waits for another run's effect is seen where that effect is; who waits for a child, where the child is; what is
    being mended, where the run that mends it is.
    """
    seen = Review.objects.filter(state=ReviewState.OPEN)
    links = EffectLink.objects.filter(effect__in=seen.exclude(effect=None).values("effect_id")).values("run_id")
    rows = Run.objects.exclude(state__in=RUN_ENDED).exclude(pk__in=seen.values("run_id")).exclude(pk__in=links)
    rows = rows.exclude(waiting_on=WaitingOn.CHILD).exclude(state=RunState.COMPENSATING)
    return list(rows.order_by("pk").exclude(state=RunState.WAITING, waiting_on=WaitingOn.EVENT, wake_at=None))


def _inbox(world: World, *, cancel: bool) -> None:
    """Everybody does their part; what cannot go on is cancelled, and what cannot be mended stays."""
    answering.answer_all(world)
    mending.settle(world, give_up=cancel)
    for approval in Approval.objects.filter(state=ApprovalState.PENDING).order_by("pk"):
        given = {"reason": people.REASON, "digest": approval.digest, "saw": people.SAW}
        for actor in "BCFH":
            people.do(world, approvals.sign, approval.pk, actor=actor, again=False, **given)
    for effect in Effect.objects.filter(state__in=people.UNDECIDED).order_by("pk"):
        if not world.may_arrive(effect):
            people.say(world, effect)
    for verdict in Verdict.objects.select_related("effect").filter(state=VerdictState.PROPOSED).order_by("pk"):
        people.answer(world, verdict, "G" if verdict.workspace_id == world.stage.home.pk else "H")
    for run in Run.objects.exclude(state__in=RUN_ENDED).order_by("pk"):
        actor = people.on_call(world, run)
        if run.wait_event:
            people.do(world, runs.signal, run.pk, run.wait_event, {}, actor=actor, again=False)
        if cancel:
            people.do(world, runs.cancel, run.pk, actor=actor, again=False, reason="cannot go on")
    invariants.check(world)


def _verify(world: World) -> None:
    """Everything once more: no table moved without its line, no end was left, each chain by everybody's verifier."""
    for capacity in Capacity.objects.exclude(in_flight=0):
        world.violate("liveness", f"{capacity.in_flight} permits of {capacity.name} are held by nobody")
    world.seen.everything()
    history.invariant_5(world)
    history.folds_into_the_tables(world)
    for run in Run.objects.order_by("pk"):
        report = chain.verify_run(run)
        if not report.ok:
            world.violate(9, f"the chain of {world.label(run.pk)}: {report.why}")
    for workspace in (world.stage.home, world.stage.next_door):
        workspace.refresh_from_db()
        report = chain.verify_workspace(workspace)
        if not report.ok:
            world.violate(9, f"the chain of {workspace.slug}: {report.why}")
