"""What people do with requests for signatures: sign, reject, withdraw, renew (rules R1 to R10, invariant 8).

Each judges the request under its run's lock, so two of them at once happen one after the other, and the
second one sees what the first one did. Nothing here asks for a step-up: that is the caller's, before it
calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from recovery.actions.common import Done, Locked, Plan, Subject, carry_out, require_run, who
from recovery.actions.signing import (
    approval_told,
    refuse_unless_current,
    refuse_unless_open,
    sent_facts,
    signature,
)
from recovery.contract import registry
from recovery.engine import approvals
from recovery.engine.approvals.quorum import standing
from recovery.engine.changes import is_high, settle_effect
from recovery.engine.changes import reason as why_of
from recovery.engine.endings import told_of
from recovery.engine.refusals import AlreadyDone, NothingToWithdraw, NotRenewable, TooLate
from runs.errors import ApprovalEnded, ApprovalExpired, NotFound, RunEnded
from runs.models import Approval, Effect, Person
from runs.record import Act, Change, Entry, close_reviews, move, reckon
from runs.states import ApprovalState, EffectState, EventKind, RunState, SignatureState


def subject_of(approval_id: UUID) -> Subject:
    """A request as the subject of an action. Raises NotFound."""
    found = Approval.objects.filter(pk=approval_id).values_list("workspace_id", "run_id").first()
    if found is None:
        raise NotFound
    return Subject("approval", approval_id, *found)


def approval_of(approval_id: UUID) -> Approval:
    """A request with its effect, group and run."""
    return Approval.objects.select_related("effect", "group", "run").get(pk=approval_id)


def sign(approval_id: UUID, *, actor: Person, act: Act, reason: str, digest: str, saw: Mapping[str, Any]) -> Done:
    """Sign exactly the request whose ``digest`` was shown; the last signature needed lets the effect be sent.

    ``saw``: the sentence as shown, its language, the evidence ids; revision, digest, bytes and precondition
    are added from the request. Raises OwnRequest, NotAllowed, NotInGroup, Superseded, StaleVersion,
    ApprovalExpired, ApprovalEnded, AlreadySigned, RunEnded, and what ``carry_out`` raises.
    """

    def plan(at: Locked) -> Plan:
        approval = approval_of(approval_id)
        person = Person.objects.get(pk=actor.pk)
        rule, signed = approvals.rule_of(approval), standing(approval)
        rule.require(person, signed)
        refuse_unless_current(approval, digest)
        refuse_unless_open(approval, require_run(at), at.now, to="sign")
        rule.require_first(person, signed)
        good = len(rule.good(signed)) + 1
        granted = good >= approval.needed
        effect = approval.effect
        new, shown = signature(approval, person, SignatureState.SIGNED, reason, saw)
        changes: list[Change] = [new]
        if granted:
            changes += approvals.grant(approval, effect)
        facts = {
            **approval_told(approval),
            "by": who(person),
            "signed": good,
            "needed": approval.needed,
            "granted": granted,
            "approve_by": approval.approve_by.isoformat(),
            "execute_within_s": approval.execute_within,
        }
        return Plan(
            [Entry(EventKind.APPROVAL_SIGNED, {**facts, "saw": shown}, changes)],
            facts,
            before=approval.approve_by,
            over=ApprovalExpired(at=approval.approve_by.isoformat(), clock="approve_by"),
        )

    return carry_out(subject_of(approval_id), "see", plan, actor=actor, act=act, reason=reason)


def reject(approval_id: UUID, *, actor: Person, act: Act, reason: str, digest: str, saw: Mapping[str, Any]) -> Done:
    """End the request: one reject beats every signature, also a full set that was not used yet (R8).

    The effect is declined and its run goes on with that. The same people may as may sign. Raises TooLate once
    the request was used, and otherwise what ``sign`` raises.
    """

    def plan(at: Locked) -> Plan:
        approval = approval_of(approval_id)
        person = Person.objects.get(pk=actor.pk)
        signed = standing(approval)
        approvals.rule_of(approval).require(person, signed)
        refuse_unless_current(approval, digest)
        refuse_unless_open(approval, require_run(at), at.now, to="reject")
        effect = approval.effect
        changes: list[Change] = []
        mine = [s for s in signed if s.person_id == person.pk]
        for own in mine:
            gone = {"state": SignatureState.WITHDRAWN}
            changes.append(move("signature", own.pk, (SignatureState.SIGNED,), gone, times={"withdrawn_at": 0}))
        new, shown = signature(approval, person, SignatureState.REJECTED, reason, saw)
        why = why_of("rejected", by=person.name, revision=approval.revision)
        ended = {"state": ApprovalState.REJECTED, "reason": why}
        changes += [
            new,
            move("approval", approval.pk, _UNDECIDED, ended, times={"ended_at": 0}),
            close_reviews(approval.pk),
        ]
        if approval.state == ApprovalState.GRANTED:
            # Ready has no way to declined of its own: what was signed is unsigned first.
            back = {"state": EffectState.AWAITING_APPROVAL}
            changes.append(move("effect", effect.pk, (EffectState.READY,), back))
        facts = {**approval_told(approval), "by": who(person), "changed_mind": bool(mine)}
        settled = settle_effect(effect, EffectState.DECLINED, why, prior=(EffectState.AWAITING_APPROVAL,))
        return Plan(
            [
                Entry(EventKind.APPROVAL_REJECTED, {**facts, "saw": shown}, changes),
                Entry(
                    EventKind.EFFECT_SETTLED,
                    {**told_of(effect), "state": EffectState.DECLINED, **why},
                    settled,
                ),
            ],
            facts,
        )

    return carry_out(subject_of(approval_id), "see", plan, actor=actor, act=act, reason=reason)


_UNDECIDED = (ApprovalState.PENDING, ApprovalState.GRANTED)


def withdraw(approval_id: UUID, *, actor: Person, act: Act, reason: str = "") -> Done:
    """Take one's own signature back while the request was not used (R9); a full set is then one short again.

    Needs no permission beyond seeing: taking back is never harder than signing was. Raises TooLate with when
    it was sent, NothingToWithdraw, Superseded, ApprovalEnded.
    """

    def plan(at: Locked) -> Plan:
        approval = approval_of(approval_id)
        refuse_unless_current(approval, approval.digest)
        if approval.state == ApprovalState.CONSUMED:
            raise TooLate(**sent_facts(approval))
        if approval.state not in approvals.OPEN:
            raise ApprovalEnded(state=str(approval.state), **approval_told(approval))
        signed = standing(approval)
        mine = next((s for s in signed if s.person_id == actor.pk), None)
        if mine is None:
            raise NothingToWithdraw(**approval_told(approval))
        gone = {"state": SignatureState.WITHDRAWN}
        changes = [move("signature", mine.pk, (SignatureState.SIGNED,), gone, times={"withdrawn_at": 0})]
        if approval.state == ApprovalState.GRANTED:
            changes += _ungrant(approval, approval.effect)
        left = approvals.rule_of(approval).good(s for s in signed if s.pk != mine.pk)
        facts = {
            **approval_told(approval),
            "by": who(mine.person),
            "signed": len(left),
            "needed": approval.needed,
            "was_granted": approval.state == ApprovalState.GRANTED,
            "approve_by": approval.approve_by.isoformat(),
        }
        return Plan([Entry(EventKind.APPROVAL_WITHDRAWN, facts, changes)], facts)

    return carry_out(subject_of(approval_id), "see", plan, actor=actor, act=act, reason=reason or None)


def _ungrant(approval: Approval, effect: Effect) -> list[Change]:
    again = {"state": ApprovalState.PENDING, "granted_at": None, "execute_by": None}
    again |= {"overridden_at": None, "overridden_by_id": None}
    held = {
        "state": EffectState.AWAITING_APPROVAL,
        "reason": why_of("signature_withdrawn"),
        "not_before": None,
    }
    told = why_of(
        "signature_withdrawn",
        describe=effect.describe,
        stake=effect.stake,
        group=approval.group.slug,
        needed=approval.needed,
        revision=approval.revision,
    )
    return [
        move("approval", approval.pk, (ApprovalState.GRANTED,), again),
        move("effect", effect.pk, (EffectState.READY,), held),
        approvals.review_of(approval, told, high=is_high(effect), due_at=approval.approve_by),
        reckon(),
    ]


def renew(approval_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """Ask again for the same effect after its request ran out or could not be met: a new revision, no
    signatures yet.

    Needs ``start``; whoever asks again does not sign it (R4). Raises Superseded, NotRenewable, AlreadyDone
    when it is being asked now, ApprovalExpired when the effect's own deadline is over, RunEnded.
    """

    def plan(at: Locked) -> Plan:
        approval = approval_of(approval_id)
        run, effect = require_run(at), approval.effect
        refuse_unless_current(approval, approval.digest)
        if run.ended:
            raise RunEnded(at=run.ended_at.isoformat() if run.ended_at else None)
        _refuse_unless_renewable(approval, run.state, at)
        if at.now >= effect.deadline:
            raise ApprovalExpired(at=effect.deadline.isoformat(), clock="deadline")
        contract = registry.effect_contract(effect.operation, effect.contract_version)
        revision = effect.revision + 1
        old = None if approval.state == ApprovalState.CONSUMED else approval
        row = {**approvals.columns(effect), "revision": revision}
        changes = [
            move(
                "effect",
                effect.pk,
                (EffectState.AWAITING_APPROVAL,),
                {"revision": revision, "reason": why_of("asked_again", revision=revision)},
                bump=True,
            ),
            close_reviews(approval.pk),
            *approvals.ask(
                row,
                contract,
                run=run,
                requester=actor.pk,
                editors=sorted(approvals.hands_in(approval)),
                revision=revision,
                supersedes=old,
                group=approval.group,
                now=at.now,
                cause={"who": actor.name, "how": "renewed"},
                precondition=approval.precondition,
            ),
            reckon(),
        ]
        new = next(c.data["row"] for c in changes if c.data["t"] == "approval" and c.data["op"] == "new")
        facts = {
            **told_of(effect),
            "approval": str(new["id"]),
            "revision": revision,
            "replaces": approval.revision,
            "check_code": Approval(digest=new["digest"]).check_code,
            "state": str(new["state"]),
            "approve_by": new["approve_by"].isoformat(),
            "by": who(actor),
        }
        return Plan([Entry(EventKind.APPROVAL_ASKED, facts, changes)], facts)

    return carry_out(subject_of(approval_id), "start", plan, actor=actor, act=act, reason=reason)


def _refuse_unless_renewable(approval: Approval, run_state: str, at: Locked) -> None:
    over = approval.state == ApprovalState.PENDING and at.now >= approval.approve_by
    if approval.state in _UNDECIDED and not over:
        raise AlreadyDone(what="asked", at=approval.asked_at.isoformat(), **approval_told(approval))
    waits = approval.effect.state == EffectState.AWAITING_APPROVAL
    ran_out = over or approval.state in _RAN_OUT
    if not ran_out or not waits or run_state == RunState.CANCELLING:
        raise NotRenewable(state=str(approval.state), effect_state=str(approval.effect.state))


_RAN_OUT = (ApprovalState.EXPIRED, ApprovalState.UNSATISFIABLE, ApprovalState.CONSUMED)
"""A consumed request can have run out too: its one attempt is known not to have left, and its time to send is
over.
"""
