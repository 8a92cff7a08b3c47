"""Who signs what, once: rules R1 to R5, invariants 8, 9, 14 and 15."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction

from recovery.actions.common import REFUSALS_A_MINUTE, Done
from recovery.contract import canonical
from recovery.engine import approvals
from runs import access, clock, doorbells, errors, record
from runs.models import Action, Approval, Effect, Event, Person, Run, Signature
from runs.record import Act
from runs.states import ApprovalState, EffectState, EventKind, RunState
from tests.recovery.signers import granted, open_reviews, reject, renew, sign, withdraw
from tests.recovery.stage import Stage, act, later, stage


@pytest.fixture
def s(db: None) -> Stage:
    return stage()


# The plain path


def test_two_sign_and_the_effect_may_be_sent(
    s: Stage, django_capture_on_commit_callbacks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval = s.asked()
    assert Run.objects.get(pk=approval.run_id).waiting_on == "approval"
    assert [r.why["code"] for r in open_reviews(approval)] == ["signatures_needed"]

    first = sign(approval, s.approver_b)
    assert (first.facts["signed"], first.facts["granted"], first.replayed) == (1, False, False)
    approval.refresh_from_db()
    assert (approval.state, approval.execute_by) == (ApprovalState.PENDING, None)

    rings: list[doorbells.Ring] = []
    monkeypatch.setattr(doorbells, "_ringers", [rings.append])
    with django_capture_on_commit_callbacks(execute=True):
        second = sign(approval, s.approver_c)
    approval.refresh_from_db()
    effect = Effect.objects.get(pk=approval.effect_id)
    assert second.facts["granted"] is True
    assert approval.state == ApprovalState.GRANTED
    assert approval.granted_at == second.at
    assert approval.execute_by is not None
    assert (approval.execute_by - second.at).total_seconds() == approval.execute_within == 3600
    assert effect.state == EffectState.READY
    assert open_reviews(approval) == []
    assert [ring.ready for ring in rings] == [(effect.pk,)]
    s.sound(approval.run_id)


def test_what_was_seen_is_kept_in_signature_and_event(s: Stage) -> None:
    approval = s.asked()
    saw = {
        "sentence": "Überweist 1.205,00 USD",
        "language": "de",
        "evidence": ["x"],
        "body": "another",
        "digest": "y",
    }
    done = sign(approval, s.approver_b, saw=saw)
    kept = Signature.objects.get(approval=approval)
    assert kept.saw == {
        "sentence": "Überweist 1.205,00 USD",
        "language": "de",
        "evidence": ["x"],
        "revision": 1,
        "digest": approval.digest,
        "body": approval.body,
        "precondition": {},
    }
    event = Event.objects.get(run_id=approval.run_id, seq=done.event)
    assert event.kind == EventKind.APPROVAL_SIGNED
    assert event.data["saw"] == kept.saw
    assert event.data["stake"] == {"kind": "money", "direction": "out", "amount": 120500, "currency": "USD"}
    assert event.data["by"]["name"] == "Approver B"
    assert event.body["reason"] == "looks right"


def test_the_digest_binds_everything_that_is_sent(s: Stage) -> None:
    """R2: any of the fields, the key or the bytes."""
    approval = s.asked()
    assert approval.digest == canonical.approval_digest(approval.fields)
    assert approval.fields["body"] == approval.body == approval.effect.body
    assert approval.fields["url"].endswith("/payments/v1/refunds")
    assert approval.fields["credential"] == "payments-live"
    assert approval.fields["key"] == approval.effect.sent_key
    for name, value in approval.fields.items():
        other = {**approval.fields, name: "changed" if value != "changed" else "other"}
        assert canonical.approval_digest(other) != approval.digest, name


# Who


def test_the_requester_cannot_sign_and_it_is_written_down(s: Stage) -> None:
    """Walk b.5: said before "not in the group", with the names of those who can."""
    approval = s.asked()
    sign(approval, s.approver_b)
    before = s.counts()
    with pytest.raises(errors.OwnRequest) as refused:
        sign(approval, s.oncall_a)
    assert refused.value.facts == {"why": "started", "names": ["Approver C", "Approver F"], "more": 0}
    assert s.counts() == before
    (line,) = s.refusals()
    assert (line["code"], line["by"], line["about"]["id"]) == ("own_request", "Oncall A", str(approval.pk))


def test_the_starter_cannot_sign_also_when_allowed_to_sign(s: Stage) -> None:
    access.grant(s.oncall_a, s.here, ["on-call", "approver"])
    s.approvers.members.add(s.oncall_a)
    with pytest.raises(errors.OwnRequest):
        sign(s.asked(), s.oncall_a)


def test_another_account_of_the_requesters_owner_cannot_sign(s: Stage) -> None:
    Person.objects.filter(pk__in=[s.oncall_a.pk, s.approver_b.pk]).update(owner="alice")
    with pytest.raises(errors.OwnRequest) as refused:
        sign(s.asked(), s.approver_b)
    assert refused.value.facts["why"] == "same_owner"


def test_who_edited_any_earlier_revision_cannot_sign(s: Stage) -> None:
    second = s.amend(s.asked(), 110_000, editor=s.approver_b)
    third = s.amend(second, 120_000)
    with pytest.raises(errors.OwnRequest) as refused:
        sign(third, s.approver_b)
    assert refused.value.facts["why"] == "edited"


def test_two_accounts_of_one_owner_count_once(s: Stage) -> None:
    approval = s.asked()
    sign(approval, s.approver_b)
    Person.objects.filter(pk__in=[s.approver_b.pk, s.approver_c.pk]).update(owner="bob")
    with pytest.raises(errors.AlreadySigned) as refused:
        sign(approval, s.approver_c)
    assert refused.value.facts["why"] == "same_owner"


def test_nobody_signs_twice(s: Stage) -> None:
    approval = s.asked()
    sign(approval, s.approver_b)
    with pytest.raises(errors.AlreadySigned):
        sign(approval, s.approver_b)
    approval.refresh_from_db()
    assert approval.state == ApprovalState.PENDING


def test_outside_the_group_without_the_right_or_inactive(s: Stage) -> None:
    approval = s.asked()
    with pytest.raises(errors.NotAllowed) as refused:
        sign(approval, s.auditor_d)
    assert refused.value.facts["permission"] == "sign"
    s.approvers.members.remove(s.approver_b)
    with pytest.raises(errors.NotInGroup) as also:
        sign(approval, s.approver_b)
    assert also.value.facts["group"] == "payments-approvers"
    Person.objects.filter(pk=s.approver_c.pk).update(is_active=False)
    with pytest.raises(errors.NotFound):
        sign(approval, s.approver_c)


@pytest.mark.parametrize("what", [sign, reject, withdraw, renew])
def test_the_neighbour_finds_nothing_and_leaves_nothing(s: Stage, what: Callable[..., Done]) -> None:
    """Invariant 14: foreign and missing are the same, also in what is written."""
    approval = s.asked()
    before = s.counts()
    with pytest.raises(errors.NotFound):
        what(approval, s.outsider_e)
    with pytest.raises(errors.NotFound):
        what(Approval(pk=uuid4(), digest="d"), s.approver_b)
    assert (s.counts(), s.refusals()) == (before, [])


def test_a_right_that_is_taken_away_stops_counting(s: Stage) -> None:
    """R5: at the next vote and before the send."""
    approval = s.asked()
    sign(approval, s.approver_b)
    s.approvers.members.remove(s.approver_b)
    assert sign(approval, s.approver_c).facts["granted"] is False
    assert sign(approval, s.approver_f).facts["granted"] is True
    access.grant(s.approver_f, s.here, ["auditor"])
    effect = Effect.objects.get(pk=approval.effect_id)
    judged = approvals.check_before_send(effect, clock.now())
    assert isinstance(judged, approvals.Refused)
    assert (judged.code, judged.facts["good"]) == ("short_of_quorum", 1)


# Which request


def test_an_older_revision_is_refused_with_what_changed(s: Stage) -> None:
    """R1, R3, walk b.3."""
    first = s.asked(amount=125_000)
    second = s.amend(first, 120_500)
    assert first.digest != second.digest
    before = s.counts()
    with pytest.raises(errors.Superseded) as refused:
        sign(first, s.approver_b)
    facts = refused.value.facts
    assert (facts["seen"], facts["revision"], facts["approval"]) == (1, 2, str(second.pk))
    assert facts["run"] == str(first.run_id)
    assert {"path": "params.amount", "before": 125_000, "after": 120_500} in facts["differences"]
    assert {d["path"] for d in facts["differences"]} == {"params.amount", "body.amount", "stake.amount"}
    assert s.counts() == before
    with pytest.raises(errors.Superseded):
        sign(second, s.approver_b, digest=first.digest)
    with pytest.raises(errors.StaleVersion):
        sign(second, s.approver_b, digest="0" * 64)
    assert [line["code"] for line in s.refusals()] == ["superseded", "superseded", "stale_version"]


def test_signatures_do_not_move_to_the_next_revision(s: Stage) -> None:
    first = granted(s)
    second = s.amend(first, 150_000)
    assert Approval.objects.get(pk=first.pk).state == ApprovalState.SUPERSEDED
    assert Effect.objects.get(pk=first.effect_id).state == EffectState.AWAITING_APPROVAL
    assert sign(second, s.approver_b).facts["signed"] == 1
    s.sound(first.run_id)


def test_a_signature_for_one_request_is_none_for_another_with_the_same_params(s: Stage) -> None:
    one, other = s.asked(), s.asked()
    with pytest.raises(errors.StaleVersion):
        sign(other, s.approver_b, digest=one.digest)


# Twice, refused, rolled back


def test_the_same_act_twice_counts_once(s: Stage) -> None:
    """Invariant 15: the first result, whatever came in between."""
    approval = s.asked()
    for what, who in ((sign, s.approver_b), (sign, s.approver_c)):
        how = act("sign")
        first = what(approval, who, how)
        after = s.counts()
        again = what(approval, who, how)
        assert (again.replayed, again.event, again.at, again.facts) == (
            True,
            first.event,
            first.at,
            first.facts,
        )
        assert s.counts() == after
    with pytest.raises(errors.ActionMismatch):
        sign(approval, s.approver_c, Act(how.id, how.route, "another"))
    how = act("reject")
    first = reject(approval, s.approver_b, how)
    after = s.counts()
    assert reject(approval, s.approver_b, how).event == first.event
    assert s.counts() == after
    s.sound(approval.run_id)


def test_a_repeat_is_for_those_who_may_still_see(s: Stage) -> None:
    approval, how = s.asked(), act("sign")
    sign(approval, s.approver_b, how)
    access.grant(s.approver_b, s.here, [])
    with pytest.raises(errors.NotFound):
        sign(approval, s.approver_b, how)


def test_a_reason_is_required(s: Stage) -> None:
    approval = s.asked()
    before = s.counts()
    with pytest.raises(errors.ReasonNeeded):
        sign(approval, s.approver_b, reason="  ")
    assert (s.counts(), s.refusals()) == (before, [])


def test_a_rollback_leaves_nothing(s: Stage, django_capture_on_commit_callbacks: Any) -> None:
    approval = s.asked()
    before = (s.counts(), Action.objects.count())

    class Later(Exception):
        pass

    with django_capture_on_commit_callbacks() as told, pytest.raises(Later), transaction.atomic():
        sign(approval, s.approver_b)
        raise Later
    assert told == []
    assert (s.counts(), Action.objects.count()) == before


def test_an_ended_run_is_not_signed_for(s: Stage) -> None:
    approval = s.asked()
    s.write(
        approval.run_id,
        record.run_moves({"state": RunState.EXPIRED, "waiting_on": ""}, times={"ended_at": 0}),
    )
    with pytest.raises(errors.RunEnded):
        sign(approval, s.approver_b)


def test_refusals_of_one_actor_are_kept_up_to_a_limit(s: Stage) -> None:
    approval = s.asked()
    for _ in range(REFUSALS_A_MINUTE + 3):
        with pytest.raises(errors.OwnRequest):
            sign(approval, s.oncall_a)
    assert len(s.refusals()) == REFUSALS_A_MINUTE
    assert [line["last_kept"] for line in s.refusals()] == [False] * (REFUSALS_A_MINUTE - 1) + [True]
    with pytest.raises(errors.NotAllowed):
        sign(approval, s.auditor_d)
    assert len(s.refusals()) == REFUSALS_A_MINUTE + 1
    later(minutes=1)
    with pytest.raises(errors.OwnRequest):
        sign(approval, s.oncall_a)
    assert len(s.refusals()) == REFUSALS_A_MINUTE + 2
