"""The nine checks before a run that was away goes on (DESIGN section 5, invariant 13).

Each gives a line of the report, with what it found. They read the record, and ask the authority where a contract names
one; they change nothing. A report is bound by the digest of its findings: a person answers exactly these.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from recovery.contract import canonical
from recovery.contract.runs import Known, RunType
from recovery.engine import authority, compatibility, endings, rights
from recovery.engine.authority import Reread
from recovery.engine.compatibility import Fit
from recovery.engine.memory import Memory
from runs.checkpoints import codec
from runs.checkpoints.load import Restored
from runs.models import Effect, Event, Signal
from runs.states import EFFECT_BLOCKS_END, EFFECT_OPEN, EFFECT_SETTLED, EventKind

PASSED, FAILED, PERSON, WAITS = "passed", "failed", "needs_person", "waits"

NAMES: Final = {
    1: "checkpoint_schema",
    2: "lease_and_token",
    3: "authority_state",
    4: "in_flight_and_unknown",
    5: "identity_and_approvals",
    6: "compatibility",
    7: "corrections_and_deadline",
    8: "bounded_context",
    9: "decision",
}


@dataclass(slots=True)
class Report:
    """What each check found. ``verdict``: go_on, replan, settle_first, wait, escalate, end or quarantine.

    ``fit``: check 6 in full. ``context``: what check 8 made. ``authority``: versions of the authority's state as they
    are now, by effect. ``evidence``: the traceback where an author's function raised.
    """

    lines: list[dict[str, Any]] = field(default_factory=list)
    verdict: str = "go_on"
    fit: Fit | None = None
    context: Any = None
    authority: dict[str, str] = field(default_factory=dict)
    evidence: str = ""

    def add(self, n: int, result: str, **facts: Any) -> None:
        self.lines.append({"n": n, "name": NAMES[n], "result": result, "facts": facts})

    def results(self) -> set[str]:
        return {str(line["result"]) for line in self.lines}

    def findings(self) -> list[dict[str, Any]]:
        """What needs a person."""
        return [line for line in self.lines if line["result"] == PERSON]

    def let_on(self, by: str) -> None:
        """A person has let the run go on over the findings; what takes only time is waited for all the same."""
        if _line(self, 3)["facts"]["silent"]:
            self.verdict = "wait"
        else:
            self.verdict = "settle_first" if _line(self, 4)["facts"]["to_settle"] else "go_on"
        _line(self, 9)["facts"] = {"verdict": self.verdict, "answered_by": by}

    @property
    def digest(self) -> str:
        """What an answer of a person is bound to: the findings alone, so that time by itself changes nothing."""
        return canonical.digest([{"name": line["name"], "facts": line["facts"]} for line in self.findings()])

    def as_json(self) -> dict[str, Any]:
        return {"checks": self.lines, "verdict": self.verdict, "report": self.digest}


def away(run: Mapping[str, Any], memory: Memory, *, code: str, epoch: int, fresh_for: float, waited: float) -> str:
    """Why the run counts as away, or an empty text: checks begun and not passed, a person's answer at this checkpoint,
    another owner, other code or epoch, or a long wait (seconds).
    """
    if memory.unchecked:
        return memory.unchecked
    answered = run["answered"] or {}
    if answered.get("checkpoint") == run["checkpoint_seq"]:
        return str(answered["what"])
    if memory.owner and memory.owner != str(run["lease_owner"]):
        return "other_owner"
    if memory.code != code:
        return "other_code"
    if memory.token and memory.token >> 40 != epoch:
        return "other_epoch"
    if waited > fresh_for:
        return "long_wait"
    return ""


def nine(
    run: Mapping[str, Any],
    restored: Restored,
    memory: Memory,
    run_type: RunType,
    effects: Sequence[Effect],
    now: datetime,
    *,
    ask: bool = True,
) -> Report:
    """Make the checks over what record, code and authority say now. No transaction may be open: check 3 calls out.

    ``ask``: whether the authority is asked again; a run that only changed hands a moment ago need not.
    """
    report = Report()
    schema = run_type.contract.state_schema.version
    report.add(1, PASSED, schema=restored.schema, knows=codec.SCHEMA, data=memory.config.get("schema"), takes=schema)
    report.add(2, PASSED, token=run["token"], tries=run["tries"], owner=_text(run["lease_owner"]))
    _authority(report, memory, effects, ask=ask)
    blocking = [str(e.pk) for e in effects if e.state in EFFECT_BLOCKS_END]
    report.add(4, PASSED, to_settle=blocking)
    lost = rights.lost(run_type.contract.revalidation, run, effects)
    looked = [name for name in rights.LOOKS if name in run_type.contract.revalidation]
    report.add(5, PERSON if lost else PASSED, lost=lost, looked=looked)
    report.fit = compatibility.fit(run, run_type, effects)
    report.add(6, PERSON if report.fit.asks else PASSED, **report.fit.facts())
    over = _newer(report, run, restored, now)
    _context(report, memory, run_type, effects, run)
    _decide(report, run, memory, run_type, over=over, blocking=bool(blocking))
    return report


def _authority(report: Report, memory: Memory, effects: Sequence[Effect], *, ask: bool) -> None:
    named = {UUID(str(line["id"])): line for line in memory.settled}
    moved = [str(e.pk) for e in effects if e.pk in named and named[e.pk]["state"] != e.state]
    # An outcome that a step already relied on and that changed since is not still valid.
    relied = [e for e in effects if e.pk in named and str(e.pk) not in moved]
    asked: list[Reread] = authority.reread(relied, memory.authority) if ask else []
    report.authority = {str(one.effect): one.now for one in asked if one.now is not None}
    stale = [one for one in asked if one.valid is False]
    silent = sorted({one.dependency for one in asked if one.valid is None})
    result = PERSON if moved or stale else WAITS if silent else PASSED
    still_valid = [one.as_json() for one in asked]
    report.add(3, result, reloaded=len(effects), changed=moved, still_valid=still_valid, silent=silent)


def _newer(report: Report, run: Mapping[str, Any], restored: Restored, now: datetime) -> bool:
    deadline = run["deadline"]
    over = deadline is not None and datetime.fromisoformat(str(deadline)) <= now
    names = Signal.objects.filter(run_id=run["id"], consumed_at=None).order_by("id").values_list("name", flat=True)
    corrected = Event.objects.filter(run_id=run["id"], kind=EventKind.RUN_CORRECTED, at__gt=restored.at).count()
    report.add(
        7,
        FAILED if over else PASSED,
        cancel_asked=run["cancel_asked_at"] is not None,
        deadline_over=over,
        signals=list(names[:20]),
        corrections=corrected,
    )
    return over


def _context(
    report: Report, memory: Memory, run_type: RunType, effects: Sequence[Effect], run: Mapping[str, Any]
) -> None:
    if type(run_type).context is RunType.context:
        report.add(8, PASSED, bytes=0, limit=run_type.context_bytes)
        return
    settled = [e for e in effects if e.state in EFFECT_SETTLED]
    still = [{"operation": e.operation, "key": e.key, "state": str(e.state)} for e in effects if e.state in EFFECT_OPEN]
    known = Known(
        settled=tuple(endings.step_outcomes(settled)),
        open=tuple(still),
        signals=tuple(_line(report, 7)["facts"]["signals"]),
        done=tuple(str(one["step"]) for one in memory.done),
    )
    # The author's own function; what it raises is told as theirs, and nothing goes on over it.
    try:
        made = run_type.context(run_type.load(memory.data), known)
        size = 0 if made is None else len(canonical.dumps(made))
    except Exception as error:
        report.evidence = "".join(traceback.format_exception(error))
        report.add(8, FAILED, said=str(error)[:1000])
        return
    limit = run_type.context_bytes
    report.context = made if size <= limit else None
    facts: dict[str, Any] = {"bytes": size, "limit": limit}
    if made is not None and size <= limit:
        facts["digest"] = canonical.digest(made)
    report.add(8, PASSED if size <= limit else PERSON, **facts)


def _decide(
    report: Report, run: Mapping[str, Any], memory: Memory, run_type: RunType, *, over: bool, blocking: bool
) -> None:
    found = report.findings()
    if over or run["cancel_asked_at"] is not None:
        report.verdict = "end"
    elif report.evidence:
        report.verdict = "quarantine"
    elif found and _replans(found, memory, run_type):
        report.verdict = "replan"
    elif found:
        report.verdict = "escalate"
    elif WAITS in report.results():
        report.verdict = "wait"
    elif blocking:
        report.verdict = "settle_first"
    report.add(9, PASSED, verdict=report.verdict)


def _replans(found: Sequence[Mapping[str, Any]], memory: Memory, run_type: RunType) -> bool:
    """Only the authority's state has moved on, its author has a step for that, and nothing of the run is open."""
    if run_type.replan is None or memory.pending or memory.computing or memory.ending:
        return False
    if [line["n"] for line in found] != [3] or found[0]["facts"]["changed"]:
        return False
    stale = [one for one in found[0]["facts"]["still_valid"] if one["valid"] is False]
    return all(one["claim"] == "happened" and one["then"] != one["now"] for one in stale)


def _line(report: Report, n: int) -> dict[str, Any]:
    return next(line for line in report.lines if line["n"] == n)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
