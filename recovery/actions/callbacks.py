"""Messages that match nothing here: a person puts them away."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from recovery.actions.common import Done, Locked, Plan, Subject, carry_out, who
from recovery.engine.refusals import AlreadyDone
from runs.errors import NotFound
from runs.models import Callback, Person
from runs.record import Act, Entry, close_reviews, move
from runs.states import CallbackState, EventKind


def dismiss(callback_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """Put a message away that belongs to nothing here. It is kept, its review closed.

    Raises NotFound, NotAllowed, ReasonNeeded, AlreadyDone.
    """
    workspace = Callback.objects.filter(pk=callback_id).values_list("workspace_id", flat=True).first()
    if workspace is None:
        raise NotFound

    def plan(at: Locked) -> Plan:
        callback = Callback.objects.select_related("dependency").get(pk=callback_id)
        if callback.state != CallbackState.ASIDE:
            raise AlreadyDone(what=callback.state, at=None, review=str(callback.pk))
        facts: dict[str, Any] = {
            "callback": str(callback.pk),
            "message": callback.message,
            "dependency": callback.dependency.name,
            "by": who(actor),
        }
        changes = [
            move("callback", callback.pk, (CallbackState.ASIDE,), {"state": CallbackState.DISMISSED}),
            close_reviews(callback.pk),
        ]
        return Plan([Entry(EventKind.CALLBACK_DISMISSED, facts, changes)], facts)

    return carry_out(
        Subject("callback", callback_id, workspace, None), "decide", plan, actor=actor, act=act, reason=reason
    )
