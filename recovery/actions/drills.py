"""What people do with drills: begin one, and keep its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from recovery.actions.common import Done, Locked, Plan, Subject, carry_out, who
from recovery.drills.catalogue import DRILLS
from recovery.engine.refusals import DrillRunning, DrillsForbidden, UnknownDrill
from runs.errors import NotFound
from runs.models import Drill, Environment, Person, Workspace
from runs.models.base import new_id
from runs.record import Act, Change, Entry, move, new
from runs.states import DrillState, EventKind

LONGEST: Final = timedelta(minutes=30)
"""After this a drill that was never ended counts as abandoned: its process is gone, and it must not bar the next."""


def begin(workspace: Workspace, name: str, *, actor: Person, act: Act) -> Done:
    """Keep that a drill begins; ``facts["drill"]`` is its id. What it breaks is the caller's to break.

    Only where every workspace of this installation is a sandbox, since a worker that dies works for all of them. Raises
    UnknownDrill naming those there are, DrillsForbidden naming what forbids it, DrillRunning, NotAllowed.
    """
    if name not in DRILLS:
        raise UnknownDrill(f"no drill is called {name!r}", name=name, known=sorted(DRILLS))
    drill = new_id()

    def plan(at: Locked) -> Plan:
        serious = Workspace.objects.exclude(environment=Environment.SANDBOX).order_by("slug")
        names = [f"{slug} ({environment})" for slug, environment in serious.values_list("slug", "environment")]
        if names:
            raise DrillsForbidden(f"drills are for sandboxes: {', '.join(names)}", names=", ".join(names))
        row = {"id": drill, "workspace_id": workspace.pk, "name": name, "state": DrillState.RUNNING}
        row["started_by_id"] = actor.pk
        facts = {"drill": str(drill), "name": name, "by": who(actor)}
        entries = _abandoned(workspace, at)
        entries.append(Entry(EventKind.DRILL_STARTED, facts, [new("drill", row, {"started_at": 0})]))
        return Plan(entries, facts)

    subject = Subject("drill", drill, workspace.pk, None)
    return carry_out(subject, "drill", plan, actor=actor, act=act, reason=None)


def _abandoned(workspace: Workspace, at: Locked) -> list[Entry]:
    """The entry that ends a drill whose process is gone. Raises DrillRunning for one that may still be at work."""
    left = Drill.objects.filter(workspace=workspace, state=DrillState.RUNNING).first()
    if left is None:
        return []
    if left.started_at > at.now - LONGEST:
        raise DrillRunning(name=left.name, at=left.started_at.isoformat(), who=left.started_by.name)
    return [Entry(EventKind.DRILL_ENDED, _told(left, DrillState.FAILED), [_ends(left, False, {"abandoned": True})])]


def end(drill_id: UUID, *, passed: bool, verdict: Mapping[str, Any], actor: Person, act: Act) -> Done:
    """Keep what came of a drill. Raises NotFound, LostRace when it was ended before, NotAllowed."""
    drill = Drill.objects.filter(pk=drill_id).first()
    if drill is None:
        raise NotFound

    def plan(at: Locked) -> Plan:
        facts = {**_told(drill, DrillState.PASSED if passed else DrillState.FAILED), "by": who(actor), **verdict}
        return Plan([Entry(EventKind.DRILL_ENDED, facts, [_ends(drill, passed, verdict)])], facts)

    subject = Subject("drill", drill.pk, drill.workspace_id, None)
    return carry_out(subject, "drill", plan, actor=actor, act=act, reason=None)


def _ends(drill: Drill, passed: bool, verdict: Mapping[str, Any]) -> Change:
    state = DrillState.PASSED if passed else DrillState.FAILED
    changed = {"state": state, "verdict": dict(verdict)}
    return move("drill", drill.pk, (DrillState.RUNNING,), changed, times={"ended_at": 0})


def _told(drill: Drill, state: DrillState) -> dict[str, Any]:
    return {"drill": str(drill.pk), "name": drill.name, "state": str(state)}
