"""Following people who come and go costs the sweep the same, however many requests are open."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from recovery.engine import approvals
from runs import access, clock
from runs.models import Approval, Event, Person, Review
from runs.states import ApprovalState, EffectState, EventKind
from tests.recovery.signers import sign, withdraw
from tests.recovery.stage import Stage, stage


@pytest.fixture
def s(db: None) -> Stage:
    return stage()


def _queries() -> int:
    with CaptureQueriesContext(connection) as asked:
        assert approvals.reevaluate(clock.now(), 100) == 0
    return len(asked)


def test_its_queries_do_not_grow_with_the_requests(s: Stage) -> None:
    s.asked()
    few = _queries()
    for _ in range(4):
        s.asked(editors=(s.oncall_g,))
    assert _queries() == few


def test_each_request_is_judged_by_its_own_people(s: Stage) -> None:
    """R4, R14: an editor of one request is no signer of it, and still one of the others."""
    Person.objects.filter(pk=s.approver_f.pk).update(is_active=False)
    plain, edited = s.asked(), s.asked(editors=(s.approver_c,))
    assert (plain.state, edited.state) == (ApprovalState.PENDING, ApprovalState.UNSATISFIABLE)
    Person.objects.filter(pk=s.approver_f.pk).update(is_active=True)
    assert approvals.reevaluate(clock.now(), 100) == 1
    assert set(Approval.objects.values_list("state", flat=True)) == {ApprovalState.PENDING}


def test_signatures_that_count_again_grant_the_request(s: Stage) -> None:
    """R5 and R12: a right that was taken and given back makes nobody sign twice; nobody is left waiting in vain."""
    approval = s.asked()
    sign(approval, s.approver_b)
    access.grant(s.approver_b, s.here, [])
    sign(approval, s.approver_c)
    assert Approval.objects.get(pk=approval.pk).state == ApprovalState.PENDING, "one of them does not count"
    approvals.reevaluate(clock.now(), 500)
    assert Approval.objects.get(pk=approval.pk).state == ApprovalState.PENDING
    access.grant(s.approver_b, s.here, ["approver"])
    assert approvals.reevaluate(clock.now(), 500) == 1
    row = Approval.objects.select_related("effect").get(pk=approval.pk)
    assert (row.state, row.effect.state) == (ApprovalState.GRANTED, EffectState.READY)
    assert row.execute_by is not None
    kinds = list(Event.objects.filter(run_id=row.run_id).order_by("seq").values_list("kind", flat=True))
    assert kinds[-1] == EventKind.APPROVAL_GRANTED
    assert not Review.objects.filter(approval=row, state="open").exists()
    assert approvals.reevaluate(clock.now(), 500) == 0, "once"
    s.sound(row.run_id)


def test_a_signature_taken_back_does_not_count_again(s: Stage) -> None:
    """Only standing signatures do."""
    approval = s.asked()
    sign(approval, s.approver_b)
    access.grant(s.approver_b, s.here, [])
    sign(approval, s.approver_c)
    access.grant(s.approver_b, s.here, ["approver"])
    withdraw(approval, s.approver_b)
    assert approvals.reevaluate(clock.now(), 500) == 0
    assert Approval.objects.get(pk=approval.pk).state == ApprovalState.PENDING
