"""What people do with a drain: start it, let it go ahead after the canary, hold it, stop it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from recovery.actions import dependencies
from recovery.actions.common import Done, Locked, Plan, Subject, carry_out, who
from recovery.engine.changes import reason as why
from recovery.engine.refusals import AlreadyDone, NothingToDrain
from recovery.traffic import drains
from recovery.traffic.admission import WAITING
from recovery.traffic.drains import Move
from runs import record
from runs.errors import IllegalMove, NotFound
from runs.models import Drain, Effect, Person, Workspace
from runs.models.base import new_id
from runs.record import Act, Entry
from runs.states import DRAIN_ENDED, DrainState, EffectState, EventKind


def start(dependency_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """Begin to send what has piled up: what is unknown is read back first, what has expired is dropped, a few go,
    then it waits for a person. A hold of the dependency ends with the same press: the drain keeps the backlog back.

    Raises AlreadyDone when one is under way, NothingToDrain, ReasonNeeded, NotAllowed, NotFound. ``facts``: ``drain``.
    """

    def plan(at: Locked) -> Plan:
        one = dependencies.locked(dependency_id)
        under_way = Drain.objects.filter(dependency=one, ended_at=None).select_related("began_by").first()
        if under_way is not None:
            by = under_way.began_by.name if under_way.began_by else None
            raise AlreadyDone(what="started", at=under_way.began_at.isoformat(), who=by, drain=str(under_way.pk))
        waiting = Effect.objects.filter(WAITING, dependency=one)
        total = waiting.filter(state=EffectState.READY).count()
        unknown = waiting.filter(state=EffectState.UNKNOWN).count()
        if not total and not unknown:
            raise NothingToDrain(dependency=one.name)
        drain = new_id()
        row = {
            "id": drain,
            "workspace_id": one.workspace_id,
            "dependency_id": one.pk,
            "state": DrainState.CHECKING,
            "began_by_id": actor.pk,
            "canary": one.canary,
            "asks": one.asks_to_go_ahead,
            "warm_up": one.warm_up,
            "total": total,
            "unknown": unknown,
            "why": why("checking"),
        }
        facts = {
            **dependencies.told(one),
            "by": who(actor),
            "drain": str(drain),
            "total": total,
            "unknown": unknown,
            "released": one.held_at is not None,
        }
        changes = [record.move("dependency", one.pk, None, {"draining": drain})]
        if one.held_at is not None:
            changes += dependencies.released(one)
        changes.append(record.new("drain", row, {"began_at": 0, "moved_at": 0}))
        return Plan([Entry(EventKind.DRAIN_STARTED, facts, changes)], facts)

    return carry_out(dependencies.subject(dependency_id), "decide", plan, actor=actor, act=act, reason=reason)


def go_ahead(drain_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """Let a drain go on: after its canary, or where it was held. It begins with the first part of the pace.

    One that was held before its canary goes on where it was. Raises IllegalMove, AlreadyDone when it has ended,
    ReasonNeeded, NotAllowed, NotFound.
    """

    def move(drain: Drain) -> Move:
        early = (DrainState.CHECKING, DrainState.DROPPING)
        if drain.state == DrainState.HELD and drain.held_from in early:
            return Move(DrainState(drain.held_from), "went_on")
        if drain.state not in (DrainState.GO_AHEAD, DrainState.HELD):
            raise IllegalMove(thing="drain", state=drain.state)
        return Move(DrainState.RAMPING, "ramping", drains.RAMP[0])

    return _do(drain_id, move, actor=actor, act=act, reason=reason)


def hold(drain_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """Let nothing more of the backlog go until somebody says so; new work goes on.

    Raises AlreadyDone when it is held or has ended, ReasonNeeded, NotAllowed, NotFound.
    """

    def move(drain: Drain) -> Move:
        if drain.state == DrainState.HELD:
            raise AlreadyDone(what="held", at=drain.moved_at.isoformat(), who=None)
        return Move(DrainState.HELD, "held_by_person")

    return _do(drain_id, move, actor=actor, act=act, reason=reason)


def stop(drain_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """End the drain. What is left of the backlog is work like any other again: it goes at the dependency's pace.

    Raises AlreadyDone when it has ended, ReasonNeeded, NotAllowed, NotFound.
    """
    return _do(drain_id, lambda drain: Move(DrainState.STOPPED, "stopped"), actor=actor, act=act, reason=reason)


def _do(drain_id: UUID, move_of: Any, *, actor: Person, act: Act, reason: str) -> Done:
    def plan(at: Locked) -> Plan:
        workspace = Drain.objects.values_list("workspace_id", flat=True).get(pk=drain_id)
        Workspace.objects.select_for_update(no_key=True).get(pk=workspace)
        drain = Drain.objects.get(pk=drain_id)
        if drain.state in DRAIN_ENDED:
            assert drain.ended_at is not None
            raise AlreadyDone(what="ended", at=drain.ended_at.isoformat(), who=None)
        move: Move = move_of(drain)
        told = {**drains.told(drain, move), "by": who(actor)}
        return Plan([Entry(drains.kind_of(move), told, drains.changes(drain, move))], told)

    return carry_out(_subject(drain_id), "decide", plan, actor=actor, act=act, reason=reason)


def _subject(drain_id: UUID) -> Subject:
    workspace = Drain.objects.filter(pk=drain_id).values_list("workspace_id", flat=True).first()
    if workspace is None:
        raise NotFound
    return Subject("drain", drain_id, workspace, None)
