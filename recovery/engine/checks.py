"""The nine checks before a run that was away goes on (DESIGN section 5, invariant 13).

Each gives a line of the report that is kept with the event. Check 6 (compatibility of model, prompt, interface,
workflow) and check 8 (bounded context) come with the runtimes that have models; the others are here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from recovery.contract.runs import RunType
from recovery.engine.memory import Memory
from runs import access
from runs.checkpoints import codec
from runs.checkpoints.load import Restored
from runs.models import Approval, Effect, Person, Signal
from runs.states import EFFECT_BLOCKS_END, ApprovalState

PASSED, FAILED, PERSON = "passed", "failed", "needs_person"


@dataclass(slots=True)
class Report:
    """What each check found; ``verdict`` is go_on, settle_first, escalate or end."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    verdict: str = "go_on"

    def add(self, n: int, name: str, result: str, **facts: Any) -> None:
        self.lines.append({"n": n, "name": name, "result": result, "facts": facts})

    def as_json(self) -> dict[str, Any]:
        return {"checks": self.lines, "verdict": self.verdict}


def away(run: Mapping[str, Any], memory: Memory, *, code: str, epoch: int, fresh_for: float, waited: float) -> str:
    """Why the run counts as away, or an empty text: other owner, other code or epoch, or a long wait (seconds)."""
    if memory.owner and memory.owner != str(run["lease_owner"]):
        return "other_owner"
    if memory.code != code:
        return "other_code"
    if int(run["token"]) >> 40 != epoch:
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
) -> Report:
    """Run the checks over what the record says now. Reads only."""
    report = Report()
    known = restored.schema == codec.SCHEMA
    report.add(1, "checkpoint_schema", PASSED if known else FAILED, schema=restored.schema, knows=codec.SCHEMA)
    report.add(2, "lease_and_token", PASSED, token=run["token"], tries=run["tries"])
    named = {UUID(str(line["id"])): line for line in memory.settled}
    moved = [str(e.pk) for e in effects if e.pk in named and named[e.pk]["state"] != e.state]
    # An outcome that a step already relied on and that changed since is not still valid.
    report.add(3, "authority_state", PERSON if moved else PASSED, reloaded=len(effects), changed=moved)
    blocking = [str(e.pk) for e in effects if e.state in EFFECT_BLOCKS_END]
    report.add(4, "in_flight_and_unknown", PASSED, to_settle=blocking)
    lost = _who_lost_rights(run, effects)
    report.add(5, "identity_and_approvals", PERSON if lost else PASSED, lost=lost)
    deadline = run["deadline"]
    over = deadline is not None and datetime.fromisoformat(str(deadline)) <= now
    signals = Signal.objects.filter(run_id=run["id"], consumed_at=None).count()
    report.add(
        7,
        "corrections_and_deadline",
        FAILED if over else PASSED,
        cancel_asked=run["cancel_asked_at"] is not None,
        deadline_over=over,
        signals=signals,
    )
    results = {line["result"] for line in report.lines}
    if over or run["cancel_asked_at"] is not None:
        report.verdict = "end"
    elif PERSON in results:
        report.verdict = "escalate"
    elif blocking:
        report.verdict = "settle_first"
    report.add(9, "decision", PASSED, verdict=report.verdict)
    return report


def _who_lost_rights(run: Mapping[str, Any], effects: Sequence[Effect]) -> list[str]:
    lost: list[str] = []
    starter = run["started_by_id"]
    if starter is not None:
        person = Person.objects.get(pk=starter)
        if not access.can(person, UUID(str(run["workspace_id"])), "start"):
            lost.append(person.name)
    granted = Approval.objects.filter(effect__in=[e.pk for e in effects], state=ApprovalState.GRANTED)
    for approval in granted.prefetch_related("signatures__person"):
        lost.extend(s.person.name for s in approval.signatures.all() if s.state == "signed" and not s.person.is_active)
    return lost
