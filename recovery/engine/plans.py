"""Compensation plans in the record: made, begun, changed. Each is a change of the run that is mended.

A plan and the run that carries it out are two runs' rows, and a transaction locks one run. So the decision to begin
comes first, with the id that the other run will have; :mod:`recovery.engine.mending_runs` accepts that run under this
id, as often as it is asked to, and the sweep asks again after a crash in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from recovery.contract.mending import LeftOut, PlanItem
from recovery.engine import approvals, compensate
from recovery.engine.changes import reason
from runs import record
from runs.models import Effect, Plan
from runs.models.base import new_id
from runs.models.plan import PLAN_OVER
from runs.record import Change, Entry
from runs.states import (
    EFFECT_FREES_KEY,
    EffectState,
    EventKind,
    PlanState,
    ReviewKind,
    RunState,
)

MAY_BEGIN: Final = (PlanState.DRAFT, PlanState.INCOMPLETE, PlanState.FAILED)
"""States of a plan that a person may begin, or begin again with what is left."""

LATE: Final = frozenset(
    {
        RunState.CANCELLED,
        RunState.EXPIRED,
        RunState.FAILED,
        RunState.ABORTED,
        RunState.COMPENSATED,
        RunState.COMPLETED_UNRESOLVED,
    }
)
"""Ends of a run after which something that turns out to have happened is not what it wanted."""


@dataclass(frozen=True, slots=True)
class Made:
    """A plan and the entries that record it; ``begun``: the run that will carry it out, if it was begun with it."""

    id: UUID
    items: list[PlanItem]
    digest: str
    entries: list[Entry]

    @property
    def active(self) -> list[PlanItem]:
        """What it mends."""
        return [item for item in self.items if item.active]


def items_of(plan: Plan) -> list[PlanItem]:
    """The plan's items, in order."""
    return [PlanItem.model_validate(item) for item in plan.items]


def open_plan(run: UUID) -> Plan | None:
    """The plan of ``run`` that is not over, if there is one; the database admits one."""
    return Plan.objects.filter(run_id=run).exclude(state__in=PLAN_OVER).first()


def busy(effects: Iterable[UUID]) -> set[UUID]:
    """Those of ``effects`` that have a compensation which is open or happened: none is asked for twice."""
    mending = Effect.objects.filter(mends_id__in=list(effects)).exclude(state__in=EFFECT_FREES_KEY)
    return {id for id in mending.values_list("mends_id", flat=True) if id is not None}


def look(
    effects: Sequence[Effect],
    *,
    now: datetime,
    only: Collection[UUID] | None = None,
    kept: Mapping[UUID, LeftOut] | None = None,
) -> list[PlanItem]:
    """The items that a plan over ``effects`` (of one run) has now. Reads only: also what a preview shows."""
    happened = [e for e in effects if e.state in compensate.HAPPENED]
    signed = {e.pk for e in happened if approvals.signed_beforehand(e)}
    found = busy(e.pk for e in happened)
    return compensate.compose(effects, now=now, only=only, busy=found, kept=kept, approved=signed)


def make(
    workspace: UUID,
    run: UUID,
    effects: Sequence[Effect],
    *,
    now: datetime,
    why: Mapping[str, Any],
    by: UUID | None = None,
    only: Collection[UUID] | None = None,
    plan: Plan | None = None,
) -> Made:
    """A new draft over ``effects``, or ``plan`` (which must be one that may be begun) looked at anew."""
    if plan is not None:
        return _anew(plan, effects, now=now, why=why, by=by, only=only)
    id = new_id()
    items = look(effects, now=now, only=only)
    digest = compensate.plan_digest(id, 1, items)
    row = {
        "id": id,
        "workspace_id": workspace,
        "run_id": run,
        "state": PlanState.DRAFT,
        "digest": digest,
        "items": [item.model_dump(mode="json") for item in items],
        "why": dict(why),
        "stays": compensate.stays(items, [item.effect for item in items if item.active]),
        "editors": [] if by is None else [by],
        "made_by_id": by,
    }
    entry = Entry(EventKind.PLAN_MADE, told(id, items, why), [record.new("plan", row, {"made_at": 0})])
    return Made(id, items, digest, [entry])


def _anew(
    plan: Plan,
    effects: Sequence[Effect],
    *,
    now: datetime,
    why: Mapping[str, Any],
    by: UUID | None,
    only: Collection[UUID] | None,
) -> Made:
    old = items_of(plan)
    kept = {i.effect: i.left_out for i in old if i.left_out is not None and i.left_out.code == "by_person"}
    states = {e.pk: e.state for e in effects}
    mended = [i for i in old if states.get(i.effect) == EffectState.COMPENSATED]
    knew = {i.effect: i.knew for i in old if i.knew is not None}
    fresh = [
        i.model_copy(update={"knew": knew.get(i.effect, i.knew)}) for i in look(effects, now=now, only=only, kept=kept)
    ]
    items = [i.model_copy(update={"n": n}) for n, i in enumerate([*mended, *fresh], 1)]
    return changed(plan, items, why=why, by=by)


def changed(plan: Plan, items: Sequence[PlanItem], *, why: Mapping[str, Any], by: UUID | None) -> Made:
    """``plan`` with other items: the next revision, with a new digest. The same items: as it stands."""
    told_items = [item.model_dump(mode="json") for item in items]
    if told_items == plan.items:
        return Made(plan.pk, list(items), plan.digest, [])
    revision = plan.revision + 1
    digest = compensate.plan_digest(plan.pk, revision, items)
    change: dict[str, Any] = {
        "items": told_items,
        "revision": revision,
        "digest": digest,
        "stays": compensate.stays(items, [item.effect for item in items if item.active]),
    }
    if by is not None and by not in plan.editors:
        change["editors"] = [*plan.editors, by]
    # Who agreed to leave what stays agreed to another plan.
    change |= {"accepted_by_id": None, "accepted_reason": ""}
    moved = record.move("plan", plan.pk, [plan.state], change)
    dropped = record.close_reviews(plan.pk, [ReviewKind.CONFIRM_DECISION])
    entry = Entry(EventKind.PLAN_CHANGED, {**told(plan.pk, items, why), "revision": revision}, [moved, dropped])
    return Made(plan.pk, list(items), digest, [entry])


def begin(made: Made, *, by: UUID | None, prior: PlanState = PlanState.DRAFT) -> Entry:
    """The entry that begins a plan: the run of this id is to carry it out, and nobody else may begin it."""
    change: dict[str, Any] = {"state": PlanState.RUNNING, "mending_run_id": new_id(), "started_by_id": by}
    # Whoever proposed to leave what stays meant what stayed then.
    change |= {"accepted_by_id": None, "accepted_reason": ""}
    changes: list[Change] = [
        record.move("plan", made.id, [prior], change, times={"started_at": 0}),
        record.close_reviews(made.id),
    ]
    data = {"plan": str(made.id), "digest": made.digest, "mending_run": str(change["mending_run_id"])}
    return Entry(EventKind.PLAN_STARTED, {**data, "to_mend": len(made.active)}, changes)


def told(plan: UUID, items: Sequence[PlanItem], why: Mapping[str, Any]) -> dict[str, Any]:
    """What an event says of a plan, without the payloads."""
    return {
        "plan": str(plan),
        "why": dict(why),
        "items": [
            {"n": i.n, "effect": str(i.effect), "happened": i.happened, "by": i.by, "says": i.says, "stake": i.stake}
            | ({} if i.left_out is None else {"left_out": i.left_out.model_dump(mode="json")})
            for i in items
        ],
    }


def late(run_state: str, effect: Effect, now: datetime) -> list[Entry]:
    """What to record beside a success that comes after its run has ended otherwise: a draft that proposes to mend it.

    ``effect``: as it is once this commit is through. A draft moves nothing: a person begins it. Empty where the
    contract names no compensation, or where a plan is at work already and is looked at anew when it has ended.
    """
    if run_state not in LATE or effect.state not in compensate.HAPPENED:
        return []
    plan = open_plan(effect.run_id)
    if plan is not None and plan.state not in MAY_BEGIN:
        return []
    only = {effect.pk} | ({i.effect for i in items_of(plan) if i.active} if plan is not None else set())
    others = [e for e in Effect.objects.filter(run_id=effect.run_id) if e.pk != effect.pk]
    made = make(
        effect.workspace_id,
        effect.run_id,
        [*others, effect],
        now=now,
        why=reason("happened_late", effect=str(effect.pk), what=effect.describe),
        only=only,
        plan=plan,
    )
    return made.entries if any(i.effect == effect.pk and i.active for i in made.items) else []
