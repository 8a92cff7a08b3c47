"""Following people who come and go costs the sweep the same, however many requests are open."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from recovery.engine import approvals
from runs import clock
from runs.models import Approval, Person
from runs.states import ApprovalState
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
