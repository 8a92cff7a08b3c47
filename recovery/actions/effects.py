"""What people do with effects: check with the dependency now."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from recovery.actions.runs import Done
from recovery.engine import reconcile
from runs import access
from runs.models import Action, Effect, Person
from runs.record import Act


def check(effect_id: UUID, *, actor: Person, act: Act) -> Done:
    """Ask the effect's dependency now. Reads only; what it says is kept as evidence and may settle the effect.

    Light: no reason, no step-up. Raises NotAllowed, NotUnknown where there is no way to check. ``facts``: evidence id,
    claim, and the effect's state after it. No transaction is open during the call.
    """
    effect = Effect.objects.get(pk=effect_id)
    access.require(actor, effect.workspace_id, "check")
    before = Action.objects.filter(
        workspace_id=effect.workspace_id, actor_id=actor.pk, route=act.route, id=act.id
    ).first()
    if before is not None and before.digest == act.digest:
        return Done(effect.run_id, before.result["last"], before.at, True, before.result["facts"])
    row, done = reconcile.check(effect_id, actor=actor.pk, act=act)
    facts: dict[str, Any] = {**done.facts, "strength": str(row["strength"])}
    return Done(effect.run_id, done.last, done.at, done.replayed, facts)
