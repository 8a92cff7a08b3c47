"""What a checkpoint holds: everything another process needs to go on safely, and nothing that lives elsewhere.

Effects and approvals are referred to by id, state and version; the run's data lives only here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from recovery import failpoints
from recovery.contract import Fail, Finish
from recovery.engine import contents
from runs import record
from runs.checkpoints import codec, load, tiers
from runs.checkpoints.codec import Base
from runs.models import Effect

SETTLED_KEPT = 100
"""Settled effects that a checkpoint still names; older ones are in the record."""

SHOWN_KEPT = 20
"""Pieces of evidence that steps were shown last; older ones are in the record."""


@dataclass(slots=True)
class Pending:
    """An open Perform: its effects in the order asked, the step that gets the outcome, the steps that get signals."""

    effects: list[UUID]
    then: str
    on: dict[str, str]
    many: bool


@dataclass(slots=True)
class Waiting:
    """A wait for a time, or for a signal until a time."""

    then: str
    until: datetime | None
    event: str | None


@dataclass(slots=True)
class Child:
    """A run that this one started and waits for, its key among this one's, the step that is told how it ended."""

    id: UUID
    key: str
    then: str


@dataclass(slots=True)
class Mending:
    """A step that asked to mend: which effects (None: all), the step that hears of it, the plan once there is one."""

    effects: list[UUID] | None
    then: str | None
    plan: UUID | None = None


@dataclass(slots=True)
class Computing:
    """A computation that the run waits for: its place among the run's, what was asked, who gets its output."""

    place: int
    operation: str
    version: int
    params: dict[str, Any]
    then: str


@dataclass(slots=True)
class Memory:
    """The run as its steps left it. ``step`` is what is called next when nothing is pending or waited for.

    ``spent``: what computations have used, by unit. ``evidence``: what steps were shown last.
    ``base``: the full checkpoint that the next one may be a delta of; ``coming``: the same once that one is committed.
    ``ending``: how a step said that it ends, while something sent is still open. ``owner``: the worker that wrote it,
    ``token``: its fencing token then. ``config``: the pinned versions that the data was written under. ``authority``:
    {effect: version of the authority's state as last seen}. ``unchecked``: why the checks are still to be made.
    ``context``: made anew at each going on, never stored.
    """

    data: dict[str, Any]
    step: str
    pending: Pending | None = None
    waiting: Waiting | None = None
    done: list[dict[str, Any]] = field(default_factory=list)
    settled: list[dict[str, Any]] = field(default_factory=list)
    code: str = ""
    owner: str = ""
    ending: Finish | Fail | None = None
    child: Child | None = None
    base: Base | None = None
    coming: Base | None = None
    spent: dict[str, int] = field(default_factory=dict)
    evidence: list[str] = field(default_factory=list)
    token: int = 0
    config: dict[str, str] = field(default_factory=dict)
    authority: dict[str, str] = field(default_factory=dict)
    unchecked: str = ""
    context: Any = None
    mending: Mending | None = None
    computing: Computing | None = None
    calls: int = 0

    def remember_spent(self, unit: str, amount: int) -> None:
        """Count what a computation has used."""
        self.spent[unit] = self.spent.get(unit, 0) + amount

    def remember_shown(self, evidence: Iterable[UUID]) -> None:
        """Note the evidence that a step was shown."""
        self.evidence.extend(str(id) for id in evidence)
        del self.evidence[:-SHOWN_KEPT]

    def remember_settled(self, effects: Iterable[Effect]) -> None:
        """Note effects whose outcome a step has seen."""
        for effect in effects:
            self.settled.append({"id": str(effect.pk), "state": effect.state, "version": effect.version})
        del self.settled[:-SETTLED_KEPT]


def seal(
    run: Mapping[str, Any],
    memory: Memory,
    why: str,
    effects: Iterable[Mapping[str, Any]] = (),
    *,
    to: Mapping[str, Any] | None = None,
) -> record.Sealed:
    """The next checkpoint of ``run`` (its row). ``effects``: open ones, as ``contents.open_effects`` gives them.
    ``to``: what its commit makes of the run.

    Raises codec.Unserialisable with the field's path before anything is written.
    """
    failpoints.hit("checkpoint.before_seal")
    seq = int(run["checkpoint_seq"]) + 1
    opened = list(effects)
    content = {
        **contents.who(run),
        "versions": contents.versions(run),
        "authority": memory.authority,
        "token": run["token"],
        "unchecked": memory.unchecked,
        "deadline": contents.text(run["deadline"]),
        "tries": run["tries"],
        "budgets": contents.limits(run, memory.spent),
        "cancel": contents.cancelling(run),
        "data": memory.data,
        "step": memory.step,
        "pending": _pending(memory.pending),
        "waiting": _waiting(memory.waiting),
        "ending": _ending(memory.ending),
        "child": _child(memory.child),
        "mending": _mending(memory.mending),
        "computing": None if memory.computing is None else asdict(memory.computing),
        "calls": memory.calls,
        "done": memory.done,
        "settled": memory.settled,
        "open": opened,
        "unknown": [one["id"] for one in opened if one["state"] in ("unknown", "disputed")],
        "evidence": memory.evidence,
        "next": contents.going_on(run, to or {}, memory),
    }
    workspace, id = UUID(str(run["workspace_id"])), UUID(str(run["id"]))
    written = codec.write(content, workspace=workspace, run=id, seq=seq, base=memory.base)
    memory.coming = written.next_base
    return record.Sealed(seq, why, codec.SCHEMA, written.blob, written.base, written.key)


def committed(run: UUID, memory: Memory, sealed: record.Sealed, *, leaving: bool) -> None:
    """``sealed`` is in the record: only now may the next one be a delta of it. ``leaving``: the run is released."""
    memory.base = memory.coming
    tiers.newest(run, sealed.blob, leaving=leaving)


def restore(run: Mapping[str, Any]) -> tuple[load.Restored, Memory]:
    """The newest checkpoint of ``run``, opened. Raises Unreadable. A schema from the future gives an empty memory."""
    failpoints.hit("checkpoint.before_load")
    restored = load.at(UUID(str(run["workspace_id"])), UUID(str(run["id"])), int(run["checkpoint_seq"]))
    failpoints.hit("checkpoint.after_load")
    content = restored.content
    if not content:
        return restored, Memory({}, "")
    pending, waiting, child = content["pending"], content["waiting"], content.get("child")
    memory = Memory(
        data=content["data"],
        step=content["step"],
        pending=pending
        and Pending([UUID(id) for id in pending["effects"]], pending["then"], pending["on"], pending["many"]),
        waiting=waiting
        and Waiting(
            waiting["then"],
            datetime.fromisoformat(waiting["until"]) if waiting["until"] else None,
            waiting["event"],
        ),
        done=content["done"],
        settled=content["settled"],
        code=content["versions"]["code"],
        owner=content.get("worker") or "",
        ending=_end_of(content.get("ending")),
        child=child and Child(UUID(child["id"]), child["key"], child["then"]),
        base=restored.base,
        spent=content.get("budgets", {}).get("spent", {}),
        evidence=content.get("evidence", []),
        token=int(content.get("token") or 0),
        config=content["versions"].get("config") or {},
        authority=content.get("authority") or {},
        unchecked=content.get("unchecked") or "",
        mending=_mending_of(content.get("mending")),
        computing=Computing(**content["computing"]) if content.get("computing") else None,
        calls=content.get("calls", 0),
    )
    return restored, memory


def _pending(pending: Pending | None) -> dict[str, Any] | None:
    if pending is None:
        return None
    return {
        "effects": [str(id) for id in pending.effects],
        "then": pending.then,
        "on": pending.on,
        "many": pending.many,
    }


def _waiting(waiting: Waiting | None) -> dict[str, Any] | None:
    if waiting is None:
        return None
    return {
        "then": waiting.then,
        "until": waiting.until.isoformat() if waiting.until else None,
        "event": waiting.event,
    }


def _child(child: Child | None) -> dict[str, Any] | None:
    return None if child is None else {"id": str(child.id), "key": child.key, "then": child.then}


def _mending(mending: Mending | None) -> dict[str, Any] | None:
    if mending is None:
        return None
    effects = None if mending.effects is None else [str(id) for id in mending.effects]
    return {"effects": effects, "then": mending.then, "plan": contents.text(mending.plan)}


def _mending_of(stored: Mapping[str, Any] | None) -> Mending | None:
    if stored is None:
        return None
    effects = None if stored["effects"] is None else [UUID(id) for id in stored["effects"]]
    return Mending(effects, stored["then"], UUID(stored["plan"]) if stored["plan"] else None)


def _ending(ending: Finish | Fail | None) -> dict[str, Any] | None:
    if ending is None:
        return None
    verified = [str(id) for id in ending.verified] if isinstance(ending, Finish) else None
    # As the event of the end would write them.
    facts = json.loads(json.dumps(ending.facts, default=str))
    return {"reason": ending.reason, "facts": facts, "verified": verified}


def _end_of(stored: Mapping[str, Any] | None) -> Finish | Fail | None:
    if stored is None:
        return None
    if stored["verified"] is None:
        return Fail(stored["reason"], **stored["facts"])
    return Finish(verified=[UUID(id) for id in stored["verified"]], reason=stored["reason"], **stored["facts"])
