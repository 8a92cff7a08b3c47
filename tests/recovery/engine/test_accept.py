"""Accepting a run: recorded before it is answered (invariant 1), once (invariant 15), or refused by field."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from recovery import failpoints
from recovery.actions import runs as actions
from recovery.contract import registry
from recovery.contract.errors import ParamsInvalid, UnknownRunType
from runs import clock, errors
from runs.models import Checkpoint, Event, Run
from runs.record import Act
from runs.states import EventKind, RunState
from tests.recovery.engine.world import World
from tests.recovery.stage import act

ORDER = {
    "order": "A-1",
    "charge": "ch_1",
    "amount": 8400,
    "currency": "EUR",
    "email": "a@b.example",
    "provider": "payments",
}


def test_what_is_accepted_is_on_the_record(w: World) -> None:
    """Invariant 1: run, first event and first checkpoint, in one commit, before anybody works."""
    run = w.accept("test.many", "pay")
    row = w.run(run)
    assert (row.state, row.started_by, row.principal) == (
        RunState.ACCEPTED,
        w.s.oncall_a,
        w.s.oncall_a.email,
    )
    assert [e.kind for e in w.events(run)] == [EventKind.RUN_ACCEPTED]
    assert Checkpoint.objects.get(run_id=run).seq == 1
    assert row.wake_at is not None and row.wake_at <= clock.now()


def test_an_unknown_run_type_is_refused(w: World) -> None:
    with pytest.raises(UnknownRunType) as refused:
        actions.accept(w.s.here, "no.such", {}, actor=w.s.oncall_a, act=act())
    assert refused.value.facts["type"] == "no.such"
    assert not Run.objects.exists()


def test_each_invalid_field_is_named(w: World) -> None:
    """Bad input: which field and what is wrong with it, never the value."""
    wrong = {**ORDER, "amount": -1, "currency": "euro", "charge": "", "more": 1}
    del wrong["email"]
    with pytest.raises(ParamsInvalid) as refused:
        actions.accept(w.s.here, "orders.cancel", wrong, actor=w.s.oncall_a, act=act())
    assert set(refused.value.facts["fields"]) == {"amount", "currency", "charge", "more", "email"}
    assert "euro" not in str(refused.value.facts)
    assert not Run.objects.exists()


def test_who_may_not_start_is_refused_and_outsiders_see_nothing(w: World) -> None:
    """Invariant 14: another workspace's person gets the same answer as for a workspace that is not there."""
    with pytest.raises(errors.NotAllowed):
        w.accept("test.many", "pay", actor=w.s.auditor_d)
    with pytest.raises(errors.NotFound):
        w.accept("test.many", "pay", actor=w.s.outsider_e)
    assert not Run.objects.exists()


def test_the_same_act_again_is_the_same_run(w: World) -> None:
    """Fault 2, invariant 15: the answer was lost, the client asks again, one run stands."""
    how = Act.over(uuid.uuid4(), "runs", ORDER)
    first = actions.accept(w.s.here, "orders.cancel", ORDER, actor=w.s.oncall_a, act=how)
    again = actions.accept(w.s.here, "orders.cancel", ORDER, actor=w.s.oncall_a, act=how)
    assert (again.run, again.replayed, first.replayed) == (first.run, True, False)
    assert Run.objects.count() == 1 and Event.objects.filter(kind=EventKind.RUN_ACCEPTED).count() == 1


def test_the_same_act_with_another_body_is_refused(w: World) -> None:
    """Fault 4: the original is untouched."""
    how = Act.over(uuid.uuid4(), "runs", ORDER)
    first = actions.accept(w.s.here, "orders.cancel", ORDER, actor=w.s.oncall_a, act=how)
    other = {**ORDER, "amount": 1}
    with pytest.raises(errors.ActionMismatch):
        actions.accept(w.s.here, "orders.cancel", other, actor=w.s.oncall_a, act=Act.over(how.id, "runs", other))
    assert [r.pk for r in Run.objects.all()] == [first.run]


def test_another_persons_act_of_the_same_id_is_another_act(w: World) -> None:
    """An action id is unique per workspace, actor and route."""
    how = Act.over(uuid.uuid4(), "runs", ORDER)
    mine = actions.accept(w.s.here, "orders.cancel", ORDER, actor=w.s.oncall_a, act=how)
    theirs = actions.accept(w.s.here, "orders.cancel", ORDER, actor=w.s.oncall_g, act=how)
    assert mine.run != theirs.run


@pytest.mark.parametrize("point", ["accept.before_commit", "accept.after_commit"])
def test_a_break_on_either_side_of_the_commit_makes_one_run(w: World, point: str) -> None:
    """Faults 1 and 2: no answer either way; the same act again gives exactly one run."""
    how = Act.over(uuid.uuid4(), "runs", ORDER)
    failpoints.arm(point, "raise")
    with pytest.raises(failpoints.Failpoint):
        actions.accept(w.s.here, "orders.cancel", ORDER, actor=w.s.oncall_a, act=how)
    failpoints.disarm()
    assert Run.objects.count() == (1 if point == "accept.after_commit" else 0)
    actions.accept(w.s.here, "orders.cancel", ORDER, actor=w.s.oncall_a, act=how)
    assert Run.objects.count() == 1


def test_what_was_accepted_stays_accepted_when_its_type_is_gone(w: World) -> None:
    """Invariant 15: a replay needs no contract."""
    how = act("accept")
    first = actions.accept(w.s.here, "test.many", {}, actor=w.s.oncall_a, act=how)
    known = registry._registry._run_types.pop(("test.many", 1))
    again = actions.accept(w.s.here, "test.many", {}, actor=w.s.oncall_a, act=how)
    registry._registry._run_types["test.many", 1] = known
    assert again.run == first.run and again.replayed


def test_the_deadline_is_the_clients_or_the_types(w: World) -> None:
    theirs = clock.now() + timedelta(minutes=5)
    done = actions.accept(w.s.here, "test.bounded", {}, actor=w.s.oncall_a, act=act(), deadline=theirs)
    assert w.run(done.run).deadline == theirs
    own = w.run(w.accept("test.bounded")).deadline
    assert own is not None and own > clock.now() + timedelta(minutes=119)
    assert w.run(w.accept("test.many")).deadline is None
