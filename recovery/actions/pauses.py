"""What people do to hold a run for a while: pause it, let it go on."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from recovery.actions.common import Done, Locked, Plan, carry_out, require_run, who
from recovery.actions.runs import refuse_ended, subject_of
from recovery.engine import pause_moves
from recovery.engine.refusals import NotPausable, NotPaused
from runs.models import Person
from runs.record import Act, Entry
from runs.states import EventKind, RunState, Scope

_HELD = (RunState.PAUSING, RunState.PAUSED)


def pause(run_id: UUID, *, actor: Person, act: Act, reason: str, scope: Scope = Scope.RUN) -> Done:
    """Ask for a run to be paused: nothing new is sent, what is in flight settles, then it is paused.

    ``scope``: this run alone, or with every run it started. An outcome that stays unknown does not hinder the pause;
    ``run.paused`` names it. Raises RunEnded, NotPausable (it ends, or stands still already), ReasonNeeded,
    NotAllowed. Asking again by another act changes nothing; its facts say who asked first.
    """

    def plan(at: Locked) -> Plan:
        run = require_run(at)
        refuse_ended(run)
        facts: dict[str, Any] = {"run": str(run.pk), "asked_at": None, "by": None}
        if run.state in _HELD:
            assert run.pause_asked_at is not None
            by = None if run.pause_by is None else run.pause_by.name
            facts |= {"asked_at": run.pause_asked_at.isoformat(), "by": by}
            return Plan([Entry(EventKind.RUN_PAUSE_ASKED, {"again": True})], facts)
        if run.state not in pause_moves.PAUSABLE:
            raise NotPausable(state=run.state)
        asked = {"pause_by_id": actor.pk, "pause_reason": reason, "pause_scope": scope}
        told = {"scope": str(scope), "by": who(actor)}
        return Plan([Entry(EventKind.RUN_PAUSE_ASKED, told, [pause_moves.pause(asked, prior=run.state)])], facts)

    return carry_out(subject_of(run_id), "cancel", plan, actor=actor, act=act, reason=reason)


def resume(run_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """Let a paused run go on: it is due at once, and the checks before going on come first (a pause counts as away).

    Children that were paused with it go on with it; one that a person paused by itself stays paused. Raises RunEnded,
    NotPaused, ReasonNeeded, NotAllowed.
    """

    def plan(at: Locked) -> Plan:
        run = require_run(at)
        refuse_ended(run)
        if run.state not in _HELD:
            raise NotPaused(state=run.state)
        told = {"by": who(actor), "settled": run.state == RunState.PAUSED}
        return Plan([Entry(EventKind.RUN_RESUMED, told, pause_moves.resume(run))], {"run": str(run.pk)})

    return carry_out(subject_of(run_id), "cancel", plan, actor=actor, act=act, reason=reason)
