"""The senders: what they look at before each send (invariant 8), and what a request for signatures is used for."""

from __future__ import annotations

from datetime import timedelta

import pytest

from recovery.engine import approvals
from runs import access, clock, errors
from runs.models import Approval, Attempt, Effect, Person, WorkspaceUserPermission
from runs.states import ApprovalState, AttemptState, EffectState, EventKind, ReviewKind, RunState
from tests.recovery.engine.world import World
from tests.recovery.signers import renew, sign
from tests.recovery.stage import later

ABOVE = 120_500


def granted(w: World) -> Effect:
    """A refund above the limit, signed by two, ready and not sent."""
    run = w.accept("test.many", "pay", amount=ABOVE)
    w.advance(run)
    approval = Approval.objects.get()
    sign(approval, w.s.approver_b)
    sign(approval, w.s.approver_c)
    effect = w.effect(run)
    assert effect.state == EffectState.READY
    return effect


def held_back(w: World, effect: Effect) -> Approval:
    """Nothing was sent; it waits for signatures again, and a person sees it."""
    assert w.sandbox.requests() == []
    assert not Attempt.objects.exists()
    assert w.effect(effect.run_id).state == EffectState.AWAITING_APPROVAL
    assert w.reviews(effect.run_id) == [ReviewKind.SIGNATURES_NEEDED]
    return Approval.objects.get(effect=effect)


def test_two_signatures_are_used_up_by_one_send(w: World) -> None:
    """R7: the claim's commit consumes the request; what is sent is what was signed (R3)."""
    effect = granted(w)
    w.drive()
    approval = Approval.objects.get(effect=effect)
    assert (approval.state, w.effect(effect.run_id).state) == (ApprovalState.CONSUMED, EffectState.SUCCEEDED)
    (request,) = w.sandbox.requests()
    assert request["body"] == approval.body
    (sent,) = w.events(effect.run_id, EventKind.EFFECT_SENT)
    moved = {(m["t"], m["to"]) for m in sent.body["moves"]}
    assert moved == {("approval", "consumed"), ("effect", "in_flight"), ("attempt", "committed")}
    assert w.run(effect.run_id).state == RunState.COMPLETED


def test_without_signatures_nothing_is_sent(w: World) -> None:
    run = w.accept("test.many", "pay", amount=ABOVE)
    w.advance(run)
    assert w.dispatch(w.effect(run)) == EffectState.AWAITING_APPROVAL
    sign(Approval.objects.get(), w.s.approver_b)
    w.drive()
    assert w.sandbox.requests() == []


def test_execute_by_passed_is_held_back(w: World) -> None:
    """Fault 50, invariant 8: expired between signing and sending; a renewal asks anew and is then sent."""
    effect = granted(w)
    later(minutes=61)
    w.dispatch(effect)
    assert held_back(w, effect).state == ApprovalState.EXPIRED
    renew(Approval.objects.get(), w.s.oncall_a)
    again = Approval.objects.get(revision=2)
    sign(again, w.s.approver_b)
    sign(again, w.s.approver_c)
    w.drive()
    assert w.run(effect.run_id).state == RunState.COMPLETED
    assert w.applied(effect) == 1


def test_execute_by_itself_is_over(w: World) -> None:
    """R6: ``now >= t`` is over; the sweep says so even where no sender came by."""
    effect = granted(w)
    execute_by = Approval.objects.get().execute_by
    assert execute_by is not None
    clock.shift(execute_by - clock.now())
    w.drive()
    held_back(w, effect)


def test_a_signer_disabled_before_the_send_does_not_count(w: World) -> None:
    """Fault 51, R5: short of quorum, so another signature is asked for; nothing is sent until then."""
    effect = granted(w)
    Person.objects.filter(pk=w.s.approver_b.pk).update(is_active=False)
    w.dispatch(effect)
    approval = held_back(w, effect)
    assert approval.state == ApprovalState.PENDING
    sign(approval, w.s.approver_f)
    w.drive()
    assert w.run(effect.run_id).state == RunState.COMPLETED


def test_a_signer_who_lost_the_right_does_not_count(w: World) -> None:
    """Fault 51: the permission is asked for at the send, not remembered from the signature."""
    effect = granted(w)
    WorkspaceUserPermission.objects.filter(user=w.s.approver_c).delete()
    w.dispatch(effect)
    held_back(w, effect)
    access.grant(w.s.approver_c, w.s.here, ["approver"])


def test_other_bytes_than_signed_are_not_sent(w: World) -> None:
    """Fault 52: whatever changed the row, its digest differs."""
    effect = granted(w)
    Effect.objects.filter(pk=effect.pk).update(body=effect.body.replace("120500", "920500"))
    w.dispatch(effect)
    held_back(w, effect)


def test_a_withdrawn_signature_stops_the_send(w: World) -> None:
    """R9: a withdrawal that came first makes the claim a lost race."""
    from tests.recovery.signers import withdraw

    effect = granted(w)
    withdraw(Approval.objects.get(), w.s.approver_b)
    w.drive()
    assert w.sandbox.requests() == []
    assert w.effect(effect.run_id).state == EffectState.AWAITING_APPROVAL


def test_after_a_503_the_same_request_is_still_good(w: World) -> None:
    """R10: consumed by this effect, and in its time: the same bytes again need no new signatures."""
    effect = granted(w)
    w.sandbox.dial("payments", reply="refuse", times=1)
    w.drive(jump=timedelta(minutes=1))
    assert w.run(effect.run_id).state == RunState.COMPLETED
    assert w.effect(effect.run_id).attempts == 2


def test_after_a_503_and_its_time_it_is_not_sent_again(w: World) -> None:
    """R10: a resend needs what a first send needs."""
    effect = granted(w)
    w.sandbox.dial("payments", reply="overload", retry_after=3600, times=1)
    w.drive()
    later(minutes=65)
    w.drive()
    after = w.effect(effect.run_id)
    assert after.state == EffectState.AWAITING_APPROVAL
    assert len(w.sandbox.requests()) == 1
    assert w.reviews(effect.run_id) == [ReviewKind.SIGNATURES_NEEDED]


def test_a_lost_answer_is_not_sent_again_on_an_expired_approval(w: World) -> None:
    """Invariant 8 for a resend of an unknown: only readback and a person remain."""
    effect = granted(w)
    w.sandbox.dial("payments", reply="drop", times=1)
    w.sandbox.dial("payments", readback="down")
    w.dispatch(effect)
    later(minutes=61)
    w.drive(jump=timedelta(minutes=30))
    assert w.effect(effect.run_id).state == EffectState.UNKNOWN
    assert len(w.sandbox.requests()) == 1


def test_a_signed_request_whose_effect_expires_is_revoked(w: World) -> None:
    """The effect's own deadline ends it; no open request is left behind, whoever finds it first."""
    effect = granted(w)
    Approval.objects.update(execute_by=clock.now() + timedelta(days=9))
    later(days=3)
    w.reconcile(effect)
    assert w.effect(effect.run_id).state == EffectState.EXPIRED
    assert Approval.objects.get().state == ApprovalState.REVOKED
    w.drive()
    assert w.run(effect.run_id).state == RunState.FAILED


def test_a_second_doorbell_does_nothing(w: World) -> None:
    """A message is a hint (fault 22)."""
    effect = granted(w)
    assert w.dispatch(effect) == EffectState.SUCCEEDED
    assert w.dispatch(effect) == EffectState.SUCCEEDED
    assert len(w.sandbox.requests()) == 1


def test_what_the_sender_claims_is_what_it_looked_at(w: World) -> None:
    """An effect that moved between the look and the claim is not sent (guard by state and version)."""
    from recovery import failpoints

    run = w.accept("test.many", "slow")
    w.advance(run)
    effect = w.effect(run)

    def cancelled_meanwhile() -> None:
        failpoints.disarm()
        w.cancel(run)
        w.advance(run)

    failpoints.arm("dispatch.before_claim", cancelled_meanwhile)
    assert w.dispatch(effect) == "another was first"
    assert w.sandbox.requests() == []
    assert w.run(run).state == RunState.CANCELLED


def test_the_attempt_is_committed_before_a_byte_leaves(w: World) -> None:
    """Invariant 2, seen from the other side: while it is being applied, the attempt is already on the record."""
    from recovery import failpoints

    seen: list[str] = []
    run = w.accept("test.many", "pay", "mail")
    w.advance(run)

    def look() -> None:
        seen.extend(Attempt.objects.filter(ended_at=None).values_list("state", flat=True))

    failpoints.arm("send.before", look)
    for effect in w.effects(run):
        w.dispatch(effect)
    assert seen == [AttemptState.COMMITTED, AttemptState.COMMITTED]


def test_consuming_twice_is_refused(w: World) -> None:
    """Fault 53: an approval is used once."""
    effect = granted(w)
    approval = Approval.objects.get(effect=effect)
    w.dispatch(effect)
    with pytest.raises(errors.LostRace):
        w.s.write(effect.run_id, *approvals.consume(approval))
