"""What people do with a dependency: hold it, release it, say how much of its capacity this workspace may use."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from recovery.actions.common import Done, Locked, Plan, Subject, carry_out, who
from recovery.engine.refusals import AlreadyDone, ShareInvalid
from recovery.traffic import breaker
from runs import record
from runs.errors import NotFound
from runs.models import Dependency, Person, Workspace
from runs.record import Act, Change, Entry
from runs.states import BreakerState, EventKind, ReviewKind

LEAST_SHARE: Final = 0.001
"""Of a capacity's rate. With less, the next moment is in no calendar, and nothing could be sent or said."""


def hold(dependency_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """Send nothing to it any more; what was committed before is on its way, what is not yet sent waits.

    Readbacks go on. Raises AlreadyDone when somebody holds it, ReasonNeeded, NotAllowed, NotFound.
    """

    def plan(at: Locked) -> Plan:
        one = locked(dependency_id)
        if one.held_at is not None:
            raise AlreadyDone(what="held", at=one.held_at.isoformat(), who=one.held_by.name if one.held_by else None)
        waiting = breaker.waits(one)
        change = {"held_by_id": actor.pk, "hold_reason": reason}
        changes = [record.move("dependency", one.pk, None, change, times={"held_at": 0})]
        if waiting:
            changes.append(breaker.not_sending(one, "dependency_held"))
        facts = {**told(one), "by": who(actor), "waiting": waiting}
        return Plan([Entry(EventKind.DEPENDENCY_HELD, facts, changes)], facts)

    return carry_out(subject(dependency_id), "cancel", plan, actor=actor, act=act, reason=reason)


def release(dependency_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """Send to it again. What waits goes at its pace; after an outage a drain is the careful way.

    Raises AlreadyDone when nobody holds it, ReasonNeeded, NotAllowed, NotFound.
    """

    def plan(at: Locked) -> Plan:
        one = locked(dependency_id)
        if one.held_at is None:
            raise AlreadyDone(what="released", at=at.now.isoformat(), who=None)
        facts = {**told(one), "by": who(actor), "held_since": one.held_at.isoformat(), "waiting": breaker.waits(one)}
        return Plan([Entry(EventKind.DEPENDENCY_RELEASED, facts, released(one))], facts)

    return carry_out(subject(dependency_id), "decide", plan, actor=actor, act=act, reason=reason)


def rate(dependency_id: UUID, share: float, *, actor: Person, act: Act, reason: str) -> Done:
    """Let this workspace have ``share`` (0.001 to 1) of the capacity's safe rate, from the next call on.

    The rate itself is shared with other workspaces and is a setting of the installation. Raises ShareInvalid,
    ReasonNeeded, NotAllowed, NotFound.
    """

    def plan(at: Locked) -> Plan:
        if not LEAST_SHARE <= share <= 1:
            # As text: what is no number has no JSON either, and the refusal is kept.
            raise ShareInvalid(share=repr(share))
        one = locked(dependency_id)
        facts = {**told(one), "by": who(actor), "before": one.share, "after": share}
        changed = record.move("dependency", one.pk, None, {"share": share, "next_at": None})
        return Plan([Entry(EventKind.DEPENDENCY_RATED, facts, [changed])], facts)

    return carry_out(subject(dependency_id), "decide", plan, actor=actor, act=act, reason=reason)


def released(one: Dependency) -> list[Change]:
    """The changes that end a hold; the review stays while the breaker is open."""
    freed = {"held_at": None, "held_by_id": None, "hold_reason": ""}
    changes = [record.move("dependency", one.pk, None, freed)]
    if one.capacity.state != BreakerState.OPEN:
        changes.append(record.close_reviews(one.pk, [ReviewKind.NOT_SENDING]))
    return changes


def subject(dependency_id: UUID) -> Subject:
    """What the action is about. Raises NotFound."""
    workspace = Dependency.objects.filter(pk=dependency_id).values_list("workspace_id", flat=True).first()
    if workspace is None:
        raise NotFound
    return Subject("dependency", dependency_id, workspace, None)


def locked(dependency_id: UUID) -> Dependency:
    """The dependency under its workspace's lock, which every action on it takes first."""
    space = Dependency.objects.values_list("workspace_id", flat=True).get(pk=dependency_id)
    Workspace.objects.select_for_update(no_key=True).get(pk=space)
    return Dependency.objects.select_related("capacity", "held_by").get(pk=dependency_id)


def told(one: Dependency) -> dict[str, Any]:
    """What an event says of a dependency."""
    return {"dependency": one.name, "id": str(one.pk)}
