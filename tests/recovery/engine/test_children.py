"""Runs that a run starts: one child a key, its end only rings, what reaches the parent reaches it too."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from recovery import failpoints
from recovery.actions import runs as actions
from recovery.engine import lineage
from runs import clock
from runs.models import Event, Run
from runs.states import EventKind, ReviewKind, RunState, Scope, WaitingOn
from tests.recovery.engine.world import World
from tests.recovery.stage import act


def parent(w: World, child: str = "test.many", *keys: str, **input: object) -> UUID:
    return w.accept("test.parent", child=child, input=input, keys=keys or ["one"])


def only_child(run: UUID) -> Run:
    return Run.objects.get(parent_id=run)


def test_the_parent_waits_without_a_worker_and_is_told_how_it_ended(w: World) -> None:
    """Invariant 11."""
    run = parent(w, what=[("pay", "ch_a")])
    assert w.advance(run) == "waits: child"
    row, child = w.run(run), only_child(run)
    assert (row.state, row.waiting_on, row.lease_owner) == (RunState.WAITING, WaitingOn.CHILD, None)
    assert (child.state, child.child_key, child.depth) == (RunState.ACCEPTED, "one", 1)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert w.heard(run) == [["one", "completed", "finished"]]
    assert [e.data["child"] for e in w.events(run, EventKind.RUN_CHILD_ENDED)] == [str(child.pk)]


def test_it_is_whose_the_parent_is(w: World) -> None:
    run = parent(w, what=[("pay", "ch_a")])
    w.advance(run)
    row, child = w.run(run), only_child(run)
    for name in ("workspace_id", "principal", "started_by_id", "goal", "priority", "deadline"):
        assert getattr(child, name) == getattr(row, name), name
    assert Event.objects.get(run_id=child.pk, seq=1).data["parent"] == str(run)


def test_its_own_deadline_holds_where_it_is_earlier(w: World) -> None:
    run = parent(w, "test.bounded", what=[("slow", "ch_a")])
    w.advance(run)
    row, child = w.run(run), only_child(run)
    assert row.deadline is not None and child.deadline is not None
    assert child.deadline < row.deadline - timedelta(days=1)


def test_a_child_that_failed_is_told(w: World) -> None:
    run = parent(w, "test.waiter", mode="timeout")
    w.drive(jump=timedelta(minutes=11))
    assert w.run(run).state == RunState.FAILED
    assert w.heard(run) == [["one", "failed", "no_word"]]


def test_children_one_after_the_other(w: World) -> None:
    run = parent(w, "test.many", "one", "two", what=[("pay", "ch_a")])
    # The second asks for the same effect, meets it, and it took place once (invariant 3).
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert [line[0] for line in w.heard(run)] == ["one", "two"]
    assert Run.objects.filter(parent_id=run).count() == 2


def test_the_same_key_again_meets_the_child_that_ended(w: World) -> None:
    """A step that asks twice under one key starts one child, and is told its end without a wait."""
    run = parent(w, "test.many", "one", "one", what=[("pay", "ch_a")])
    w.drive()
    assert w.heard(run) == [["one", "completed", "finished"]] * 2
    assert Run.objects.filter(parent_id=run).count() == 1


def test_a_key_names_one_child_only(w: World) -> None:
    """Invariant 3: the same key for another run quarantines the one that asks."""
    from recovery.contract import registry
    from tests.recovery.engine import family

    run = parent(w, "test.many", "one", "one", what=[("pay", "ch_a")])
    w.advance(run)
    kind = registry.run_type("test.parent", 1)
    assert isinstance(kind, family.Parent)
    begin = family.Parent.begin

    def another(self: family.Parent, seen: object) -> object:
        seen.data.input = {"what": [["pay", "ch_b"]]}  # type: ignore[attr-defined]
        return begin(self, seen)  # type: ignore[arg-type]

    family.Parent.begin = another  # type: ignore[assignment,method-assign]
    try:
        w.drive()
    finally:
        family.Parent.begin = begin  # type: ignore[method-assign]
    assert w.run(run).state == RunState.QUARANTINED
    assert w.run(run).gate[0]["code"] == "key_mismatch"
    assert Run.objects.filter(parent_id=run).count() == 1


@pytest.mark.parametrize("point", ["advance.before_commit", "advance.after_step"])
def test_a_death_before_the_commit_starts_none(w: World, point: str) -> None:
    """The step is taken again by another worker, and there is one child."""
    run = parent(w, what=[("pay", "ch_a")])
    failpoints.arm(point, "raise")
    with pytest.raises(failpoints.Failpoint):
        w.advance(run)
    failpoints.disarm()
    assert Run.objects.filter(parent_id=run).count() == 0
    w.drive(jump=timedelta(seconds=2))
    assert w.run(run).state == RunState.COMPLETED
    assert Run.objects.filter(parent_id=run).count() == 1


def test_parent_and_child_are_accepted_together_or_not_at_all(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child's insert fails: the parent does not wait for a run that does not exist."""
    from runs import record

    def breaks(*given: object) -> None:
        raise failpoints.Failpoint("accept")

    run = parent(w, what=[("pay", "ch_a")])
    monkeypatch.setattr(record, "accept", breaks)
    with pytest.raises(failpoints.Failpoint):
        w.advance(run)
    monkeypatch.undo()
    assert w.run(run).waiting_on == ""
    assert w.events(run, EventKind.RUN_CHILD_STARTED) == []


def test_a_child_that_ended_before_its_ring_was_heard(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that ended the child dies before it rings: the sweep finds the parent by the record."""
    run = parent(w, what=[("pay", "ch_a")])
    w.advance(run)
    with monkeypatch.context() as silent:
        silent.setattr(lineage, "ring_parent", lambda child: None)
        w.advance(only_child(run).pk)
    assert only_child(run).state == RunState.COMPLETED
    assert w.run(run).wake_at is not None and w.run(run).wake_at > clock.now()  # type: ignore[operator]
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_a_child_that_ends_while_its_parent_is_looking(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It read the child as alive, the child ends and rings, then the parent says that it waits: it is due."""
    from recovery.engine import children

    run = parent(w, what=[("pay", "ch_a")])
    w.advance(run)
    wait = children._wait

    def late(s: object, entries: list[object]) -> str:
        w.advance(only_child(run).pk)
        return wait(s, entries)  # type: ignore[arg-type]

    with monkeypatch.context() as slow:
        slow.setattr(children, "_wait", late)
        assert w.advance_anyway(run) == "waits: child"
    assert w.advance(run) == "completed"


def test_a_quarantined_child_keeps_its_parent_waiting(w: World) -> None:
    """Visibly: the child's review is open, and once a person ends it the parent goes on."""
    run = parent(w, "test.broken", mode="raises")
    w.drive()
    child = only_child(run)
    assert child.state == RunState.QUARANTINED
    assert w.run(run).waiting_on == WaitingOn.CHILD
    assert w.reviews(child.pk) == [ReviewKind.QUARANTINED]
    w.cancel(child.pk)
    w.drive()
    assert w.run(run).state == RunState.FAILED
    assert w.heard(run) == [["one", "cancelled", "cancelled"]]


def test_a_child_of_a_child(w: World) -> None:
    run = w.accept("test.nested", amount=3)
    w.drive()
    leaf = Run.objects.get(depth=3)
    w.signal(leaf.pk, "told", text="go")
    w.drive()
    assert set(Run.objects.values_list("state", flat=True)) == {RunState.COMPLETED}
    assert w.heard(run) == ["completed"]


def test_a_chain_of_children_ends_somewhere(w: World) -> None:
    """Invariant 10: a type that starts itself for ever is stopped, and every run above it waits visibly."""
    w.accept("test.nested", amount=50)
    w.drive(passes=200)
    assert Run.objects.count() == 9
    deepest = Run.objects.get(depth=8)
    assert (deepest.state, deepest.gate[0]["code"]) == (RunState.QUARANTINED, "too_deep")


@pytest.mark.parametrize(
    ("data", "code"),
    [({"child": "test.nowhere"}, "unknown_run_type"), ({"input": {"amount": "much"}}, "params_invalid")],
)
def test_a_child_that_cannot_be_started_quarantines_its_parent(w: World, data: dict[str, object], code: str) -> None:
    run = w.accept("test.parent", **data)
    w.drive()
    assert (w.run(run).state, w.run(run).gate[0]["code"]) == (RunState.QUARANTINED, code)
    assert w.reviews(run) == [ReviewKind.QUARANTINED]


def test_cancelling_passes_down_and_the_parent_is_last(w: World) -> None:
    """Through a child of a child: nothing above says cancelled while something below can act."""
    run = w.accept("test.nested", amount=2)
    w.drive()
    w.cancel(run)
    w.drive()
    ends = {r.depth: r.ended_at for r in Run.objects.all()}
    assert set(Run.objects.values_list("state", flat=True)) == {RunState.CANCELLED}
    assert ends[2] < ends[1] < ends[0]
    child = only_child(run)
    assert (child.cancel_scope, child.cancel_by_id) == (Scope.PARENT, w.s.oncall_a.pk)


def test_the_parent_is_not_cancelled_while_a_childs_outcome_is_unknown(w: World) -> None:
    w.sandbox.dial("mail", reply="drop", times=1)
    run = parent(w, what=[("mail", "ch_a")])
    w.drive()
    w.cancel(run)
    w.drive()
    assert (w.run(run).state, w.run(run).waiting_on) == (RunState.CANCELLING, WaitingOn.CHILD)
    assert only_child(run).state == RunState.CANCELLING
    assert len(w.sandbox.requests()) == 1


def test_cancelling_alone_leaves_the_child_and_says_so(w: World) -> None:
    run = w.accept("test.nested", amount=1)
    w.drive()
    actions.cancel(run, actor=w.s.oncall_a, act=act("cancel"), reason="no more", scope=Scope.RUN)
    w.drive()
    child = only_child(run)
    assert (w.run(run).state, child.state) == (RunState.CANCELLED, RunState.WAITING)
    assert [c["run"] for c in w.run(run).ended_how["children"]] == [str(child.pk)]
    w.signal(child.pk, "told", text="go")
    w.drive()
    assert only_child(run).state == RunState.COMPLETED


def test_a_request_can_be_widened_and_never_narrowed(w: World) -> None:
    """Invariant 15: asking again adds the children and at once; it takes nothing back."""
    w.sandbox.dial("mail", reply="drop", times=1)
    run = parent(w, what=[("mail", "ch_a")])
    w.drive()
    for scope, at_once in ((Scope.RUN, False), (Scope.CHILDREN, True), (Scope.RUN, False)):
        actions.cancel(run, actor=w.s.oncall_a, act=act("cancel"), reason="no", scope=scope, at_once=at_once)
    row = w.run(run)
    assert (row.cancel_scope, row.cancel_at_once) == (Scope.CHILDREN, True)
    w.drive()
    assert only_child(run).cancel_at_once


def test_the_parents_deadline_ends_both(w: World) -> None:
    run = w.accept("test.parent", child="test.nested", input={"amount": 0})
    w.drive()
    w.drive(jump=timedelta(days=3))
    assert (only_child(run).state, w.run(run).state) == (RunState.EXPIRED, RunState.EXPIRED)


def test_the_parents_deadline_waits_for_a_child_that_stands(w: World) -> None:
    """A quarantined child is a person's; its parent does not end over its head."""
    run = parent(w, "test.broken", mode="raises")
    w.drive(jump=timedelta(days=3))
    assert (w.run(run).state, w.run(run).waiting_on) == (RunState.WAITING, WaitingOn.CHILD)
    w.cancel(only_child(run).pk)
    w.drive()
    assert w.run(run).state == RunState.EXPIRED


def test_a_death_while_the_request_is_passed_down(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes the parent over asks again; asking twice is asking once."""
    from recovery.engine import children

    def dies(*given: object) -> None:
        raise failpoints.Failpoint("passing down")

    run = w.accept("test.nested", amount=2)
    w.drive()
    w.cancel(run)
    with monkeypatch.context() as broken:
        broken.setattr(children, "_tell", dies)
        with pytest.raises(failpoints.Failpoint):
            w.advance(run)
    assert w.run(run).state == RunState.CANCELLING and only_child(run).state == RunState.WAITING
    w.drive(jump=timedelta(seconds=5))
    assert set(Run.objects.values_list("state", flat=True)) == {RunState.CANCELLED}
    assert len(w.events(only_child(run).pk, EventKind.RUN_CANCEL_ASKED)) == 1
