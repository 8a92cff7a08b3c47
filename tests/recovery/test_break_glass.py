"""Break-glass for signatures: sent without them, loudly, nothing else left out, confirmed by a second person (R13)."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from recovery.actions import break_glass
from recovery.actions.common import Done
from recovery.engine import approvals
from runs import access, clock, errors
from runs.models import Approval, Effect, Event, Person, Review
from runs.states import ApprovalState, EffectState, EventKind, ReviewKind
from tests.recovery.signers import granted, reject, renew, sent, sign, withdraw
from tests.recovery.stage import SAW, Stage, act, later, stage


@pytest.fixture
def s(db: None) -> Stage:
    return stage()


@pytest.fixture
def admin(s: Stage) -> Person:
    made = Person.objects.create_user("admin-h@acme-pay.example", "Admin H")
    access.grant(made, s.here, ["administrator"])
    return made


def override(approval: Approval, who: Person, **given: object) -> Done:
    told = {"reason": "nobody is awake", "digest": approval.digest, "saw": SAW, "act": act("override"), **given}
    return break_glass.override(approval.pk, actor=who, **told)  # type: ignore[arg-type]


def confirm(approval: Approval, who: Person) -> Done:
    return break_glass.confirm_override(approval.pk, actor=who, act=act("confirm"), reason="it was right")


def judged(effect: UUID) -> object:
    return approvals.check_before_send(Effect.objects.get(pk=effect), clock.now())


def glass(approval: Approval) -> Review:
    return Review.objects.get(subject=approval.pk, kind=ReviewKind.BREAK_GLASS)


def test_it_is_sent_without_signatures_and_confirmed_later(s: Stage, admin: Person) -> None:
    """Invariant 8: recorded as such, and the review outlives the send."""
    approval = s.asked()
    override(approval, admin)
    again = Approval.objects.get(pk=approval.pk)
    assert (again.state, again.overridden_by_id) == (ApprovalState.GRANTED, admin.pk)
    assert again.effect.state == EffectState.READY
    assert isinstance(judged(approval.effect_id), Approval)
    sent(s, again)
    review = glass(approval)
    assert (review.state, review.severity, review.due_at - review.opened_at) == ("open", "high", timedelta(hours=24))
    assert (
        Event.objects.get(run_id=approval.run_id, kind=EventKind.APPROVAL_OVERRIDDEN).body["reason"]
        == "nobody is awake"
    )
    confirm(approval, s.approver_b)
    assert glass(approval).state == "closed"
    s.sound(approval.run_id)


def test_only_with_the_right(s: Stage) -> None:
    approval = s.asked()
    for person in (s.oncall_a, s.approver_b, s.auditor_d):
        with pytest.raises(errors.NotAllowed):
            override(approval, person)
    with pytest.raises(errors.NotFound):
        override(approval, s.outsider_e)
    with pytest.raises(errors.ReasonNeeded):
        admin = Person.objects.create_user("admin-i@acme-pay.example", "Admin I")
        access.grant(admin, s.here, ["administrator"])
        override(approval, admin, reason=" ")
    assert Approval.objects.get(pk=approval.pk).state == ApprovalState.PENDING


def test_the_second_person_is_another(s: Stage, admin: Person) -> None:
    approval = s.asked()
    override(approval, admin)
    with pytest.raises(errors.SamePerson):
        confirm(approval, admin)
    twin = Person.objects.create_user("h2@acme-pay.example", "Admin H 2")
    Person.objects.filter(pk=twin.pk).update(owner=admin.owner_id)
    access.grant(twin, s.here, ["administrator"])
    with pytest.raises(errors.SamePerson):
        confirm(approval, Person.objects.get(pk=twin.pk))
    with pytest.raises(errors.NotAllowed):
        confirm(approval, s.auditor_d)
    assert glass(approval).state == "open"


def test_late_is_recorded_as_late(s: Stage, admin: Person) -> None:
    approval = s.asked()
    override(approval, admin)
    later(hours=25)
    assert confirm(approval, s.approver_b).facts["late"] is True
    with pytest.raises(errors.RunsError) as refused:
        confirm(approval, s.approver_c)
    assert refused.value.code == "nothing_to_confirm"


@pytest.mark.parametrize("what", ["digest", "epoch", "time"])
def test_it_stands_for_the_signatures_and_for_nothing_else(s: Stage, admin: Person, what: str) -> None:
    """Invariant 8: other bytes, an earlier epoch and a time that is over are refused as ever."""
    approval = s.asked()
    override(approval, admin)
    if what == "digest":
        Effect.objects.filter(pk=approval.effect_id).update(body='{"amount": 1}')
    elif what == "epoch":
        Approval.objects.filter(pk=approval.pk).update(epoch=0)
    else:
        later(hours=2)
    found = judged(approval.effect_id)
    assert isinstance(found, approvals.Refused)
    assert found.code == {"digest": "digest_differs", "epoch": "approval_void", "time": "approval_expired"}[what]


def test_not_on_what_is_stale_over_or_used(s: Stage, admin: Person) -> None:
    old = s.asked()
    s.amend(old, 90_000)
    with pytest.raises(errors.Superseded):
        override(old, admin)
    rejected = s.asked()
    reject(rejected, s.approver_b)
    with pytest.raises(errors.ApprovalEnded):
        override(rejected, admin)
    used = granted(s)
    sent(s, used)
    with pytest.raises(errors.RunsError) as refused:
        override(used, admin)
    assert refused.value.code == "too_late"
    with pytest.raises(errors.StaleVersion):
        override(s.asked(), admin, digest="0" * 64)


def test_one_that_ran_out_is_asked_for_again_first(s: Stage, admin: Person) -> None:
    approval = s.asked()
    later(hours=9)
    with pytest.raises(errors.ApprovalExpired):
        override(approval, admin)
    renew(approval, s.oncall_g)
    again = Approval.objects.get(effect_id=approval.effect_id, revision=2)
    override(again, admin)
    assert Approval.objects.get(pk=again.pk).state == ApprovalState.GRANTED


def test_where_nobody_can_sign(s: Stage, admin: Person) -> None:
    """R14: a rule that nobody can meet is what the glass is for."""
    s.approvers.members.clear()
    approval = s.asked()
    assert approval.state == ApprovalState.UNSATISFIABLE
    override(approval, admin)
    assert isinstance(judged(approval.effect_id), Approval)
    s.sound(approval.run_id)


def test_a_reject_still_beats_it(s: Stage, admin: Person) -> None:
    """R8; and the glass still has to be confirmed."""
    approval = s.asked()
    override(approval, admin)
    reject(Approval.objects.get(pk=approval.pk), s.approver_b)
    assert Effect.objects.get(pk=approval.effect_id).state == EffectState.DECLINED
    assert glass(approval).state == "open"


def test_a_signature_taken_back_takes_the_glass_back_too(s: Stage, admin: Person) -> None:
    """R9: one of two had signed; after it is withdrawn, signing again does not count the override."""
    approval = s.asked()
    sign(approval, s.approver_b)
    override(approval, admin)
    withdraw(approval, s.approver_b)
    again = Approval.objects.get(pk=approval.pk)
    assert (again.state, again.overridden_at) == (ApprovalState.PENDING, None)
    sign(again, s.approver_c)
    assert Approval.objects.get(pk=approval.pk).state == ApprovalState.PENDING


def test_twice_is_once(s: Stage, admin: Person) -> None:
    """Invariant 15."""
    approval = s.asked()
    mine = act("override")
    first = override(approval, admin, act=mine)
    before = s.counts()
    again = override(approval, admin, act=mine)
    assert (again.event, again.replayed, s.counts()) == (first.event, True, before)
