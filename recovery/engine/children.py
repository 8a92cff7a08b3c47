"""Runs that a run starts: accepted in the commit of their parent's wait, told what reaches the parent too.

The child is a new row that nobody else can hold, so its insert joins the parent's transaction and still only one
run is locked. Cancelling and pausing pass down as requests of the child's own, one commit each, any number of times.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from recovery import failpoints
from recovery.contract import Start, canonical, registry
from recovery.contract.errors import ContractError
from recovery.contract.runs import RunType, StepChild
from recovery.engine import accepting, finish, lineage, pause_moves
from recovery.engine.memory import Child
from recovery.engine.session import Session
from runs import record
from runs.checkpoints import tokens
from runs.errors import KeyMismatch, LostRace
from runs.models import Event, Run
from runs.record import Change, Commit, Entry
from runs.states import EventKind, RunState, Scope, WaitingOn

DEEPEST: Final = 8
"""Generations below a run that a person started: a type that starts itself must not do so for ever (invariant 10)."""


class TooDeep(ContractError):
    """A run started a run, and so on, further than a chain of children may go."""

    code = "too_deep"


def start(s: Session, transition: Start) -> str:
    """Accept the child and wait for it, in one transaction; the same key again meets the child that exists.

    Returns why the run stops here, or an empty text when that child has ended already. Raises UnknownRunType,
    ParamsInvalid, KeyMismatch (the key stands for another child), TooDeep.
    """
    s.memory.step = transition.then
    known = Run.objects.filter(parent_id=s.id, child_key=transition.key).first()
    if known is not None:
        _same(known, transition)
        s.memory.child = Child(known.pk, transition.key, transition.then)
        return ""
    depth = int(s.run["depth"]) + 1
    if depth > DEEPEST:
        raise TooDeep(f"{transition.run_type} would be {depth} generations deep", depth=depth, most=DEEPEST)
    run_type = registry.run_type(transition.run_type)
    born = accepting.newborn(
        run_type,
        transition.input,
        workspace=s.workspace,
        now=s.watch.now(),
        deadline=_deadline(s, run_type),
        principal=s.run["principal"],
        started_by_id=s.run["started_by_id"],
        goal=s.run["goal"],
        priority=s.run["priority"],
        parent_id=s.id,
        child_key=transition.key,
        depth=depth,
    )
    s.memory.child = Child(born.id, transition.key, transition.then)
    told = {"child": str(born.id), "type": run_type.name, "key": transition.key, "title": born.row["title"]}
    first = Commit(s.workspace, born.id, [born.entry], behalf=s.run["principal"], checkpoint=born.checkpoint)
    with transaction.atomic():
        word = _wait(s, [Entry(EventKind.RUN_CHILD_STARTED, told)])
        failpoints.hit("child.before_write")
        record.accept(first, born.row, accepting.TIMES)
        failpoints.hit("child.before_commit")
    failpoints.hit("child.after_commit")
    return word


def turn(s: Session, child: Child) -> tuple[StepChild | None, str]:
    """How the awaited child ended, or that the run waits on (what :func:`start` returns).

    A child that was paused with this run goes on with it: this run is at work, so it is not paused any more.
    """
    row = Run.objects.get(pk=child.id)
    if row.ended:
        s.memory.child = None
        s.memory.done.append({"step": child.then, "child": str(row.pk)})
        s.buffer.append(Entry(EventKind.RUN_CHILD_ENDED, {"child": str(row.pk), "state": row.state}))
        return StepChild(row.pk, row.type, row.child_key, RunState(row.state), row.ended_how or {}), ""
    if row.state in (RunState.PAUSING, RunState.PAUSED) and row.pause_scope == Scope.PARENT:
        _tell(row, EventKind.RUN_RESUMED, pause_moves.resume(row), {"by": "parent"})
    return None, _wait(s, [])


def cancel_all(s: Session) -> list[Run]:
    """Ask every living child to cancel as this run was asked. Returns those that have not ended."""
    how = {
        "cancel_by_id": s.run["cancel_by_id"],
        "cancel_reason": s.run["cancel_reason"],
        "cancel_scope": Scope.PARENT,
        "cancel_at_once": bool(s.run["cancel_at_once"]),
    }
    for child in lineage.alive(s.id):
        if child.state == RunState.COMPENSATING or (child.state == RunState.CANCELLING and not _sooner(child, how)):
            # What is being mended is mended to its end.
            continue
        changes = [
            record.run_moves(
                {**how, "state": RunState.CANCELLING},
                prior=[child.state],
                times={"cancel_asked_at": 0, "wake_at": 0},
            ),
            record.close_reviews(child.pk),
        ]
        _tell(child, EventKind.RUN_CANCEL_ASKED, changes, {"scope": Scope.PARENT, "at_once": how["cancel_at_once"]})
    return lineage.alive(s.id)


def pause_all(s: Session) -> list[Run]:
    """Ask every living child to pause with this run. Returns those that still move."""
    asked = {
        "pause_by_id": s.run["pause_by_id"],
        "pause_reason": s.run["pause_reason"],
        "pause_scope": Scope.PARENT,
    }
    for child in lineage.alive(s.id):
        if child.state in pause_moves.PAUSABLE:
            changes = [pause_moves.pause(asked, prior=child.state)]
            _tell(child, EventKind.RUN_PAUSE_ASKED, changes, {"scope": Scope.PARENT})
    return [child for child in lineage.alive(s.id) if child.state in lineage.MOVING]


def _wait(s: Session, entries: list[Entry]) -> str:
    return finish.wait(s, WaitingOn.CHILD, wake_at=None, entries=entries, checkpoint=bool(entries or s.buffer))


def _deadline(s: Session, run_type: RunType) -> datetime | None:
    """The parent's deadline, or the type's own where that is earlier: a child outlives nothing it was started for."""
    own = run_type.contract.ownership.deadline
    given = [t for t in (s.deadline, None if own is None else s.watch.now() + own) if t is not None]
    return min(given, default=None)


def _same(known: Run, transition: Start) -> None:
    """Refuse another child under a key that is taken (invariant 3). Raises KeyMismatch."""
    same = known.type == transition.run_type
    if same:
        accepted = Event.objects.get(run_id=known.pk, seq=1).data
        run_type = registry.run_type(known.type, known.type_version)
        with tokens.within(known.workspace_id):
            same = accepted["input"] == canonical.digest(run_type.dump(run_type.load(transition.input)))
    if not same:
        raise KeyMismatch(
            f"the key {transition.key} already names another child", key=transition.key, run=str(known.pk)
        )


def _sooner(child: Run, how: Mapping[str, Any]) -> bool:
    return bool(how["cancel_at_once"]) and not child.cancel_at_once


def _tell(child: Run, kind: EventKind, changes: list[Change], data: Mapping[str, Any]) -> None:
    """Commit a request of the child's own. Who was first decides; a child that moved is looked at again later."""
    told = {**data, "parent": str(child.parent_id)}
    try:
        with failpoints.committing("tell"):
            record.commit(Commit(child.workspace_id, child.pk, [Entry(kind, told, changes)]))
    except LostRace:
        return
