"""The nine checks after a gap (invariant 13), and whose hands a run is in (invariant 6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from recovery import failpoints
from recovery.actions import runs as actions
from recovery.engine import workers
from runs import access, clock, epochs, errors, record
from runs.models import Effect, Epoch, Evidence, Run, WorkspaceUserPermission
from runs.record import Commit, Entry
from runs.states import EventKind, ReviewKind, RunState, Strength, WaitingOn
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later


def lose_rights(w: World) -> None:
    WorkspaceUserPermission.objects.filter(user=w.s.oncall_a).delete()


def checked(w: World, run: Any) -> list[str]:
    """Why the checks were made, each time."""
    return [e.data["why"] for e in w.events(run, EventKind.RUN_CHECKED)]


def half_done(w: World) -> Any:
    """A run whose first effect is done and whose second waits with the senders."""
    run = w.accept("test.chain", "pay", "slow", "pay")
    assert w.advance(run) == "waits: in_flight"
    return run


def test_without_a_gap_nothing_is_checked(w: World) -> None:
    """The same worker, a moment later."""
    run = half_done(w)
    w.drive()
    assert (w.run(run).state, checked(w, run)) == (RunState.COMPLETED, [])


def test_another_worker_checks_first(w: World) -> None:
    """Away: another owner. The report is kept with what was looked at."""
    run = half_done(w)
    with w.as_worker(w.worker()):
        w.drive()
    assert checked(w, run) == ["other_owner"]
    (line,) = w.events(run, EventKind.RUN_CHECKED)
    assert [c["n"] for c in line.data["checks"]] == list(range(1, 10))
    assert w.run(run).state == RunState.COMPLETED


def test_a_long_wait_checks_first(w: World) -> None:
    """Away: longer than fresh_for (60 s), by when it began to wait, not by when it was woken."""
    run = half_done(w)
    later(seconds=61)
    w.drive()
    assert checked(w, run) == ["long_wait"]


def test_other_code_checks_first(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = half_done(w)
    monkeypatch.setattr(workers, "code_version", lambda: "another")
    w.drive()
    assert checked(w, run) == ["other_code"]


def test_another_epoch_checks_first(w: World) -> None:
    """Fault 39: after a restore tokens begin above all that were given out."""
    run = half_done(w)
    before = w.run(run).token
    known = epochs.current()
    same = {"system_identifier": known.system_identifier, "timeline": known.timeline}
    Epoch.objects.create(id=7, began_at=clock.now(), **same)
    with w.as_worker(workers.Me(w.me.id, "advance", 7)):
        w.drive()
    row = w.run(run)
    assert checked(w, run) == ["other_epoch"]
    assert row.token >> 40 == 7 > before >> 40
    assert row.state == RunState.COMPLETED


def test_who_started_it_may_not_any_more(w: World) -> None:
    """Check 5: nothing consequential happens; a person is asked (invariant 13)."""
    run = half_done(w)
    w.dispatch(w.effects(run)[1])
    sent = len(w.sandbox.requests())
    lose_rights(w)
    later(seconds=61)
    w.drive()
    row = w.run(run)
    assert (row.state, row.waiting_on, row.lease_owner) == (RunState.WAITING, WaitingOn.PERSON, None)
    assert row.gate[0]["facts"]["checks"] == ["identity_and_approvals"]
    assert w.reviews(run) == [ReviewKind.RESUMPTION]
    assert len(w.sandbox.requests()) == sent == 2, "the third effect is not sent"


def test_a_run_that_was_accepted_long_ago_is_checked_before_its_first_step(w: World) -> None:
    """A gap before anything was done is one too: nothing is sent for somebody who lost the right meanwhile."""
    run = w.accept("test.many", "pay")
    lose_rights(w)
    later(seconds=61)
    w.drive()
    assert checked(w, run) == ["long_wait"]
    assert (w.run(run).waiting_on, w.effects(run)) == (WaitingOn.PERSON, [])
    assert w.sandbox.requests() == []


def test_what_is_unknown_is_settled_before_the_step_hears_of_another(w: World) -> None:
    """Check 4: one of two was refused and nobody knows of the other; the run was away, so the unknown comes first."""
    w.sandbox.dial("cards-eu", reply="reject", times=1)
    w.sandbox.dial("payments", reply="drop", readback="down")  # also a repeat, on a slow machine
    run = w.accept("test.many", "pay", "card")
    w.advance(run)
    for effect in w.effects(run):
        w.dispatch(effect)
    assert w.effect_states(run) == ["unknown", "rejected"]
    with w.as_worker(w.worker()):
        w.drive()
        assert w.run(run).waiting_on == WaitingOn.UNKNOWN
        assert w.heard(run) == [], "the step is not called over what nobody knows"
        w.sandbox.reset("payments")
        w.drive(jump=timedelta(minutes=20))
    assert w.run(run).state == RunState.FAILED
    assert w.heard(run) == [["succeeded", "rejected"]]


def test_without_a_gap_the_step_hears_of_the_first_that_went_wrong(w: World) -> None:
    """The contrast: ``then`` is called at the first that did not succeed."""
    w.sandbox.dial("cards-eu", reply="reject", times=1)
    w.sandbox.dial("payments", reply="drop", readback="down")  # also a repeat, on a slow machine
    run = w.accept("test.many", "pay", "card")
    w.advance(run)
    for effect in w.effects(run):
        w.dispatch(effect)
    w.drive()
    assert w.heard(run) == [["unknown", "rejected"]]


def test_credentials_and_signatures_are_looked_at_again(w: World) -> None:
    """Check 5: only what the run contract names stops it; each is named with what was lost."""
    from recovery.contract.runs import REVALIDATED
    from recovery.engine import rights

    run = half_done(w)
    row = vars(w.run(run))
    effects = w.effects(run)
    assert set(rights.LOOKS) == set(REVALIDATED)
    assert rights.lost(REVALIDATED, row, effects) == {}
    Effect.objects.filter(pk=effects[1].pk).update(
        request={**effects[1].request, "credential": "payments-live"}, contract_digest="other"
    )
    w.s.oncall_a.is_active = False
    w.s.oncall_a.save()
    lost = rights.lost(REVALIDATED, row, w.effects(run))
    assert lost == {
        "identity": ["Oncall A"],
        "permission": ["Oncall A"],
        "policy": ["test.slow v1"],
        "secrets": ["payments-live"],
        "data": ["payments"],
    }
    assert rights.lost(("secrets",), row, w.effects(run)) == {"secrets": ["payments-live"]}


def test_it_goes_on_when_the_reason_is_gone(w: World) -> None:
    """A person gives the right back and has it looked at again; the review closes with what answered it."""
    run = half_done(w)
    lose_rights(w)
    later(seconds=61)
    w.drive()
    access.grant(w.s.oncall_a, w.s.here, ["on-call"])
    actions.look_again(run, actor=w.s.oncall_g, act=act("look"))
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert w.reviews(run) == []


def test_it_keeps_asking_while_the_reason_stays(w: World) -> None:
    """Looked at again, asked again: one review, one person's turn."""
    run = half_done(w)
    lose_rights(w)
    later(seconds=61)
    w.drive()
    actions.look_again(run, actor=w.s.oncall_g, act=act("look"))
    w.drive()
    assert w.run(run).waiting_on == WaitingOn.PERSON
    assert w.reviews(run) == [ReviewKind.RESUMPTION]


def test_an_effect_that_settles_meanwhile_does_not_hide_who_is_waited_for(w: World) -> None:
    """The run waits for a person; that an effect of it moved is no other answer."""
    run = half_done(w)
    lose_rights(w)
    later(seconds=61)
    w.advance_anyway(run)
    assert w.run(run).waiting_on == WaitingOn.PERSON
    w.dispatch(w.effects(run)[1])
    w.drive()
    assert w.run(run).waiting_on == WaitingOn.PERSON


def test_an_outcome_that_a_step_relied_on_and_that_changed_asks_a_person(w: World) -> None:
    """Check 3: the first effect is disputed since; the run does not go on over it."""
    run = half_done(w)
    w.dispatch(w.effects(run)[1])
    first = w.effects(run)[0]
    contradict(w, first)
    later(seconds=61)
    w.drive()
    assert w.run(run).gate[0]["facts"]["checks"] == ["authority_state"]
    assert w.effects(run)[0].state == "disputed"


def contradict(w: World, effect: Effect) -> None:
    """A later word of the authority against a settled effect."""
    row = {
        "id": record.new_id(),
        "workspace_id": effect.workspace_id,
        "run_id": effect.run_id,
        "effect_id": effect.pk,
        "kind": "readback",
        "strength": Strength.CONTRADICTS,
        "claim": "happened",
        "digest": "d",
    }
    changes = [
        record.new("evidence", row, {"observed_at": 0, "received_at": 0}),
        record.move("effect", effect.pk, None, {}, times={"next_check_at": 0}, bump=True),
    ]
    record.commit(Commit(effect.workspace_id, effect.run_id, [Entry(EventKind.EVIDENCE_RECEIVED, {}, changes)]))
    w.reconcile(effect)


def test_a_cancelled_run_needs_no_checks(w: World) -> None:
    run = half_done(w)
    lose_rights(w)
    actions.cancel(run, actor=w.s.oncall_g, act=act("cancel"), reason="enough")
    with w.as_worker(w.worker()):
        w.drive()
    assert (w.run(run).state, checked(w, run)) == (RunState.CANCELLED, [])


def test_a_dead_workers_run_is_taken_over_with_a_higher_token(w: World) -> None:
    """Invariant 6 from the other side: nobody takes it while its owner lives, anybody when it is dead."""
    run = w.accept("test.many", "pay")
    gone = w.worker()

    class Death(BaseException):
        pass

    def die() -> None:
        raise Death

    failpoints.arm("advance.before_step", die)
    with w.as_worker(gone), pytest.raises(Death):
        w.advance(run)
    failpoints.disarm()
    held = w.run(run)
    assert held.lease_owner == gone.id
    assert w.advance(run) == "leased"
    w.dies(gone)
    w.drive()
    row = w.run(run)
    assert (row.state, row.token) == (RunState.COMPLETED, held.token + 1)


def test_the_old_owners_commit_is_refused_and_its_answer_kept(w: World) -> None:
    """Invariant 6: it comes back after another has finished; nothing of the run moves, the answer is evidence."""
    run = w.accept("test.chain", "pay", "pay")

    def taken_over() -> None:
        failpoints.disarm()
        w.dies(w.me)
        w.me = w.worker()
        with w.as_worker(w.me):
            w.drive(jump=timedelta(minutes=1))
        assert w.run(run).state == RunState.COMPLETED

    failpoints.arm("advance.before_outcome", taken_over)
    assert w.advance(run) == "stale"
    row = w.run(run)
    assert row.state == RunState.COMPLETED
    first = w.effects(run)[0]
    assert Evidence.objects.filter(effect=first, kind="answer", strength=Strength.PROVES).count() == 1
    assert [w.applied(e) for e in w.effects(run)] == [1, 1]
    with pytest.raises(errors.StaleOwner):
        change = record.run_moves({"step": "begin"})
        record.commit(Commit(row.workspace_id, run, [Entry(EventKind.RUN_ADVANCED, {}, [change])], token=row.token - 1))
    assert Run.objects.get(pk=run).step == row.step


def test_a_run_that_lay_accepted_for_long_is_checked_before_its_first_step(w: World) -> None:
    """Invariant 13: its starter lost the right while no worker was there."""
    run = w.accept("test.many", "pay")
    later(seconds=61)
    access.grant(w.s.oncall_a, w.s.here, [])
    w.drive()
    assert (w.run(run).waiting_on, w.reviews(run)) == (WaitingOn.PERSON, [ReviewKind.RESUMPTION])
    assert w.sandbox.requests() == []
