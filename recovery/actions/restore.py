"""Letting things be sent again after a restore: one person asks, another one lets it (four eyes)."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from recovery.actions.common import Done, Locked, Plan, Subject, carry_out, who
from recovery.actions.seconds import require_second
from recovery.engine.refusals import AlreadyDone, NotSwept
from runs import access
from runs.errors import NotAllowed, NotFound
from runs.models import Person, Restore, Review
from runs.record import Act, Change, Entry, move
from runs.restored import RestoreState
from runs.states import EventKind, ReviewKind, ReviewState

ASKS: Final = ("decide", "administer")
LETS: Final = ("confirm", "decide", "administer")
"""Permissions of which the first and the second person need one."""


def ask_release(restore_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """Ask that things may be sent again, with what the sweep found and left in view.

    Raises NotSwept while the sweep is at work, AlreadyDone, NotAllowed, ReasonNeeded. ``facts``: restore, found, left.
    """
    restore = _found(restore_id)

    def plan(at: Locked) -> Plan:
        row = Restore.objects.get(pk=restore_id)
        _require(actor, row.workspace_id, ASKS)
        if row.state == RestoreState.FROZEN:
            raise NotSwept(epoch=row.epoch)
        if row.state != RestoreState.SWEPT:
            raise AlreadyDone(**_by(row))
        asked = {"state": RestoreState.ASKED, "asked_by_id": actor.pk, "ask_reason": reason}
        change = move("restore", row.pk, [RestoreState.SWEPT], asked, times={"asked_at": 0})
        facts = _facts(row) | {"by": who(actor)}
        return Plan([Entry(EventKind.EPOCH_RELEASE_ASKED, facts, [change])], facts)

    return carry_out(_subject(restore), "see", plan, actor=actor, act=act, reason=reason)


def answer_release(restore_id: UUID, *, actor: Person, act: Act, confirm: bool, reason: str) -> Done:
    """The second person's answer: sending goes on, or the request is refused and may be asked again.

    Another person of another owner; whoever asked may only take it back. Raises SamePerson, NotSwept, AlreadyDone,
    NotAllowed, ReasonNeeded.
    """
    restore = _found(restore_id)

    def plan(at: Locked) -> Plan:
        row = Restore.objects.select_related("asked_by").get(pk=restore_id)
        _require(actor, row.workspace_id, LETS)
        if row.state == RestoreState.RELEASED:
            raise AlreadyDone(**_by(row))
        if row.asked_by is None or row.state != RestoreState.ASKED:
            raise NotSwept(epoch=row.epoch)
        if confirm:
            require_second(row.workspace_id, Person.objects.get(pk=actor.pk), row.asked_by, LETS)
        facts = _facts(row) | {"by": who(actor), "asked_by": who(row.asked_by), "confirmed": confirm}
        if not confirm:
            back: dict[str, Any] = {
                "state": RestoreState.SWEPT,
                "asked_by_id": None,
                "ask_reason": "",
                "asked_at": None,
            }
            change = move("restore", row.pk, [RestoreState.ASKED], back)
            return Plan([Entry(EventKind.EPOCH_RELEASE_REFUSED, facts, [change])], facts)
        ended = {"state": RestoreState.RELEASED, "released_by_id": actor.pk, "release_reason": reason}
        changes = [move("restore", row.pk, [RestoreState.ASKED], ended, times={"released_at": 0}), *_close(row)]
        return Plan([Entry(EventKind.EPOCH_RELEASED, facts, changes)], facts)

    return carry_out(_subject(restore), "see", plan, actor=actor, act=act, reason=reason)


def _found(restore_id: UUID) -> Restore:
    found = Restore.objects.filter(pk=restore_id).first()
    if found is None:
        raise NotFound
    return found


def _subject(restore: Restore) -> Subject:
    return Subject("restore", restore.pk, restore.workspace_id, None)


def _require(actor: Person, workspace: UUID, one_of: tuple[str, ...]) -> None:
    if not any(access.can(actor, workspace, permission) for permission in one_of):
        names = sorted({name for p in one_of for name in access.names_who_can(workspace, p)})
        raise NotAllowed(permission=one_of[0], roles=access.roles_with(one_of[0]), names=names)


def _by(row: Restore) -> dict[str, Any]:
    at, person = (row.released_at, row.released_by) if row.released_at else (row.asked_at, row.asked_by)
    return {"what": row.state, "at": at.isoformat() if at else None, "who": person.name if person else None}


def _facts(row: Restore) -> dict[str, Any]:
    return {"restore": str(row.pk), "epoch": row.epoch, "found": row.found, "left": row.left}


def _close(row: Restore) -> list[Change]:
    open_ones = Review.objects.filter(
        workspace_id=row.workspace_id, kind=ReviewKind.HISTORY_ALARM, subject=row.pk, state=ReviewState.OPEN
    )
    return [
        move("review", review.pk, [ReviewState.OPEN], {"state": ReviewState.CLOSED}, times={"closed_at": 0})
        for review in open_ones
    ]
