"""What every action of a person shares: one transaction around permission, lock and commit; refusals kept
apart.

An action is a function with one permission and one plan. :func:`carry_out` opens the transaction, asks for
the permission inside it, locks the run (so that the plan reads what the commit will find), returns the first
result when the same act comes again (invariant 15), and commits. What is refused changes nothing and is
written in a second transaction, at most :data:`REFUSALS_A_MINUTE` an actor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from recovery import failpoints
from runs import access, clock, record
from runs.checkpoints import tokens
from runs.errors import (
    ActionInFlight,
    ActionMismatch,
    EvidenceNeeded,
    NotFound,
    ReasonNeeded,
    RunsError,
)
from runs.models import Action, Effect, Event, Person, Run, Workspace
from runs.record import Act, Commit, Entry, Sealed
from runs.states import EventKind

REFUSALS_A_MINUTE: Final = 20
_LOOK_BACK: Final = 1000
"""Lines of the workspace's chain that the limit looks at; beyond them a flood of others has its own limit."""

_NOT_KEPT: Final = (NotFound, ReasonNeeded, EvidenceNeeded, ActionInFlight)
"""Not written down: what the person only left out, and what is not theirs to see (a line would take time that
tells a foreign id from a missing one, invariant 14)."""


@dataclass(frozen=True, slots=True)
class Done:
    """What an action led to.

    ``event``: its last line in the run's chain. ``replayed``: it had been done before.
    """

    event: int
    at: datetime
    replayed: bool
    facts: Mapping[str, Any]

    @property
    def run(self) -> UUID:
        """The run that an action on a run was about, or that it started."""
        return UUID(str(self.facts["run"]))


@dataclass(frozen=True, slots=True)
class Subject:
    """What an action is about, found without asking who may see it."""

    thing: str
    id: UUID
    workspace: UUID
    run: UUID | None


@dataclass(frozen=True, slots=True)
class Locked:
    """The moment of the change: the run under its lock (None: there is none), and the database's time."""

    run: Run | None
    now: datetime


@dataclass(slots=True)
class Plan:
    """What to commit.

    ``before``: the commit must be stamped earlier than this, else ``over`` is raised (R6). ``checkpoint``: the run as
    the action has moved it, where it has.
    """

    entries: list[Entry]
    facts: dict[str, Any] = field(default_factory=dict)
    before: datetime | None = None
    over: RunsError | None = None
    checkpoint: Sealed | None = None


def carry_out(
    subject: Subject,
    permission: str,
    plan: Callable[[Locked], Plan],
    *,
    actor: Person,
    act: Act,
    reason: str | None,
) -> Done:
    """Do ``plan`` for ``actor``, or refuse it whole. ``reason``: None where the action asks for none.

    Raises NotFound, NotAllowed, ReasonNeeded, ActionMismatch, and what the plan and the record refuse.
    """
    try:
        with transaction.atomic(), tokens.within(subject.workspace):
            access.require(actor, subject.workspace, permission)
            run = None
            if subject.run is not None:
                run = Run.objects.select_for_update(no_key=True).get(pk=subject.run)
                # Waiting for the lock takes time in which a right may be taken away.
                access.require(actor, subject.workspace, permission)
            first = first_result(subject.workspace, actor, act)
            if first is not None:
                return first
            if reason is not None and not reason.strip():
                raise ReasonNeeded
            planned = plan(Locked(run, clock.now()))
            failpoints.hit("act.before_write")
            done = record.commit(
                Commit(
                    subject.workspace,
                    subject.run,
                    planned.entries,
                    actor=actor.pk,
                    reason=reason or None,
                    act=act,
                    facts=planned.facts,
                    checkpoint=planned.checkpoint,
                )
            )
            if planned.before is not None and planned.over is not None and done.at >= planned.before:
                raise planned.over
            failpoints.hit("act.before_commit")
    except RunsError as refused:
        note_refusal(subject, refused, actor=actor, act=act, reason=reason)
        raise
    failpoints.hit("act.after_commit")
    return Done(done.last, done.at, done.replayed, done.facts)


def first_result(workspace: UUID, actor: Person, act: Act) -> Done | None:
    """The result of the same act, if it was carried out before. Raises ActionMismatch for another body."""
    seen = Action.objects.filter(workspace_id=workspace, actor_id=actor.pk, route=act.route, id=act.id).first()
    if seen is None:
        return None
    if seen.digest != act.digest:
        raise ActionMismatch(route=act.route, at=seen.at.isoformat())
    return Done(seen.result["last"], seen.at, True, seen.result["facts"])


def note_refusal(subject: Subject, refused: RunsError, *, actor: Person, act: Act, reason: str | None) -> None:
    """Keep a refusal as a line of the workspace's own chain, unless the actor has reached the limit."""
    if isinstance(refused, _NOT_KEPT):
        return
    with transaction.atomic():
        head = Workspace.objects.values_list("head_seq", flat=True).get(pk=subject.workspace)
        lately = Event.objects.filter(
            workspace_id=subject.workspace,
            run=None,
            seq__gt=head - _LOOK_BACK,
            kind=EventKind.ACTION_REFUSED,
            actor_id=actor.pk,
            at__gt=clock.now() - timedelta(minutes=1),
        ).count()
        if lately >= REFUSALS_A_MINUTE:
            return
        record.note(
            subject.workspace,
            EventKind.ACTION_REFUSED,
            actor=actor.pk,
            reason=reason or None,
            data={
                "route": act.route,
                "action": str(act.id),
                "about": {"thing": subject.thing, "id": str(subject.id)},
                "run": None if subject.run is None else str(subject.run),
                "by": actor.name,
                "code": refused.code,
                "facts": refused.facts,
                "last_kept": lately + 1 == REFUSALS_A_MINUTE,
            },
        )


def require_run(locked: Locked) -> Run:
    """The locked run of a subject that always has one."""
    assert locked.run is not None, "this subject has a run"
    return locked.run


def who(person: Person) -> dict[str, str]:
    """A person as an event names them: the name as it was then."""
    return {"id": str(person.pk), "name": person.name}


def changed_since(effect: Effect, seen: int) -> dict[str, Any]:
    """Facts of a StaleVersion: which line changed the effect last, when, and by whom."""
    facts: dict[str, Any] = {
        "thing": "effect",
        "id": str(effect.pk),
        "seen": seen,
        "now": effect.version,
        "state": str(effect.state),
    }
    lines = Event.objects.filter(run_id=effect.run_id, text__contains=str(effect.pk)).select_related("actor")
    last = lines.order_by("-seq").first()
    if last is not None:
        name = last.actor.name if last.actor is not None else None
        facts |= {"event": last.seq, "kind": last.kind, "at": last.at.isoformat(), "who": name}
    return facts
