"""Before a run that was away goes on: the version it goes on with, the nine checks, and a person where they ask.

What a person answers is bound to the digest of what was found, and counts for the checkpoint at which it was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from recovery import failpoints
from recovery.contract import registry
from recovery.contract.pins import OnChange
from recovery.contract.runs import RunType
from recovery.engine import checks, finish, intents, migrating, pause_moves, workers
from recovery.engine.changes import open_review, reason
from recovery.engine.checks import Report
from recovery.engine.session import Session
from runs import record
from runs.checkpoints import codec
from runs.checkpoints.load import Restored
from runs.models import Effect
from runs.record import Change, Entry
from runs.states import EFFECT_BLOCKS_END, EffectState, EventKind, ReviewKind, RunState, WaitingOn

ASK_AGAIN: Final = timedelta(seconds=30)
"""Until an authority that did not answer is asked again."""

LOOK_AGAIN: Final = timedelta(minutes=5)
"""Until a run whose effects are settled first is looked at again, if none of them has woken it before."""


@dataclass(frozen=True, slots=True)
class Missing:
    """This code does not know what the run needs; it is left as it is for a worker that does."""

    code: str
    facts: dict[str, Any] = field(default_factory=dict)


def run_type_of(s: Session, restored: Restored) -> RunType | Missing | str:
    """The run type that the run goes on with, moved to it where that is declared (check 1).

    Missing: nothing is touched. A text: the run stops here, and why. Never moves to an older version.
    """
    if restored.schema > codec.SCHEMA:
        return Missing("from_future", {"schema": restored.schema})
    name, version = s.run["type"], int(s.run["type_version"])
    newest, known = registry.find_run_type(name), registry.find_run_type(name, version)
    if newest is not None and newest.version > version and version in newest.contract.pins.migrates_from:
        rule = newest.contract.pins.on_change("workflow")
        said = _may_move(s.run, newest.version)
        pinned = "workflow" in newest.contract.pins.parts and rule == OnChange.PIN
        if (known is None and not pinned and rule != OnChange.ASK) or rule == OnChange.MIGRATE or said:
            return _migrate(s, newest, version)
        if known is None and rule == OnChange.ASK:
            return ask(s, newest, newer_report(version, newest.version), newer=newest.version)
    if known is None:
        return Missing("unknown_run_type", {"type": name, "version": version})
    if migrating.schema_of(s.memory, known) > known.contract.state_schema.version:
        return Missing("from_future", {"schema": migrating.schema_of(s.memory, known)})
    return _migrate(s, known, None)


def newer_report(kept: int, now: int) -> Report:
    """What is asked where a newer version takes the run over and its author wants a person to say when."""
    report = Report(verdict="escalate")
    report.add(6, checks.PERSON, newer=now, kept=kept)
    return report


def _migrate(s: Session, run_type: RunType, older: int | None) -> RunType | str:
    """The run in ``run_type``, committed by itself. ``older``: its type version; None: only its data may be older."""
    try:
        moved = migrating.data_to(run_type, s.memory) if older is None else migrating.run_to(run_type, older, s.memory)
    except migrating.NoPath as error:
        return finish.quarantine(s, reason("no_migration", **error.facts))
    except migrating.PathBroke as error:
        return finish.quarantine(s, reason("migration_broke", **error.facts), evidence=error.evidence)
    if moved is None:
        return run_type
    s.memory = moved.memory
    # Until the checks have passed on it, whoever takes the run next has to make them.
    s.memory.unchecked = "migrated"
    row = moved_row(s.run, run_type)
    s.run.update(row)
    with failpoints.committing("migrate"):
        entry = Entry(EventKind.RUN_MIGRATED, {**moved.facts, "digest": run_type.digest}, [])
        s.commit([entry], run=row, why="migrated")
    return run_type


def moved_row(run: Mapping[str, Any], run_type: RunType) -> dict[str, Any]:
    """The run's columns once it is one of ``run_type``. Its other pins stay: check 6 looks at them, and at a contract
    that was changed under the same version.
    """
    fixed = {name: run_type.config[name] for name in ("workflow", "schema")}
    row: dict[str, Any] = {"config": {**run["config"], **fixed}}
    if int(run["type_version"]) != run_type.version:
        row |= {"type_version": run_type.version, "contract_digest": run_type.digest}
    return row


def check(s: Session, run_type: RunType, restored: Restored) -> str:
    """Check a run that was away. Returns why it stops here, or an empty text to go on (invariant 13)."""
    now = s.watch.now()
    fresh_for = run_type.contract.lease.fresh_for.total_seconds()
    waited = (now - restored.at).total_seconds()
    code, epoch = workers.code_version(), s.me.epoch
    why = checks.away(s.run, s.memory, code=code, epoch=epoch, fresh_for=fresh_for, waited=waited)
    if pause_moves.lifted_since(s.run, restored.at):
        why = "paused"
    if not why:
        return ""
    effects = list(Effect.objects.filter(run_id=s.run["id"]).order_by("ordinal"))
    only_hands = why in ("other_owner", "other_code") and waited <= fresh_for
    report = checks.nine(s.run, restored, s.memory, run_type, effects, now, ask=not only_hands)
    let_on = bool(report.findings()) and told(s.run, report.digest)
    if let_on and report.verdict in ("escalate", "replan"):
        report.let_on(str(s.run["answered"]["by"]))
    # Asked again or not any more: what an earlier look asked of a person is answered by this one.
    asked = [] if report.verdict == "escalate" else [record.close_reviews(s.id, [ReviewKind.RESUMPTION])]
    said = Entry(EventKind.RUN_CHECKED, {"why": why, **report.as_json()}, asked)
    s.buffer.append(said)
    if report.verdict == "escalate":
        return ask(s, run_type, report, newer=report.fit.newer if report.fit is not None else None)
    if report.verdict == "quarantine":
        return finish.quarantine(s, reason("context_broke", **_line(report, 8)), evidence=report.evidence)
    if report.verdict == "wait":
        return _wait_for_authority(s, report)
    if report.verdict == "settle_first" and _would_be_heard(s, effects):
        # Its step would hear of one that went wrong while nobody knows of another: that one first.
        open_now = [e for e in effects if e.state in EFFECT_BLOCKS_END]
        return _wait(s, finish.waits_for(open_now), LOOK_AGAIN)
    _go_on(s, run_type, report, said, let_on=let_on)
    return ""


def _go_on(s: Session, run_type: RunType, report: Report, said: Entry, *, let_on: bool) -> None:
    """What the next commit keeps of checks that let the run go on."""
    s.memory.unchecked = ""
    s.memory.context = report.context
    if let_on or report.verdict == "replan":
        s.memory.authority |= report.authority
    if report.verdict == "replan":
        assert run_type.replan is not None
        s.memory.waiting, s.memory.step = None, run_type.replan
    changed: dict[str, Any] = {"gate": []} if s.run["gate"] else {}
    if report.fit is None or report.verdict == "end":
        return
    config = report.fit.config(s.run["config"], run_type.config, told=let_on)
    if config != s.run["config"]:
        changed["config"] = config
    if let_on and report.fit.contract is not None:
        changed["contract_digest"] = run_type.digest
    if changed:
        s.run.update(changed)
        said.changes = [*said.changes, record.run_moves(changed)]


def _would_be_heard(s: Session, effects: list[Effect]) -> bool:
    """Whether the next step would be called although something of its Perform is still open."""
    if s.memory.pending is None:
        return False
    mine = [e for e in effects if e.pk in s.memory.pending.effects]
    return any((e.settled or e.state == EffectState.PARTIAL) and e.state != EffectState.SUCCEEDED for e in mine)


def _wait_for_authority(s: Session, report: Report) -> str:
    again = s.watch.now() + ASK_AGAIN
    why = reason("authority_silent", dependencies=", ".join(_line(report, 3)["silent"]), at=again.isoformat())
    return _wait(s, WaitingOn.DEPENDENCY, ASK_AGAIN, gate=[why])


def _wait(s: Session, on: WaitingOn, after: timedelta, *, gate: list[dict[str, Any]] | None = None) -> str:
    """Release the run as it is: its checkpoint still says who wrote it and when, so the checks are made again."""
    times = [s.watch.now() + after, *([s.deadline] if s.deadline is not None else [])]
    shown = {} if gate is None else {"gate": gate}
    s.commit(
        [Entry(EventKind.RUN_WAITED, {"on": on, "until": min(times), "event": ""})],
        run={
            "state": RunState.WAITING,
            "waiting_on": on,
            "wait_event": "",
            "lease_owner": None,
            "wake_at": min(times),
            "tries": 0,
            **shown,
        },
        checkpoint=False,
        soonest=True,
    )
    return f"waits: {on}"


def ask(s: Session, run_type: RunType, report: Report, *, newer: int | None = None) -> str:
    """The nine checks ask a person whether the run goes on. ``newer``: the version that it then goes on with."""
    names = [line["name"] for line in report.findings()]
    with_it = {} if newer is None else {"newer": newer}
    return ask_person(s, run_type, reason("checks_ask", checks=names, report=report.digest, **with_it))


def ask_person(s: Session, run_type: RunType, why: Mapping[str, Any]) -> str:
    """Release the run until a person says whether it goes on. ``why``: a reason whose facts have ``report``, the digest
    of what was found. The checkpoint stays as it is, so that whoever goes on finds what was found.
    """
    group = intents.group_id(s.workspace, run_type.contract.ownership.owner)
    review = open_review(
        ReviewKind.RESUMPTION, s.id, workspace=s.workspace, run=s.id, group=group, why=why, due_in=finish.DUE_IN
    )
    anew: list[Change] = [record.close_reviews(s.id, [ReviewKind.RESUMPTION])] if _other_question(s, why) else []
    waits = {
        "state": RunState.WAITING,
        "waiting_on": WaitingOn.PERSON,
        "lease_owner": None,
        "wake_at": s.deadline,
        "tries": 0,
        "gate": [dict(why)],
    }
    entry = Entry(EventKind.RUN_WAITED, {"on": WaitingOn.PERSON, **why}, [*anew, review])
    with failpoints.committing("ask"):
        s.commit([entry], run=waits, checkpoint=False)
    return "asks"


def _other_question(s: Session, why: Mapping[str, Any]) -> bool:
    """Whether what was asked before is not what is asked now: an answer is bound to what was read."""
    before: dict[str, Any] = next(iter(s.run["gate"] or []), {})
    return bool((before.get("facts") or {}).get("report") != why["facts"]["report"])


def told(run: Mapping[str, Any], report: str) -> bool:
    """Whether a person has let the run go on over exactly this, at this checkpoint."""
    answered = run["answered"] or {}
    return bool(
        answered.get("what") == "go_on"
        and report in answered.get("reports", ())
        and answered.get("checkpoint") == run["checkpoint_seq"]
    )


def _may_move(run: Mapping[str, Any], newer: int) -> bool:
    """Whether a person has let the run go on as one of version ``newer``, at this checkpoint."""
    answered = run["answered"] or {}
    return answered.get("checkpoint") == run["checkpoint_seq"] and answered.get("newer") == newer


def released(run: Mapping[str, Any]) -> bool:
    """Whether a person has taken the run out of quarantine at this checkpoint: what took it in is answered by that."""
    answered = run["answered"] or {}
    return bool(answered.get("what") == "released" and answered.get("checkpoint") == run["checkpoint_seq"])


def _line(report: Report, n: int) -> dict[str, Any]:
    return dict(next(line for line in report.lines if line["n"] == n)["facts"])
