"""Inside the run that carries a plan out: an item's turn comes, and what it led to is verified before the next.

Before its turn the original is looked at: somebody else's later change is not overwritten, a person is asked. After
its success the authority is asked whether it shows it; only then does the step hear of it, so that what comes after
an item never rests on an answer alone where its contract wants more.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from recovery import failpoints
from recovery.compensation import CompensationRun, request_of
from recovery.contract import EffectContract, Perform, registry
from recovery.contract.mending import MendingRequest, PlanItem
from recovery.engine import approvals, compensate, endings, finish, intents, mending_runs, reconcile, snapshots
from recovery.engine.changes import reason
from recovery.engine.decide import decide
from recovery.engine.memory import Pending
from recovery.engine.session import Session
from runs import record
from runs.models import Dependency, Effect, Evidence, Group, Plan
from runs.record import Change, Entry
from runs.states import Claim, EffectState, EventKind, EvidenceKind, RunState, WaitingOn

PAUSE: Final = timedelta(seconds=30)
"""Until an original that did not answer is looked at again."""


def concerns(s: Session) -> bool:
    """Whether this run carries a plan out."""
    return bool(s.run["type"] == CompensationRun.name)


def ask_for(s: Session, transition: Perform) -> str:
    """The step's next item: its effect was planned when the run was accepted, and is taken up now."""
    (request,) = transition.requests
    assert isinstance(request, MendingRequest), "the built-in type asks for nothing else"
    found = (
        Effect.objects.filter(run_id=s.id, mends_id=request.mends).order_by("-generation").values_list("pk", flat=True)
    )
    s.memory.pending = Pending([found[0]], transition.then, {}, many=False)
    s.memory.step = transition.then
    return ""


def hold(s: Session, pending: Pending) -> str:
    """Why the item under way keeps the run here: its turn has only come, or it is not verified. Empty: go on."""
    effect = Effect.objects.get(pk=pending.effects[0])
    item = _item(s, effect)
    if effect.state == EffectState.PLANNED:
        return _turn(s, effect, item)
    if effect.state == EffectState.SUCCEEDED and not mending_runs.verified(effect, item):
        return _verify(s, effect)
    return ""


def _item(s: Session, effect: Effect) -> PlanItem:
    found = next(i for i in s.memory.data["items"] if i["effect"] == str(effect.mends_id))
    return PlanItem.model_validate(found)


def _turn(s: Session, effect: Effect, item: PlanItem) -> str:
    original = Effect.objects.get(pk=item.effect)
    if item.knew is not None:
        failpoints.hit("mend.before_look")
        seen = _look(original)
        if seen is None:
            return _wait(s, PAUSE, reason("original_unanswered", what=original.describe))
        original = Effect.objects.get(pk=item.effect)
        if original.state in compensate.HAPPENED and seen != item.knew:
            return _not_touched(
                s, effect, reason("changed_by_others", what=original.describe, knew=item.knew, now=seen)
            )
    if original.state not in compensate.HAPPENED:
        return _not_touched(s, effect, reason("original_moved", what=original.describe, state=original.state))
    return _take_up(s, effect, item, original)


def _look(original: Effect) -> str | int | None:
    """The version of the original that its authority shows now, kept as evidence; None where it gave none."""
    contract = registry.effect_contract(original.operation, original.contract_version)
    if contract.reconcile is None:
        return compensate.version_in(contract, original.result)
    row = reconcile.look(original, contract)
    return compensate.version_in(contract, row["detail"].get("item"))


def _not_touched(s: Session, effect: Effect, why: dict[str, Any]) -> str:
    """Nothing is sent: the step hears that the item did not happen, and its plan asks a person."""
    change = {"state": EffectState.CANCELLED, "reason": why}
    moved = record.move("effect", effect.pk, [EffectState.PLANNED], change, times={"settled_at": 0})
    data = {**endings.told_of(effect), "state": EffectState.CANCELLED, **why}
    s.commit([Entry(EventKind.EFFECT_SETTLED, data, [moved])], run={"tries": 0}, why="item_not_touched")
    return ""


def _take_up(s: Session, effect: Effect, item: PlanItem, original: Effect) -> str:
    """Planned becomes ready, or asks for its signatures; bytes and deadline are made now, nothing was signed yet."""
    signed = item.approved and approvals.signed_beforehand(original)
    request = request_of(item.model_copy(update={"approved": signed}))
    contract, rule, now = request.contract, request.signatures(), s.watch.now()
    # What went elsewhere while its dependency was closed off is mended there: only that side knows it.
    of = registry.effect_contract(original.operation, original.contract_version)
    at = Dependency.objects.get(pk=original.dependency_id) if of.dependency == contract.dependency else None
    built = intents.build(s.run, request, ordinal=effect.ordinal, now=now, generation=effect.generation, at=at)
    names = ("dependency_id", "request", "body", "describe", "stake", "irreversible", "deadline")
    change: dict[str, Any] = {name: built.row[name] for name in names}
    change["state"] = EffectState.READY if rule is None else EffectState.AWAITING_APPROVAL
    change["next_check_at"] = change["deadline"]
    row = {**built.row, **change, "id": effect.pk, "revision": effect.revision}
    approve_by = None if rule is None else min(now + rule.approve_within, row["deadline"])
    change["decision"] = decide(snapshots.asked(Effect(**row), approve_by), contract, now).as_json()
    times = {"not_before": 0.0} if rule is None else None
    changes: list[Change] = [record.move("effect", effect.pk, [EffectState.PLANNED], change, times=times)]
    kind, more = EventKind.EFFECT_ASKED, {}
    if rule is not None:
        kind, more = EventKind.APPROVAL_ASKED, {"revision": effect.revision}
        changes += approvals.ask(
            row,
            contract,
            run=s.run,
            requester=_uuid(s.run["started_by_id"]),
            editors=_editors(s),
            revision=effect.revision,
            supersedes=None,
            group=_group(s, rule.group),
            now=now,
            precondition={
                "mends": original.describe,
                "state": original.state,
                **({} if item.knew is None else {"version": item.knew}),
            },
        )
    data = {**endings.told(row), "mends": str(original.pk), "n": item.n, **more}
    effect.state = change["state"]
    effect.version += 1
    failpoints.hit("mend.before_turn")
    return finish.wait_for_effects(s, [effect], entries=[Entry(kind, data, changes)], changed=True)


def _group(s: Session, slug: str) -> Group:
    found = Group.objects.filter(workspace_id=s.workspace, slug=slug).first()
    if found is None:
        raise intents.Undeclared(f"this workspace has no group {slug!r}, which has to sign")
    return found


def _editors(s: Session) -> list[UUID]:
    """Whoever had a hand in the plan signs nothing of it (R4)."""
    return list(Plan.objects.values_list("editors", flat=True).get(pk=UUID(s.memory.data["plan"])))


def _verify(s: Session, effect: Effect) -> str:
    """Ask the authority whether it shows the compensation; until it does, the run waits."""
    s.flush()
    contract = registry.effect_contract(effect.operation, effect.contract_version)
    assert contract.reconcile is not None, "a check refuses a contract that could not be verified"
    failpoints.hit("mend.before_verify")
    row = reconcile.look(effect, contract)
    effect.refresh_from_db()
    if effect.state != EffectState.SUCCEEDED:
        # The authority contradicts its own answer: the effect is open again, and a person decides.
        return finish.wait_for_effects(s, [effect], changed=True)
    if row["claim"] == Claim.HAPPENED:
        return ""
    why = reason("verifying", what=effect.describe, dependency=contract.dependency)
    return _wait(s, _until_again(effect, contract, s.watch.now()), why)


def _until_again(effect: Effect, contract: EffectContract, now: datetime) -> timedelta:
    readback = contract.reconcile
    assert readback is not None and effect.settled_at is not None
    shown_from = effect.settled_at + max(readback.lag, contract.promise.lag or timedelta(0))
    asked = Evidence.objects.filter(
        effect_id=effect.pk, kind=EvidenceKind.READBACK, received_at__gte=effect.settled_at
    ).count()
    return max(shown_from - now, readback.backoff.ceiling(asked), timedelta(seconds=1))


def _wait(s: Session, pause: timedelta, why: dict[str, Any]) -> str:
    """Wait by the clock. What this worker asked has woken the run itself: that is not slept over, it is set aside."""
    s.commit(
        [Entry(EventKind.RUN_WAITED, {"on": WaitingOn.DEPENDENCY, **why})],
        run={
            "state": RunState.WAITING,
            "waiting_on": WaitingOn.DEPENDENCY,
            "wait_event": "",
            "lease_owner": None,
            "tries": 0,
            "gate": [why],
        },
        times={"wake_at": pause.total_seconds()},
        why="wait",
    )
    return f"waits: {why['code']}"


def _uuid(value: Any) -> UUID | None:
    return None if value is None else UUID(str(value))
