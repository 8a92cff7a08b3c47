"""What people decide about an outcome nobody knows, and the second person's answer (invariant 4, D3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from recovery.actions import deciding
from recovery.actions.common import Done, Locked, Plan, Subject, carry_out, require_run, who
from recovery.contract import registry
from recovery.engine import snapshots
from recovery.engine.judging import Case
from recovery.engine.refusals import AlreadyDone
from recovery.engine.verdicts import Weight, verdict_digest, weigh
from recovery.traffic.admission import standing_of
from runs import clock
from runs.errors import NotFound, StaleVersion
from runs.models import Effect, Evidence, Person, Verdict
from runs.models.base import new_id
from runs.record import Act, Change, Entry, close_reviews, move, new
from runs.states import EventKind, VerdictSays, VerdictState


def weight_of(effect: Effect, says: VerdictSays, ticked: Sequence[UUID]) -> Weight:
    """Whether this decision on this evidence needs a second person; what a preview says before it is
    recorded.
    """
    now = clock.now()
    contract = registry.effect_contract(effect.operation, effect.contract_version)
    snap = snapshots.take(effect, contract, snapshots.run_of(effect), now, standing_of(effect.dependency))
    return weigh(Case(snap, contract, now), says, ticked)


def record(
    effect_id: UUID,
    *,
    actor: Person,
    act: Act,
    says: VerdictSays | str,
    reason: str,
    evidence: Sequence[UUID],
    version: int,
    statement: str = "",
    items: Mapping[str, str] | None = None,
) -> Done:
    """Say what happened to an effect that is unknown, disputed or taken, on ticked ``evidence`` or a
    ``statement``.

    ``version``: the effect's, as seen. ``items``: for "in part", each item's ``happened`` or
    ``did_not_happen``. Where machine evidence carries it the effect is settled now; else it is a proposal
    that a second person confirms, and the effect stays as it is. ``facts["needs_second"]`` tells which,
    ``facts["why"]`` the code. Raises NotUnknown, DecisionWaiting, StaleVersion, EvidenceNeeded, ItemUnknown,
    and what ``carry_out`` raises.
    """
    found = Effect.objects.filter(pk=effect_id).values_list("workspace_id", "run_id").first()
    if found is None:
        raise NotFound
    said = VerdictSays(says)

    def plan(at: Locked) -> Plan:
        effect = Effect.objects.get(pk=effect_id)
        deciding.refuse_unless_decidable(effect, version)
        ticked = deciding.ticked_of(effect, evidence, said=said, statement=statement, items=items)
        weight = weight_of(effect, said, [one.pk for one in ticked])
        changes: list[Change] = []
        ids = [one.pk for one in ticked]
        if statement.strip() or items:
            change, own = deciding.statement_of(effect, actor, said, statement, items)
            changes.append(change)
            ids.append(own)
        decided = effect.version + 1 if weight.second else effect.version
        verdict = {
            "id": new_id(),
            "workspace_id": effect.workspace_id,
            "run_id": effect.run_id,
            "effect_id": effect.pk,
            "effect_version": decided,
            "says": said,
            "state": VerdictState.PROPOSED if weight.second else VerdictState.RECORDED,
            "person_id": actor.pk,
            "reason": reason,
            "evidence": ids,
            "digest": verdict_digest(
                effect=effect.pk, version=decided, says=said, reason=reason, evidence=ids, person=actor.pk
            ),
        }
        changes.append(new("verdict", verdict, {"at": 0}))
        facts = deciding.told(effect, verdict) | {
            "by": who(actor),
            "needs_second": weight.second,
            "why": weight.code,
            "why_facts": dict(weight.facts),
            "next_step": require_run(at).step,
        }
        if weight.second:
            changes += deciding.propose(effect, verdict, actor, weight, version)
            return Plan([Entry(EventKind.VERDICT_PROPOSED, facts, changes)], facts)
        result = deciding.result_of(said, ticked, items)
        settled = deciding.settle(effect, verdict, result, by=actor, second=None)
        late = deciding.late(require_run(at), effect, said, result, at.now)
        return Plan([Entry(EventKind.VERDICT_RECORDED, facts, changes), settled, *late], facts)

    return carry_out(Subject("effect", effect_id, *found), "decide", plan, actor=actor, act=act, reason=reason)


def confirm(verdict_id: UUID, *, actor: Person, act: Act, confirm: bool, reason: str, digest: str) -> Done:
    """The second person's answer to a proposed decision: confirmed, it settles the effect in the same commit.

    Another person of another owner, with ``confirm`` or ``decide``. With ``confirm=False`` the proposal is
    refused and the effect stays unknown; whoever proposed may take it back the same way. Raises SamePerson,
    NotAllowed, AlreadyDone, StaleVersion (another digest, or the effect changed since), NotUnknown.
    """
    found = Verdict.objects.filter(pk=verdict_id).values_list("workspace_id", "run_id").first()
    if found is None:
        raise NotFound

    def plan(at: Locked) -> Plan:
        verdict = Verdict.objects.select_related("effect", "person", "confirmed_by").get(pk=verdict_id)
        effect, person = verdict.effect, Person.objects.get(pk=actor.pk)
        own = person.pk == verdict.person_id
        deciding.refuse_unless_second(verdict, person, taking_back=own and not confirm)
        if verdict.state != VerdictState.PROPOSED:
            raise AlreadyDone(**deciding.already(verdict))
        if digest != verdict.digest:
            raise StaleVersion(thing="verdict", id=str(verdict.pk), seen=digest, now=verdict.digest)
        row = {"id": verdict.pk, "says": verdict.says, "digest": verdict.digest, "evidence": verdict.evidence}
        facts = deciding.told(effect, row) | {
            "by": who(person),
            "proposed_by": who(verdict.person),
            "confirmed": confirm,
            "taken_back": own,
            "next_step": require_run(at).step,
        }
        answer: dict[str, Any] = {"confirm_reason": reason}
        if not own:
            answer["confirmed_by_id"] = person.pk
        answer["state"] = VerdictState.RECORDED if confirm else VerdictState.REFUSED
        changes = [
            move("verdict", verdict.pk, (VerdictState.PROPOSED,), answer, times={"confirmed_at": 0}),
            close_reviews(verdict.pk),
        ]
        if not confirm:
            changes.append(move("effect", effect.pk, None, {}, bump=True))
            return Plan([Entry(EventKind.VERDICT_REFUSED, facts, changes)], facts)
        deciding.refuse_unless_decidable(effect, verdict.effect_version, proposed=verdict.pk)
        rests_on = list(Evidence.objects.filter(effect_id=effect.pk, pk__in=verdict.evidence).order_by("id"))
        items = next((one.detail["items"] for one in rests_on if "items" in one.detail), None)
        result = deciding.result_of(VerdictSays(verdict.says), rests_on, items)
        settled = deciding.settle(effect, row, result, by=verdict.person, second=person)
        late = deciding.late(require_run(at), effect, VerdictSays(verdict.says), result, at.now)
        return Plan([Entry(EventKind.VERDICT_RECORDED, facts, changes), settled, *late], facts)

    return carry_out(Subject("verdict", verdict_id, *found), "see", plan, actor=actor, act=act, reason=reason)
