"""What people do with effects: check with the dependency now."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from recovery.actions.common import Done, Subject, first_result, note_refusal
from recovery.engine import reconcile
from runs import access
from runs.errors import NotFound, RunsError
from runs.models import Effect, Person
from runs.record import Act
from runs.states import EffectState

CHECKABLE: Final = frozenset({EffectState.UNKNOWN, EffectState.ACCEPTED, EffectState.DISPUTED, EffectState.IN_FLIGHT})
"""States in which asking the dependency can tell something that is not known; there a check is offered."""


def check(effect_id: UUID, *, actor: Person, act: Act) -> Done:
    """Ask the effect's dependency now. Reads only; what it says is kept as evidence and may settle the effect.

    Light: no reason, no step-up. Raises NotAllowed, NotUnknown where there is no way to check. ``facts``: evidence id,
    claim, and the effect's state after it. No transaction is open during the call.
    """
    found = Effect.objects.filter(pk=effect_id).values_list("workspace_id", "run_id").first()
    if found is None:
        raise NotFound
    workspace, run = found
    try:
        access.require(actor, workspace, "check")
        before = first_result(workspace, actor, act)
        if before is not None:
            return before
        row, done = reconcile.check(effect_id, actor=actor.pk, act=act)
    except RunsError as refused:
        note_refusal(Subject("effect", effect_id, workspace, run), refused, actor=actor, act=act, reason=None)
        raise
    facts: dict[str, Any] = {**done.facts, "strength": str(row["strength"]), "run": str(run)}
    return Done(done.last, done.at, done.replayed, facts)
