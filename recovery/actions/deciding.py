"""What the actions on verdicts share: may it be decided, what does it rest on, what becomes of the effect."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from recovery.actions.common import changed_since, who
from recovery.actions.seconds import require_second, second_people
from recovery.contract import canonical, registry
from recovery.engine import plans
from recovery.engine.changes import is_high, open_review, settle_effect
from recovery.engine.changes import reason as why_of
from recovery.engine.endings import told_of, twin
from recovery.engine.refusals import DecisionWaiting, ItemUnknown
from recovery.engine.verdicts import BECOMES, DECIDABLE, SAID, Weight
from runs.errors import EvidenceNeeded, NotUnknown, StaleVersion
from runs.models import Effect, Evidence, Person, Run, Verdict
from runs.models.base import new_id
from runs.record import Change, Entry, move, new
from runs.states import (
    Claim,
    EventKind,
    EvidenceKind,
    ReviewKind,
    Strength,
    VerdictSays,
    VerdictState,
)

MAY_CONFIRM = ("confirm", "decide")
"""Permissions of which a second person needs one."""

_KNOWN_ITEM = frozenset({VerdictSays.HAPPENED, VerdictSays.DID_NOT_HAPPEN})


def told(effect: Effect, verdict: Mapping[str, Any]) -> dict[str, Any]:
    """What an event and a result say of a decision."""
    return {
        **told_of(effect),
        "verdict": str(verdict["id"]),
        "says": str(verdict["says"]),
        "digest": verdict["digest"],
        "evidence": [str(one) for one in verdict["evidence"]],
    }


def refuse_unless_decidable(effect: Effect, version: int, *, proposed: UUID | None = None) -> None:
    """Refuse what is settled, changed since ``version``, or waits for a second person.

    ``proposed``: the proposal that is being confirmed. Raises NotUnknown, DecisionWaiting, StaleVersion.
    """
    if effect.state not in DECIDABLE:
        decided = _last_recorded(effect)
        raise NotUnknown(
            effect=str(effect.pk),
            state=str(effect.state),
            at=None if effect.settled_at is None else effect.settled_at.isoformat(),
            who=None if decided is None else decided.person.name,
            says=None if decided is None else str(decided.says),
        )
    if proposed is None:
        waiting = Verdict.objects.filter(effect_id=effect.pk, state=VerdictState.PROPOSED).select_related("person")
        other = waiting.first()
        if other is not None and effect.version == version:
            # Read with the proposal in view; without it the page is only stale, and says what came.
            raise DecisionWaiting(
                verdict=str(other.pk), says=str(other.says), at=other.at.isoformat(), who=other.person.name
            )
    if effect.version != version:
        raise StaleVersion(**changed_since(effect, version))


def _last_recorded(effect: Effect) -> Verdict | None:
    rows = Verdict.objects.filter(effect_id=effect.pk, state=VerdictState.RECORDED).select_related("person")
    return rows.order_by("-id").first()


def refuse_unless_second(verdict: Verdict, person: Person, *, taking_back: bool) -> None:
    """Refuse a second person who may not answer; whoever proposed may take it back. Raises SamePerson, NotAllowed."""
    if not (taking_back and person.pk == verdict.person_id):
        require_second(verdict.workspace_id, person, verdict.person, MAY_CONFIRM)


def who_may_confirm(verdict: Verdict) -> list[str]:
    """Names of people who could give the second answer."""
    return second_people(verdict.workspace_id, verdict.person, MAY_CONFIRM)


def already(verdict: Verdict) -> dict[str, Any]:
    """Facts of a decision that has its second answer already."""
    by = verdict.confirmed_by or verdict.person
    return {
        "what": str(verdict.state),
        "at": (verdict.confirmed_at or verdict.at).isoformat(),
        "who": by.name,
        "verdict": str(verdict.pk),
    }


def ticked_of(
    effect: Effect,
    evidence: Sequence[UUID],
    *,
    said: VerdictSays,
    statement: str,
    items: Mapping[str, str] | None,
) -> list[Evidence]:
    """The ticked evidence, oldest first.

    Raises EvidenceNeeded for none at all or one that is not this effect's,

    ItemUnknown for an item without a clear word.
    """
    rows = list(Evidence.objects.filter(effect_id=effect.pk, pk__in=list(evidence)).order_by("id"))
    foreign = set(evidence) - {one.pk for one in rows}
    if foreign:
        raise EvidenceNeeded("this evidence is not about this effect", unknown=sorted(map(str, foreign)))
    if not rows and not statement.strip():
        raise EvidenceNeeded(dependency=effect.dependency.name)
    if items is not None and said != VerdictSays.IN_PART:
        raise ItemUnknown("only a decision that it happened in part names items", says=str(said))
    unclear = sorted(name for name, word in (items or {}).items() if word not in _KNOWN_ITEM)
    if unclear:
        raise ItemUnknown(items=unclear)
    return rows


def statement_of(
    effect: Effect, person: Person, said: VerdictSays, statement: str, items: Mapping[str, str] | None
) -> tuple[Change, UUID]:
    """A person's word as evidence of its own, and its id. Items of "in part" are kept with it."""
    id, raw = new_id(), statement.strip()
    row = {
        "id": id,
        "workspace_id": effect.workspace_id,
        "run_id": effect.run_id,
        "effect_id": effect.pk,
        "kind": EvidenceKind.STATEMENT,
        "strength": Strength.WORD,
        "claim": Claim(SAID[said]),
        "detail": {"items": dict(items)} if items else {},
        "raw": raw,
        "digest": canonical.digest({"items": dict(items or {}), "statement": raw})
        if items
        else hashlib.sha256(raw.encode()).hexdigest(),
        "person_id": person.pk,
    }
    return new("evidence", row, {"observed_at": 0, "received_at": 0}), id


def result_of(
    said: VerdictSays, rests_on: Sequence[Evidence], items: Mapping[str, str] | None
) -> dict[str, Any] | None:
    """What the step receives: the record that the newest ticked machine evidence shows, or that a person said
    so.
    """
    if said == VerdictSays.DID_NOT_HAPPEN:
        return None
    if said == VerdictSays.IN_PART and items:
        return {"items": dict(items)}
    for one in reversed(rests_on):
        seen = one.detail.get("item") or one.detail.get("result")
        if one.kind != EvidenceKind.STATEMENT and one.claim == SAID[said] and seen:
            return dict(seen)
    return {"statement": True}


def propose(effect: Effect, verdict: Mapping[str, Any], person: Person, weight: Weight, version: int) -> list[Change]:
    """The changes of a proposal: the effect stays as it is, with a new version, and a second person is asked
    for.
    """
    contract = registry.effect_contract(effect.operation, effect.contract_version)
    why = why_of(
        "decision_proposed",
        describe=effect.describe,
        stake=effect.stake,
        says=str(verdict["says"]),
        who=person.name,
        rests_on=weight.code,
    )
    return [
        move("effect", effect.pk, (effect.state,), {}, version=version, bump=True),
        open_review(
            ReviewKind.CONFIRM_DECISION,
            verdict["id"],
            workspace=effect.workspace_id,
            run=effect.run_id,
            effect=effect.pk,
            verdict=verdict["id"],
            group=effect.group_id,
            high=is_high(effect),
            why=why,
            due_in=contract.due_in.total_seconds(),
        ),
    ]


def settle(
    effect: Effect,
    verdict: Mapping[str, Any],
    result: dict[str, Any] | None,
    *,
    by: Person,
    second: Person | None,
) -> Entry:
    """The entry by which a recorded decision settles its effect, guarded by the effect's version as read."""
    state = BECOMES[verdict["says"]]
    why = why_of(
        "decided",
        says=str(verdict["says"]),
        who=by.name,
        second=None if second is None else second.name,
        verdict=str(verdict["id"]),
        evidence=[str(one) for one in verdict["evidence"]],
    )
    changes = settle_effect(effect, state, why, result=result, prior=tuple(DECIDABLE), version=effect.version)
    data = {**told_of(effect), "state": str(state), **why, "by": who(by)}
    return Entry(EventKind.EFFECT_SETTLED, data, changes)


def late(run: Run, effect: Effect, said: VerdictSays, result: dict[str, Any] | None, now: datetime) -> list[Entry]:
    """What to record beside a decision about an ended run: a draft that proposes to mend what did happen after all."""
    after = twin(effect)
    after.state, after.result, after.settled_at = BECOMES[said], result, now
    return plans.late(run.state, after, now)
