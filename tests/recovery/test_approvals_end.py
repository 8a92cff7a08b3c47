"""How a request ends: by its clocks, rejected, withdrawn, used, not satisfiable, renewed (R5 to R10, R14)."""

from __future__ import annotations

import pytest

from recovery.engine import approvals
from recovery.engine.refusals import AlreadyDone, NothingToWithdraw, NotRenewable, TooLate
from runs import access, clock, errors, record
from runs.models import Approval, Attempt, Effect, Epoch, Person, Run, Signature
from runs.states import ApprovalState, EffectState, SignatureState
from tests.recovery.signers import granted, open_reviews, reject, renew, sent, sign, withdraw
from tests.recovery.stage import Stage, later, stage


@pytest.fixture
def s(db: None) -> Stage:
    return stage()


# When


def test_signing_ends_at_approve_by_to_the_instant(s: Stage) -> None:
    """R6: ``now >= approve_by`` is over."""
    approval = s.asked()
    assert approval.approve_by is not None
    later(seconds=(approval.approve_by - clock.now()).total_seconds() - 5)
    sign(approval, s.approver_b)
    later(seconds=5)
    with pytest.raises(errors.ApprovalExpired) as refused:
        sign(approval, s.approver_c)
    assert refused.value.facts["at"] == approval.approve_by.isoformat()


def test_what_is_over_waits_for_a_renewal(s: Stage) -> None:
    pending, signed = s.asked(), granted(s)
    later(minutes=61)
    assert approvals.expire_due(clock.now(), 100) == 1
    later(hours=8)
    assert approvals.expire_due(clock.now(), 100) == 1
    assert approvals.expire_due(clock.now(), 100) == 0
    for approval in (pending, signed):
        approval.refresh_from_db()
        assert approval.state == ApprovalState.EXPIRED
        assert Effect.objects.get(pk=approval.effect_id).state == EffectState.AWAITING_APPROVAL
        (review,) = open_reviews(approval)
        assert review.why["code"] == "approval_expired"
        with pytest.raises(errors.ApprovalExpired):
            sign(approval, s.approver_f)
        s.sound(approval.run_id)


def test_nothing_is_sent_after_execute_by(s: Stage) -> None:
    """Invariant 8: signed in time, too late to send; before the sweep has seen it."""
    approval = granted(s)
    effect = Effect.objects.get(pk=approval.effect_id)
    assert isinstance(approvals.check_before_send(effect, clock.now()), Approval)
    assert approval.execute_by is not None
    judged = approvals.check_before_send(effect, approval.execute_by)
    assert isinstance(judged, approvals.Refused)
    later(minutes=60)
    record.commit(record.Commit(s.here.pk, approval.run_id, approvals.give_back(effect, judged)))
    approval.refresh_from_db()
    assert (judged.code, approval.state) == ("approval_expired", ApprovalState.EXPIRED)
    assert Effect.objects.get(pk=effect.pk).state == EffectState.AWAITING_APPROVAL
    assert [r.why["code"] for r in open_reviews(approval)] == ["approval_expired"]
    s.sound(approval.run_id)


# Reject and withdraw


def test_one_reject_ends_it_and_the_run_goes_on(s: Stage) -> None:
    approval = s.asked()
    sign(approval, s.approver_b)
    done = reject(approval, s.approver_c)
    approval.refresh_from_db()
    effect = Effect.objects.get(pk=approval.effect_id)
    assert (approval.state, effect.state) == (ApprovalState.REJECTED, EffectState.DECLINED)
    assert effect.reason["facts"]["by"] == "Approver C"
    assert Run.objects.get(pk=approval.run_id).wake_at == done.at
    assert open_reviews(approval) == []
    with pytest.raises(errors.ApprovalEnded) as refused:
        sign(approval, s.approver_f)
    assert (refused.value.facts["state"], refused.value.facts["who"]) == ("rejected", "Approver C")
    s.sound(approval.run_id)


def test_a_reject_beats_a_full_set_that_was_not_used(s: Stage) -> None:
    approval = granted(s)
    assert reject(approval, s.approver_b).facts["changed_mind"] is True
    assert Effect.objects.get(pk=approval.effect_id).state == EffectState.DECLINED
    states = Signature.objects.filter(approval=approval, person=s.approver_b).values_list("state", flat=True)
    assert sorted(states) == [SignatureState.REJECTED, SignatureState.WITHDRAWN]
    s.sound(approval.run_id)


def test_withdrawing_before_the_send_takes_the_set_apart(s: Stage) -> None:
    """R9."""
    approval = granted(s)
    done = withdraw(approval, s.approver_b)
    approval.refresh_from_db()
    assert (done.facts["signed"], done.facts["was_granted"]) == (1, True)
    assert (approval.state, approval.execute_by, approval.granted_at) == (ApprovalState.PENDING, None, None)
    assert Effect.objects.get(pk=approval.effect_id).state == EffectState.AWAITING_APPROVAL
    assert len(open_reviews(approval)) == 1
    assert Run.objects.get(pk=approval.run_id).waiting_on == "approval"
    with pytest.raises(NothingToWithdraw):
        withdraw(approval, s.approver_b)
    assert sign(approval, s.approver_b).facts["granted"] is True
    s.sound(approval.run_id)


def test_after_the_send_it_is_too_late_for_either(s: Stage) -> None:
    approval = granted(s)
    sent(s, approval)
    assert Approval.objects.get(pk=approval.pk).state == ApprovalState.CONSUMED
    for what in (withdraw, reject, sign):
        with pytest.raises(TooLate) as refused:
            what(approval, s.approver_b)
        assert refused.value.facts["sent_at"] == Attempt.objects.get().committed_at.isoformat()
        assert refused.value.facts["state"] == EffectState.IN_FLIGHT


def test_a_request_is_used_once_and_by_its_own_effect(s: Stage) -> None:
    """R7, R10: consumed belongs to its effect; a resend of it is judged like a first send."""
    approval = granted(s)
    used = approvals.consume(approval)
    sent(s, approval)
    with pytest.raises(errors.LostRace):
        s.write(approval.run_id, *used)
    effect = Effect.objects.get(pk=approval.effect_id)
    assert approvals.still_good(effect, clock.now())
    good = approvals.check_before_send(effect, clock.now())
    assert isinstance(good, Approval)
    assert approvals.consume(good) == []
    later(minutes=61)
    assert not approvals.still_good(effect, clock.now())


def test_a_resend_needs_the_signers_still(s: Stage) -> None:
    """R10."""
    approval = granted(s)
    sent(s, approval)
    effect = Effect.objects.get(pk=approval.effect_id)
    Person.objects.filter(pk=s.approver_c.pk).update(is_active=False)
    assert not approvals.still_good(effect, clock.now())


def test_bytes_that_differ_from_what_was_signed_are_not_sent(s: Stage) -> None:
    approval = granted(s)
    effect = Effect.objects.get(pk=approval.effect_id)
    effect.body = effect.body.replace("120500", "920500")
    judged = approvals.check_before_send(effect, clock.now())
    assert isinstance(judged, approvals.Refused)
    assert judged.code == "digest_differs"


def test_an_approval_of_an_earlier_epoch_is_void(s: Stage) -> None:
    approval = granted(s)
    Epoch.objects.create(id=2, system_identifier="x", timeline=2, began_at=clock.now())
    judged = approvals.check_before_send(Effect.objects.get(pk=approval.effect_id), clock.now())
    assert isinstance(judged, approvals.Refused)
    assert judged.code == "approval_void"


def test_an_amount_below_the_limit_needs_nobody(s: Stage) -> None:
    run = s.run()
    below, above = (Effect(**s.row(run, EffectState.READY, amount=amount)) for amount in (99_999, 100_000))
    assert approvals.check_before_send(below, clock.now()) is None
    judged = approvals.check_before_send(above, clock.now())
    assert isinstance(judged, approvals.Refused)
    assert judged.code == "approval_missing"


def test_a_cancelled_run_takes_its_request_along(s: Stage) -> None:
    approval = s.asked()
    s.write(
        approval.run_id,
        *approvals.revoke(Effect.objects.get(pk=approval.effect_id)),
    )
    assert open_reviews(approval) == []
    with pytest.raises(errors.ApprovalEnded) as refused:
        sign(approval, s.approver_b)
    assert refused.value.facts["state"] == ApprovalState.REVOKED


# Quorum and renewal


def test_a_rule_that_nobody_can_meet_says_so_and_follows_people(s: Stage) -> None:
    """R14: at once when asked, again when people come and go."""
    s.approvers.members.remove(s.approver_c, s.approver_f)
    approval = s.asked()
    assert approval.state == ApprovalState.UNSATISFIABLE
    (review,) = open_reviews(approval)
    assert (review.why["code"], review.severity) == ("no_quorum", "high")
    assert (review.why["facts"]["needed"], review.why["facts"]["eligible"]) == (2, 1)
    with pytest.raises(errors.ApprovalEnded):
        sign(approval, s.approver_b)
    assert approvals.reevaluate(clock.now(), 10) == 0
    s.approvers.members.add(s.approver_c)
    assert approvals.reevaluate(clock.now(), 10) == 1
    approval.refresh_from_db()
    assert approval.state == ApprovalState.PENDING
    sign(approval, s.approver_b)
    Person.objects.filter(pk=s.approver_c.pk).update(is_active=False)
    assert approvals.reevaluate(clock.now(), 10) == 1
    approval.refresh_from_db()
    assert approval.state == ApprovalState.UNSATISFIABLE
    assert [r.why["code"] for r in open_reviews(approval)] == ["no_quorum"]
    s.sound(approval.run_id)


def test_short_of_quorum_before_the_send_waits_for_another_signer(s: Stage) -> None:
    approval = granted(s)
    s.approvers.members.remove(s.approver_b)
    effect = Effect.objects.get(pk=approval.effect_id)
    entries = approvals.give_back(effect, approvals.Refused("approval_expired"))
    record.commit(record.Commit(s.here.pk, approval.run_id, entries))
    approval.refresh_from_db()
    assert approval.state == ApprovalState.PENDING
    assert [r.why["code"] for r in open_reviews(approval)] == ["short_of_quorum"]
    assert sign(approval, s.approver_f).facts["granted"] is True
    s.sound(approval.run_id)


def test_a_renewal_asks_anew_for_the_same_thing(s: Stage) -> None:
    old = granted(s)
    later(minutes=61)
    with pytest.raises(AlreadyDone):
        renew(old, s.oncall_g)
    approvals.expire_due(clock.now(), 10)
    done = renew(old, s.oncall_g)
    new = Approval.objects.get(pk=done.facts["approval"])
    effect = Effect.objects.get(pk=old.effect_id)
    assert (new.revision, new.state, effect.revision) == (2, ApprovalState.PENDING, 2)
    assert (new.body, new.fields["params"]) == (old.body, old.fields["params"])
    assert new.digest != old.digest
    assert Approval.objects.get(pk=old.pk).state == ApprovalState.SUPERSEDED
    assert (len(open_reviews(old)), len(open_reviews(new))) == (0, 1)
    assert new.requester_id == s.oncall_g.pk
    assert set(new.editors) == {str(s.oncall_a.pk)}
    with pytest.raises(errors.Superseded):
        renew(old, s.oncall_g)
    with pytest.raises(AlreadyDone):
        renew(new, s.oncall_g)
    assert sign(new, s.approver_b).facts["signed"] == 1
    s.sound(old.run_id)


def test_whoever_asks_again_does_not_sign(s: Stage) -> None:
    access.grant(s.approver_b, s.here, ["approver", "on-call"])
    old = s.asked()
    later(hours=9)
    approvals.expire_due(clock.now(), 10)
    done = renew(old, s.approver_b)
    with pytest.raises(errors.OwnRequest) as refused:
        sign(Approval.objects.get(pk=done.facts["approval"]), s.approver_b)
    assert refused.value.facts["why"] == "asked"


def test_what_cannot_be_renewed(s: Stage) -> None:
    rejected, expired = s.asked(), s.asked()
    reject(rejected, s.approver_b)
    with pytest.raises(NotRenewable):
        renew(rejected, s.oncall_g)
    with pytest.raises(errors.NotAllowed):
        renew(expired, s.approver_b)
    later(days=2)
    approvals.expire_due(clock.now(), 10)
    with pytest.raises(errors.ApprovalExpired) as refused:
        renew(expired, s.oncall_g)
    assert refused.value.facts["clock"] == "deadline"
