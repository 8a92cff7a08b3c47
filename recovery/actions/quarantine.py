"""Taking a run out of quarantine: a person says why, and where it needs another one, with which version it goes on."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from recovery.actions.common import Done, Locked, Plan, carry_out, require_run, who
from recovery.actions.runs import refuse_ended, subject_of
from recovery.contract import registry
from recovery.contract.runs import RunType
from recovery.engine import memory, migrating
from recovery.engine.changes import reason as why_of
from recovery.engine.refusals import NotQuarantined, NoWay
from recovery.engine.resuming import moved_row
from runs import record
from runs.errors import StaleVersion
from runs.models import Person, Run
from runs.record import Act, Entry
from runs.states import EventKind, ReviewKind, RunState, WaitingOn


def release(
    run_id: UUID, *, actor: Person, act: Act, reason: str, version: int, type_version: int | None = None
) -> Done:
    """Take a run out of quarantine: it is due at once, its tries are counted anew, and the nine checks come first.

    ``version``: the run's as it was read. ``type_version``: the later version of its type with which it goes on, by
    that version's own path; None: as it is. Raises NotQuarantined, StaleVersion, NoWay where nothing leads there (never
    to an older version), UnknownRunType, Unreadable, ReasonNeeded, NotAllowed.
    """

    def plan(at: Locked) -> Plan:
        run = require_run(at)
        refuse_ended(run)
        if run.state != RunState.QUARANTINED:
            raise NotQuarantined(state=run.state)
        if run.version != version:
            raise StaleVersion(thing="run", id=str(run.pk), seen=version, now=run.version)
        entries: list[Entry] = []
        sealed = None
        seq = run.checkpoint_seq
        if type_version is not None and type_version != run.type_version:
            row = {field.attname: getattr(run, field.attname) for field in Run._meta.concrete_fields}
            moved, into = _move(row, type_version)
            columns = moved_row(row, into)
            row |= columns
            moved.memory.unchecked = "released"
            sealed = memory.seal(row, moved.memory, "migrated")
            seq = sealed.seq
            change = record.run_moves({**columns, "step": moved.memory.step})
            entries.append(Entry(EventKind.RUN_MIGRATED, {**moved.facts, "digest": into.digest}, [change]))
        answered = {"what": "released", "checkpoint": seq, "by": str(actor.pk), "at": at.now.isoformat()}
        out: dict[str, Any] = {
            "state": RunState.WAITING,
            # As before an answer: nothing of it is sent until the checks have passed (invariant 13).
            "waiting_on": WaitingOn.PERSON,
            "tries": 0,
            "gate": [why_of("released", by=actor.name)],
            "answered": answered,
        }
        changes = [
            record.run_moves(out, prior=[RunState.QUARANTINED], times={"wake_at": 0}),
            record.close_reviews(run.pk, [ReviewKind.QUARANTINED]),
        ]
        facts = {"run": str(run.pk), "by": who(actor), "held_for": run.gate, "type_version": type_version}
        entries.append(Entry(EventKind.RUN_RELEASED, facts, changes))
        return Plan(entries, facts, checkpoint=sealed)

    return carry_out(subject_of(run_id), "decide", plan, actor=actor, act=act, reason=reason)


def _move(row: dict[str, Any], type_version: int) -> tuple[migrating.Migrated, RunType]:
    into = registry.run_type(row["type"], type_version)
    older = int(row["type_version"])
    _restored, remembered = memory.restore(row)
    try:
        return migrating.run_to(into, older, remembered), into
    except (migrating.NoPath, migrating.PathBroke) as error:
        raise NoWay(str(error), **error.facts) from error
