"""The run that carries a plan out: accepted under the id that the plan has for it; the plan told what came of it.

Both are commits of one run each, and both may be asked for any number of times: what is done already is not done
again. So a crash between any two of them costs time only (invariant 16).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError
from django.db.models import Exists, OuterRef

from recovery import failpoints
from recovery.compensation import CompensationRun, PlanData, request_of
from recovery.contract import registry
from recovery.contract.errors import ContractError
from recovery.contract.fields import VerifiedBy
from recovery.contract.mending import PlanItem
from recovery.engine import compensate, endings, intents, memory, plans, snapshots
from recovery.engine.changes import open_review, reason
from recovery.engine.decide import decide
from recovery.engine.memory import Memory
from runs import clock, record
from runs.errors import IllegalMove, KeyMismatch, LostRace, StaleVersion
from runs.models import Effect, Evidence, Plan, Review, Run, Verdict
from runs.record import Change, Commit, Entry
from runs.states import (
    RUN_ENDED,
    Claim,
    EffectState,
    EventKind,
    EvidenceKind,
    PlanState,
    ReviewKind,
    ReviewState,
    RunState,
    Strength,
    VerdictState,
)

log = logging.getLogger("recourse.plans")

DUE_IN = 1200.0
"""Seconds until a plan that stands still is due for a person (20 min, DESIGN section 4)."""

AT_WORK = (PlanState.RUNNING, PlanState.INCOMPLETE, PlanState.FAILED)


def mend(plan_id: UUID) -> str:
    """Do the next thing about a plan: have its run accepted, or take over what came of it. Returns its state."""
    plan = Plan.objects.get(pk=plan_id)
    if plan.state == PlanState.RUNNING and not _its_run(plan):
        _accept(plan)
    return reflect(plan_id)


def _its_run(plan: Plan) -> str:
    """The state of the run that carries ``plan`` out; empty while there is none."""
    if plan.mending_run_id is None:
        return ""
    return Run.objects.filter(pk=plan.mending_run_id).values_list("state", flat=True).first() or ""


def tell(run: UUID) -> None:
    """Tell the plan of ``run`` what came of it; a crash before this is made good by the sweep."""
    plan = Plan.objects.filter(mending_run_id=run).values_list("pk", flat=True).first()
    if plan is not None:
        reflect(plan)


def due(limit: int) -> list[UUID]:
    """Plans at work whose run is missing or over, at most ``limit``; while it works it tells its plan each step."""
    run = Run.objects.filter(pk=OuterRef("mending_run_id"))
    over = run.filter(state__in=[*RUN_ENDED, RunState.QUARANTINED])
    rows = Plan.objects.filter(state=PlanState.RUNNING).filter(~Exists(run) | Exists(over))
    return list(rows.order_by("id").values_list("pk", flat=True)[:limit])


def changed_since(limit: int) -> list[UUID]:
    """Plans whose run is over and of which word came from outside, at most ``limit`` of each kind: an effect is mended
    and not shown as it, or shown as it and in doubt.

    Reads all compensations there ever were: for now and then, not for each second.
    """
    mending = Effect.objects.filter(mends__isnull=False)
    shown = Evidence.objects.filter(effect_id=OuterRef("pk"), kind=EvidenceKind.READBACK, claim=Claim.HAPPENED)
    decided = Verdict.objects.filter(effect_id=OuterRef("pk"), state=VerdictState.RECORDED)
    done = mending.filter(
        Exists(shown) | Exists(decided),
        state=EffectState.SUCCEEDED,
        mends__state__in=compensate.HAPPENED,
        run__state__in=RUN_ENDED,
    )
    doubted = mending.filter(state=EffectState.DISPUTED, mends__state=EffectState.COMPENSATED)
    kinds = (
        Plan.objects.filter(mending_run_id__in=done.values("run_id")),
        Plan.objects.filter(mending_run_id__in=doubted.values("run_id")),
    )
    return [id for rows in kinds for id in rows.order_by("id").values_list("pk", flat=True)[:limit]]


def _accept(plan: Plan) -> None:
    """Accept the plan's run with all its effects planned, in one commit; an earlier one under this id counts."""
    failpoints.hit("plan.before_accept")
    try:
        _accept_run(plan)
    except (ContractError, KeyMismatch, LostRace, intents.ContractRaised, intents.Undeclared) as error:
        log.warning("plan %s cannot be begun: %s", plan.pk, error)
        _cannot_begin(plan, error)
    except IntegrityError:
        if not _its_run(plan):
            raise
    failpoints.hit("plan.after_accept")


def _accept_run(plan: Plan) -> None:
    run_type = registry.run_type(CompensationRun.name)
    mended = Run.objects.get(pk=plan.run_id)
    now = clock.now()
    states = dict(Effect.objects.filter(run_id=plan.run_id).values_list("pk", "state"))
    items = [i for i in plans.items_of(plan) if i.active and states.get(i.effect) in compensate.HAPPENED]
    data = PlanData(plan=plan.pk, mended=plan.run_id, title=mended.title, items=items)
    row: dict[str, Any] = {
        "id": plan.mending_run_id,
        "workspace_id": plan.workspace_id,
        "type": run_type.name,
        "type_version": run_type.version,
        "contract_digest": run_type.digest,
        "config": run_type.config,
        "title": intents.english(run_type.describe(data))[:300],
        "goal": intents.english(run_type.describe(data))[:500],
        "principal": mended.principal,
        "started_by_id": plan.started_by_id or mended.started_by_id,
        "references": mended.references,
        "priority": mended.priority,
        "deadline": _deadline(items, now),
        "state": RunState.ACCEPTED,
        "step": "begin",
    }
    start = record.full_row("run", row)
    entries = [Entry(EventKind.RUN_ACCEPTED, {"type": row["type"], "version": 1, **_of(plan), "items": len(items)})]
    for n, item in enumerate(items, 1):
        entries.append(_planned(start, item, n, now))
    sealed = memory.seal(start, Memory(run_type.dump(data), "begin"), "accepted")
    commit = Commit(plan.workspace_id, plan.mending_run_id, entries, behalf=mended.principal, checkpoint=sealed)
    record.accept(commit, row, {"accepted_at": 0, "wake_at": 0})


def _deadline(items: Sequence[PlanItem], now: Any) -> Any:
    lengths = [item.deadline_s for item in items]
    known = [length for length in lengths if length is not None]
    return now + timedelta(seconds=sum(known)) if known and len(known) == len(lengths) else None


def _of(plan: Plan) -> dict[str, str]:
    return {"plan": str(plan.pk), "mends_run": str(plan.run_id)}


def _planned(run: Mapping[str, Any], item: PlanItem, ordinal: int, now: Any) -> Entry:
    """One effect whose turn has not come. Its key is taken now: nobody else mends the same (invariant 16)."""
    request = request_of(item)
    workspace, id = UUID(str(run["workspace_id"])), UUID(str(run["id"]))
    taken = intents.resolve(workspace, id, request, intents.key_of(run, request, now))
    if isinstance(taken, intents.Taken):
        raise KeyMismatch(f"{item.happened} is being mended already", key=taken.effect.sent_key)
    built = intents.build(run, request, ordinal=ordinal, now=now, generation=taken)
    row = {**built.row, "state": EffectState.PLANNED}
    row["decision"] = decide(snapshots.asked(Effect(**row), None), request.contract, now).as_json()
    if item.escalate_to:
        row["group_id"] = intents.group_id(workspace, item.escalate_to)
    data = {**endings.told(row), "planned": True, "mends": str(item.effect)}
    return Entry(EventKind.EFFECT_ASKED, data, [record.new("effect", row, {"requested_at": 0})])


def _cannot_begin(plan: Plan, error: Exception) -> None:
    """Nothing was asked for, and asking again would end the same way: a person looks at it."""
    why = reason("plan_cannot_begin", said=str(error)[:500])
    facts = {**_of(plan), "state": PlanState.FAILED, "mended": 0, **why}
    moved = record.move("plan", plan.pk, [PlanState.RUNNING], {"state": PlanState.FAILED})
    _commit(plan, [Entry(EventKind.PLAN_ENDED, facts, [moved, _review(plan, why)])])


def reflect(plan_id: UUID) -> str:
    """Take over into the plan and the mended run what its run has led to. Changes nothing that is as it should be."""
    plan = Plan.objects.get(pk=plan_id)
    items = plans.items_of(plan)
    originals = Effect.objects.in_bulk([item.effect for item in items])
    mending = {e.mends_id: e for e in Effect.objects.filter(mends_id__in=list(originals)).order_by("generation")}
    entries = [_doubted(o, mending[id]) for id, o in originals.items() if _is_doubted(o, mending.get(id))]
    entries += _progress(plan, [i for i in items if i.active], originals, mending)
    if not entries:
        return plan.state
    _commit(plan, entries)
    return Plan.objects.values_list("state", flat=True).get(pk=plan_id)


def _progress(
    plan: Plan, items: Sequence[PlanItem], originals: Mapping[UUID, Effect], mending: Mapping[UUID | None, Effect]
) -> list[Entry]:
    entries: list[Entry] = []
    mended = {id for id, effect in originals.items() if effect.state == EffectState.COMPENSATED}
    slow: list[Effect] = []
    for item in items:
        original, effect = originals[item.effect], mending.get(item.effect)
        if original.state not in compensate.HAPPENED or effect is None or effect.state != EffectState.SUCCEEDED:
            continue
        if verified(effect, item):
            mended.add(original.pk)
            entries.append(_mended(original, effect))
        else:
            slow.append(effect)
    if plan.state not in AT_WORK:
        return entries
    good = sum(1 for item in items if item.effect in mended)
    carrying = _its_run(plan)
    state = PlanState(plan.state)
    if items and good == len(items):
        state = PlanState.COMPENSATED
    elif carrying in RUN_ENDED or carrying == RunState.QUARANTINED:
        state = PlanState.INCOMPLETE if good else PlanState.FAILED
    if state != plan.state:
        entries.append(_ended(plan, state, items, mended, originals, mending))
    elif slow and state == PlanState.RUNNING:
        entries += _too_slow(plan, slow)
    return entries


def verified(effect: Effect, item: PlanItem) -> bool:
    """Whether a compensation that succeeded has been shown to have worked, as its contract wants, or by people."""
    if item.verified_by is not VerifiedBy.READBACK or (effect.reason or {}).get("code") == "decided":
        return True
    seen = Evidence.objects.filter(effect_id=effect.pk, kind=EvidenceKind.READBACK, claim=Claim.HAPPENED)
    return seen.filter(strength__in=[Strength.PROVES, Strength.AGREES]).exists()


def _mended(original: Effect, effect: Effect) -> Entry:
    """The original is shown as mended: only now, never while the compensation is open or unverified."""
    why = reason("mended", by=effect.describe, effect=str(effect.pk))
    change = {"state": EffectState.COMPENSATED, "reason": why, "next_check_at": None, "review_at": None}
    times = None if original.settled_at is not None else {"settled_at": 0.0}
    moved = record.move("effect", original.pk, [original.state], change, times=times)
    data = {**endings.told_of(original), "by": str(effect.pk), "mending_run": str(effect.run_id), **why}
    return Entry(EventKind.EFFECT_COMPENSATED, data, [moved, record.close_reviews(original.pk)])


def _is_doubted(original: Effect, effect: Effect | None) -> bool:
    shown = original.state == EffectState.COMPENSATED
    return shown and effect is not None and effect.state in (EffectState.DISPUTED, EffectState.NOT_APPLIED)


def _doubted(original: Effect, effect: Effect) -> Entry:
    """What mended it is in doubt, so nobody knows whether it still stands: a person decides about it too."""
    why = reason("mending_in_doubt", by=effect.describe, effect=str(effect.pk))
    change = {"state": EffectState.DISPUTED, "settled_at": None, "reason": why}
    moved = record.move("effect", original.pk, [EffectState.COMPENSATED], change)
    asked = open_review(
        ReviewKind.EVIDENCE_DISAGREES,
        original.pk,
        workspace=original.workspace_id,
        run=original.run_id,
        effect=original.pk,
        group=original.group_id,
        high=True,
        why=why,
        due_in=DUE_IN,
    )
    return Entry(EventKind.EFFECT_DISPUTED, {**endings.told_of(original), **why}, [moved, asked])


def _ended(
    plan: Plan,
    state: PlanState,
    items: Sequence[PlanItem],
    mended: set[UUID],
    originals: Mapping[UUID, Effect],
    mending: Mapping[UUID | None, Effect],
) -> Entry:
    left = compensate.stays(plans.items_of(plan), mended)
    good = sum(1 for item in items if item.effect in mended)
    counts = {"mended": good, "of": len(items)}
    change: dict[str, Any] = {"state": state, "stays": left}
    changes: list[Change] = []
    times = None
    if state == PlanState.COMPENSATED:
        times = {"ended_at": 0.0}
        # Whatever it is doing now: a live run looks again, an ended one is left alone.
        changes += [record.close_reviews(plan.pk), record.reckon(wake=True)]
    else:
        seen = _versions_seen(plan, items, mending)
        if seen is not None:
            change |= seen
        changes.append(_review(plan, reason("compensation_incomplete", **counts)))
    how = [
        {"n": i.n, "effect": str(i.effect), "happened": i.happened, "state": str(mending[i.effect].state)}
        | {"why": mending[i.effect].reason}
        for i in items
        if i.effect in mending and i.effect not in mended
    ]
    data = {**_of(plan), "state": state, **counts, "stays": left, "not_mended": how}
    return Entry(
        EventKind.PLAN_ENDED, data, [record.move("plan", plan.pk, [plan.state], change, times=times), *changes]
    )


def _versions_seen(
    plan: Plan, items: Sequence[PlanItem], mending: Mapping[UUID | None, Effect]
) -> dict[str, Any] | None:
    """The plan with the versions that were seen where somebody else had changed something: whoever begins it again
    has them in view, and they are part of what is begun.
    """
    new: dict[UUID, Any] = {}
    for item in items:
        why = (mending[item.effect].reason or {}) if item.effect in mending else {}
        if why.get("code") == "changed_by_others":
            new[item.effect] = why["facts"]["now"]
    if not new:
        return None
    known = [i.model_copy(update={"knew": new.get(i.effect, i.knew)}) for i in plans.items_of(plan)]
    revision = plan.revision + 1
    digest = compensate.plan_digest(plan.pk, revision, known)
    return {"items": [i.model_dump(mode="json") for i in known], "revision": revision, "digest": digest}


def _too_slow(plan: Plan, effects: Sequence[Effect]) -> list[Entry]:
    """A compensation that succeeded and cannot be verified for longer than its contract allows is asked about once."""
    now = clock.now()
    late = [e for e in effects if e.settled_at is not None and now >= e.settled_at + _patience(e)]
    asked = Review.objects.filter(
        subject=plan.pk, kind=ReviewKind.COMPENSATION_INCOMPLETE, state=ReviewState.OPEN
    ).exists()
    if not late or asked:
        return []
    why = reason("not_verified_yet", what=late[0].describe)
    return [Entry(EventKind.PLAN_CHANGED, {**_of(plan), "why": why}, [_review(plan, why)])]


def _patience(effect: Effect) -> timedelta:
    return registry.effect_contract(effect.operation, effect.contract_version).review_after


def _review(plan: Plan, why: Mapping[str, Any]) -> Change:
    items = [item for item in plans.items_of(plan) if item.active]
    group = next((intents.group_id(plan.workspace_id, item.escalate_to) for item in items if item.escalate_to), None)
    return open_review(
        ReviewKind.COMPENSATION_INCOMPLETE,
        plan.pk,
        workspace=plan.workspace_id,
        run=plan.run_id,
        group=group,
        high=any(item.irreversible for item in items),
        why=why,
        due_in=DUE_IN,
    )


def _commit(plan: Plan, entries: list[Entry]) -> bool:
    failpoints.hit("plan.before_commit")
    try:
        record.commit(Commit(plan.workspace_id, plan.run_id, entries))
    except (LostRace, StaleVersion, IllegalMove):
        return False
    failpoints.hit("plan.after_commit")
    return True
