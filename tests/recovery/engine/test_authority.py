"""Check 3 and check 8: what the authority says of earlier results after a gap, and the bounded context."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from runs.models import WorkspaceUserPermission
from runs.states import EventKind, RunState, WaitingOn
from tests.recovery.engine import versions
from tests.recovery.engine.versions import go_on, use
from tests.recovery.engine.world import World
from tests.recovery.stage import later


def watched(w: World, **body: Any) -> UUID:
    use(versions.watching(**body))
    run = w.accept("test.watching", ("pay", "ch_w"))
    w.drive()
    assert w.run(run).waiting_on == WaitingOn.EVENT
    return run


def after(w: World, run: UUID) -> None:
    w.signal(run, "told")
    later(seconds=61)
    w.drive()


def changed_there(w: World) -> None:
    """Somebody else changed the refund with the other side since."""
    with w.sandbox.store.transaction() as db:
        db.execute("update effects set item = json_set(item, '$.id', 're_other')")


def test_what_the_authority_still_says_is_still_valid(w: World) -> None:
    """Check 3: asked again, the same version; the version is in the checkpoint."""
    run = watched(w)
    after(w, run)
    assert w.run(run).state == RunState.COMPLETED
    (line,) = w.events(run, EventKind.RUN_CHECKED)
    (again,) = line.data["checks"][2]["facts"]["still_valid"]
    assert again["valid"] is True and again["then"] == again["now"] is not None


def test_what_the_authority_says_otherwise_asks_a_person(w: World) -> None:
    run = watched(w)
    changed_there(w)
    after(w, run)
    assert w.run(run).waiting_on == WaitingOn.PERSON
    assert w.run(run).gate[0]["facts"]["checks"] == ["authority_state"]
    go_on(w, run)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_a_run_type_may_replan_instead(w: World) -> None:
    """Conflict: reload, revalidate, replan."""
    run = watched(w, replan="anew")
    changed_there(w)
    after(w, run)
    assert (w.run(run).state, w.heard(run)) == (RunState.COMPLETED, ["anew"])
    assert w.events(run, EventKind.RUN_CHECKED)[-1].data["verdict"] == "replan"


def test_an_authority_that_is_silent_is_waited_for(w: World) -> None:
    """Nothing goes on over what nobody knows; it is asked again until it answers, and holds no worker."""
    run = watched(w)
    w.sandbox.dial("payments", readback="down")
    after(w, run)
    row = w.run(run)
    assert (row.state, row.waiting_on, row.lease_owner) == (RunState.WAITING, WaitingOn.DEPENDENCY, None)
    assert row.gate[0]["code"] == "authority_silent"
    later(seconds=31)
    w.drive()
    assert w.run(run).waiting_on == WaitingOn.DEPENDENCY
    w.sandbox.reset("payments")
    later(seconds=31)
    w.drive()
    assert (w.run(run).state, w.run(run).gate) == (RunState.COMPLETED, [])


def test_a_bounded_context_is_made_from_the_record(w: World) -> None:
    """Check 8: given to the step that goes on; its digest is in the report."""
    run = watched(w, context=versions.told)
    after(w, run)
    assert w.heard(run) == [["over", {"settled": [["test.watched", "succeeded"]], "signals": ["told"]}]]
    (line,) = w.events(run, EventKind.RUN_CHECKED)
    assert line.data["checks"][7]["facts"]["digest"]


def test_a_context_beyond_its_bound_asks(w: World) -> None:
    run = watched(w, context=versions.told, context_bytes=10)
    after(w, run)
    assert w.run(run).gate[0]["facts"]["checks"] == ["bounded_context"]
    go_on(w, run)
    w.drive()
    assert w.heard(run) == [["over", None]]


def test_a_context_that_raises_quarantines(w: World) -> None:
    run = watched(w, context=lambda self, data, known: 1 / 0)
    after(w, run)
    assert (w.run(run).state, w.run(run).gate[0]["code"]) == (RunState.QUARANTINED, "context_broke")


def test_an_answer_does_not_hurry_what_is_waited_for(w: World) -> None:
    """Let on over one finding, it still waits for an authority that is silent about an earlier result."""
    run = watched(w)
    w.sandbox.dial("payments", readback="down")
    WorkspaceUserPermission.objects.filter(user=w.s.oncall_a).delete()
    after(w, run)
    assert w.run(run).waiting_on == WaitingOn.PERSON
    go_on(w, run)
    w.drive()
    assert w.run(run).waiting_on == WaitingOn.DEPENDENCY
    w.sandbox.reset("payments")
    later(seconds=31)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
