"""Signatures, tokens and history across a restore, and the two people who let sending go on."""

from __future__ import annotations

import pytest

from recovery.actions import restore as actions
from recovery.engine import workers
from recovery.upkeep import outside
from recovery.upkeep.recover import carry_on
from runs import errors, record
from runs.history import chain
from runs.models import Approval, Event, Restore, Review, Run, Workspace
from runs.record import Commit, Entry
from runs.restored import RestoreState
from runs.states import EventKind, RunState
from tests.recovery.signers import sign
from tests.recovery.stage import act, later
from tests.recovery.upkeep.backups import Backups, released, restored, seen, swept


def test_signatures_from_before_the_restore_are_void(b: Backups) -> None:
    """Fault 37: granted and not used, says the restored record; it was used."""
    w = b.w
    run = w.accept("test.many", "pay", amount=120_500)
    w.drive()
    approval = Approval.objects.get()
    sign(approval, w.s.approver_b)
    seen(b)
    b.take()
    sign(approval, w.s.approver_c)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    restored(b)
    with pytest.raises(errors.RunsError):
        carried = carry_on(Restore.objects.get(workspace=w.s.here).pk)
        assert carried
        sign(approval, w.s.approver_c)
    approval.refresh_from_db()
    assert (approval.state, approval.reason["code"]) == ("expired", "approval_void")
    released(b, swept(b))
    w.drive()
    assert (w.run(run).state, w.applied(w.effect(run))) == (RunState.COMPLETED, 1)


def test_a_worker_of_before_changes_nothing_though_its_token_is_still_there(b: Backups) -> None:
    """Fault 39: the restored row has the very token that the old owner holds."""
    w = b.w
    run = w.accept("test.many", "slow")
    lease = record.lease(w.s.here.pk, run, worker=w.me.id, epoch=w.me.epoch)
    assert isinstance(lease, record.Lease)
    seen(b)
    b.take()
    restored(b)
    assert w.run(run).token == lease.token
    entry = Entry(EventKind.RUN_ADVANCED, {}, [record.run_moves({"goal": "mine"})])
    with pytest.raises(errors.StaleOwner):
        record.commit(Commit(w.s.here.pk, run, [entry], token=lease.token))
    released(b, swept(b))
    assert record.lease(w.s.here.pk, run, worker=w.me.id, epoch=1) == "old_epoch"
    taken = record.lease(w.s.here.pk, run, worker=w.me.id, epoch=w.me.epoch)
    assert isinstance(taken, record.Lease) and taken.token >> 40 == 2


def test_a_process_that_the_record_forgot_takes_another_name(b: Backups) -> None:
    w = b.w
    seen(b)
    b.take()
    old = workers._me
    assert old is not None
    restored(b)
    workers._me = old
    assert not workers.beat(old.id), "a new epoch forgets the workers of before"
    workers.forgotten(old.id)
    assert workers._me is None
    workers._me = w.me


def test_the_history_goes_on_from_the_backup_and_names_what_was_last_seen(b: Backups) -> None:
    """Fault 38: appended, never computed anew."""
    w = b.w
    seen(b)
    b.take()
    head = Workspace.objects.get(pk=w.s.here.pk)
    run = w.accept("test.many", "pay")
    w.drive()
    seen(b)
    last = outside.read(b.outside)
    assert last is not None and last.event > 0
    restored(b)
    begun = Event.objects.get(workspace=w.s.here, kind=EventKind.EPOCH_BEGUN)
    assert begun.seq == head.head_seq + 1
    assert (begun.data["cause"], begun.data["epoch"]) == ("older_record", 2)
    assert begun.data["outside"]["event"] == last.event
    assert begun.data["outside"]["head"] == list(last.heads[str(w.s.here.pk)])
    assert chain.verify_workspace(Workspace.objects.get(pk=w.s.here.pk)).ok
    assert not Run.objects.filter(pk=run).exists()
    review = Review.objects.get(workspace=w.s.here, kind="history_alarm")
    assert (review.severity, review.state) == ("high", "open")
    seen(b)
    again = outside.read(b.outside)
    assert again is not None and (again.epoch, again.mark > last.mark) == (2, True)


# Two people


def test_two_different_people_let_sending_go_on(b: Backups) -> None:
    s = b.w.s
    seen(b)
    b.take()
    restored(b)
    restore = Restore.objects.get(workspace=s.here)
    with pytest.raises(errors.RunsError) as early:
        actions.ask_release(restore.pk, actor=s.oncall_a, act=act("ask"), reason="now")
    assert early.value.code == "not_swept"
    swept(b)
    for who, refused in ((s.auditor_d, errors.NotAllowed), (s.outsider_e, errors.NotFound)):
        with pytest.raises(refused):
            actions.ask_release(restore.pk, actor=who, act=act("ask"), reason="now")
    with pytest.raises(errors.ReasonNeeded):
        actions.ask_release(restore.pk, actor=s.oncall_a, act=act("ask"), reason=" ")
    how = act("ask")
    first = actions.ask_release(restore.pk, actor=s.oncall_a, act=how, reason="read through")
    assert actions.ask_release(restore.pk, actor=s.oncall_a, act=how, reason="read through").event == first.event
    with pytest.raises(errors.SamePerson):
        actions.answer_release(restore.pk, actor=s.oncall_a, act=act("let"), confirm=True, reason="me too")
    actions.answer_release(restore.pk, actor=s.oncall_a, act=act("let"), confirm=False, reason="not yet")
    restore.refresh_from_db()
    assert (restore.state, restore.asked_by_id) == (RestoreState.SWEPT, None)
    released(b, restore)
    restore.refresh_from_db()
    assert (restore.state, restore.released_by_id) == (RestoreState.RELEASED, s.approver_b.pk)
    with pytest.raises(errors.RunsError) as twice:
        actions.answer_release(restore.pk, actor=s.oncall_g, act=act("let"), confirm=True, reason="also")
    assert twice.value.code == "already_done"
    assert not Review.objects.filter(workspace=s.here, state="open").exists()
    assert Review.objects.filter(workspace=s.there, state="open").exists(), "the neighbour's is the neighbour's"
    kinds = Event.objects.filter(workspace=s.here, run=None, kind__startswith="epoch.").order_by("seq")
    assert list(kinds.values_list("kind", flat=True)) == [
        EventKind.EPOCH_BEGUN,
        EventKind.EPOCH_SWEPT,
        EventKind.EPOCH_RELEASE_ASKED,
        EventKind.EPOCH_RELEASE_REFUSED,
        EventKind.EPOCH_RELEASE_ASKED,
        EventKind.EPOCH_RELEASED,
    ]
    assert chain.verify_workspace(Workspace.objects.get(pk=s.here.pk)).ok


def test_what_does_not_answer_is_listed_for_the_two(b: Backups) -> None:
    """The sweep ends all the same; what is left stays guarded at its own send."""
    w = b.w
    run = w.accept("test.many", "card")
    w.advance(run)
    seen(b)
    b.take()
    restored(b)
    w.sandbox.dial("payments", readback="down")
    restore = Restore.objects.get(workspace=w.s.here)
    later(minutes=17)
    w.beat()
    assert carry_on(restore.pk) == "swept"
    restore.refresh_from_db()
    assert [(one["code"], one.get("operation"), one.get("error")) for one in restore.left][:1] == [
        ("not_listed", "test.pay", "http_503")
    ]
