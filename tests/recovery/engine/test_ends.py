"""Ends that people give a run while something of it is open: by two, or by force and confirmed."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from recovery import failpoints
from recovery.actions import ends
from recovery.engine import reconcile
from runs import access, errors
from runs.models import Person, Review, Run
from runs.states import EffectState, EventKind, ReviewKind, ReviewState, RunState
from tests.recovery.engine.world import World
from tests.recovery.stage import act


@pytest.fixture
def admin(w: World) -> Person:
    """Who may break glass."""
    made = Person.objects.create_user("admin-h@acme-pay.example", "Admin H")
    access.grant(made, w.s.here, ["administrator"])
    return made


def unknown(w: World, run_type: str = "test.many") -> UUID:
    """A run that waits on an outcome that nobody knows and nothing can tell."""
    w.sandbox.dial("notices", reply="drop", times=1)
    run = w.accept(run_type, "notice")
    w.drive()
    assert w.effect(run).state == EffectState.UNKNOWN
    return run


def close(w: World, run: UUID, **given: object) -> ends.Done:
    seen = {"version": w.run(run).version, **given}
    return ends.close_unresolved(run, actor=w.s.oncall_a, act=act("close"), reason="they cannot tell us", **seen)  # type: ignore[arg-type]


def answer(w: World, run: UUID, digest: object, *, yes: bool = True, by: Person | None = None) -> ends.Done:
    who = by or w.s.oncall_g
    return ends.confirm_close(run, actor=who, act=act("answer"), confirm=yes, reason="seen", digest=str(digest))


def test_by_two(w: World) -> None:
    """Invariants 4 and 7: it says what is unresolved, and the effect and its review stay open."""
    run = unknown(w)
    proposed = close(w, run)
    assert w.run(run).state == RunState.WAITING
    assert w.reviews(run) == [ReviewKind.CONFIRM_DECISION, ReviewKind.OUTCOME_UNKNOWN]
    answer(w, run, proposed.facts["digest"])
    row = w.run(run)
    assert row.state == RunState.COMPLETED_UNRESOLVED
    assert [one["effect"] for one in row.ended_how["open"]] == [str(w.effect(run).pk)]
    assert (row.ended_how["facts"]["by"], row.ended_how["facts"]["second"]) == ("Oncall A", "Oncall G")
    assert (w.effect(run).state, w.reviews(run)) == (EffectState.UNKNOWN, [ReviewKind.OUTCOME_UNKNOWN])
    w.drive(jump=timedelta(hours=2))
    assert w.effect(run).state == EffectState.UNKNOWN and len(w.sandbox.requests()) == 1


def test_the_second_person_is_another(w: World) -> None:
    """Neither the first, nor one without the right, nor one of another workspace (invariant 14)."""
    run = unknown(w)
    digest = close(w, run).facts["digest"]
    with pytest.raises(errors.SamePerson):
        answer(w, run, digest, by=w.s.oncall_a)
    with pytest.raises(errors.NotAllowed):
        answer(w, run, digest, by=w.s.auditor_d)
    with pytest.raises(errors.NotFound):
        answer(w, run, digest, by=w.s.outsider_e)
    assert w.run(run).state == RunState.WAITING


def test_refused_or_taken_back_it_goes_on(w: World) -> None:
    run = unknown(w)
    for by, back in ((w.s.oncall_g, False), (w.s.oncall_a, True)):
        digest = close(w, run).facts["digest"]
        answer(w, run, digest, yes=False, by=by)
        assert w.events(run, EventKind.RUN_END_REFUSED)[-1].data["taken_back"] is back
    assert w.run(run).state == RunState.WAITING
    with pytest.raises(errors.RunsError) as refused:
        answer(w, run, "x")
    assert refused.value.code == "nothing_proposed"


def test_what_changed_since_is_not_confirmed(w: World) -> None:
    """The proposal is bound by digest to what was open; after a pause it is another run to decide on."""
    from recovery.actions import pauses

    run = unknown(w)
    digest = close(w, run).facts["digest"]
    with pytest.raises(errors.StaleVersion):
        answer(w, run, "0" * 64)
    with pytest.raises(errors.RunsError) as waits:
        close(w, run)
    assert waits.value.code == "decision_waiting"
    pauses.pause(run, actor=w.s.oncall_a, act=act("pause"), reason="wait")
    w.drive()
    with pytest.raises(errors.StaleVersion):
        answer(w, run, digest)
    again = close(w, run)
    answer(w, run, again.facts["digest"])
    assert w.run(run).state == RunState.COMPLETED_UNRESOLVED


def test_a_run_that_works_is_not_closed(w: World) -> None:
    run = w.accept("test.many", "pay")
    with pytest.raises(errors.RunsError) as refused:
        close(w, run)
    assert refused.value.code == "not_closable"
    with pytest.raises(errors.StaleVersion):
        close(w, run, version=99)


def test_by_force(w: World, admin: Person) -> None:
    """R13: at once, by one, loudly; what was not sent is cancelled, what was sent is listed and stays open."""
    w.sandbox.dial("notices", reply="drop", times=1)
    run = w.accept("test.many", "notice", "slow", "pay", amount=120_500)
    w.advance(run)
    w.dispatch(w.effects(run)[0])
    ends.abort(run, actor=admin, act=act("abort"), reason="it must stop")
    row = w.run(run)
    assert (row.state, row.ended_how["code"]) == (RunState.ABORTED, "aborted")
    assert w.effect_states(run) == ["unknown", "cancelled", "cancelled"]
    assert [one["state"] for one in row.ended_how["open"]] == ["unknown"]
    glass = Review.objects.get(run_id=run, kind=ReviewKind.BREAK_GLASS)
    assert (glass.state, glass.severity) == (ReviewState.OPEN, "high")
    assert timedelta(hours=23) < glass.due_at - glass.opened_at <= timedelta(hours=24)
    w.drive(jump=timedelta(hours=1))
    assert len(w.sandbox.requests()) == 1
    assert ReviewKind.OUTCOME_UNKNOWN in w.reviews(run)


def test_only_with_the_right(w: World) -> None:
    run = unknown(w)
    for person in (w.s.oncall_a, w.s.approver_b, w.s.auditor_d):
        with pytest.raises(errors.NotAllowed):
            ends.abort(run, actor=person, act=act("abort"), reason="no")
    assert w.run(run).state == RunState.WAITING


def test_force_is_confirmed_by_another(w: World, admin: Person) -> None:
    run = unknown(w)
    ends.abort(run, actor=admin, act=act("abort"), reason="it must stop")
    with pytest.raises(errors.SamePerson):
        ends.confirm_abort(run, actor=admin, act=act("confirm"), reason="me")
    done = ends.confirm_abort(run, actor=w.s.oncall_g, act=act("confirm"), reason="right")
    assert done.facts["late"] is False
    assert ReviewKind.BREAK_GLASS not in w.reviews(run)
    with pytest.raises(errors.RunsError) as refused:
        ends.confirm_abort(run, actor=w.s.oncall_g, act=act("confirm"), reason="again")
    assert refused.value.code == "nothing_to_confirm"
    assert w.run(run).state == RunState.ABORTED


def test_while_its_owner_is_sending(w: World, admin: Person) -> None:
    """Invariants 5 and 6: the owner loses it, its answer settles the effect as evidence, the run stays aborted."""
    run = w.accept("test.chain", "pay", "pay")

    def force() -> None:
        failpoints.disarm()
        ends.abort(run, actor=admin, act=act("abort"), reason="it must stop")

    failpoints.arm("send.after", force)
    assert w.advance(run) == "stale"
    assert w.run(run).state == RunState.ABORTED
    w.drive(jump=timedelta(minutes=10))
    assert (w.run(run).state, w.effect_states(run)) == (RunState.ABORTED, ["succeeded"])
    assert len(w.sandbox.requests()) == 1


def test_an_unknown_effect_of_an_aborted_run_is_only_read(w: World, admin: Person) -> None:
    """It could be sent again under its key; nobody wants it any more."""
    w.sandbox.dial("mail", reply="drop", times=1)
    run = w.accept("test.many", "mail")
    w.advance(run)
    ends.abort(run, actor=admin, act=act("abort"), reason="it must stop")
    w.drive(jump=timedelta(minutes=5))
    reconcile.reconcile(w.effect(run).pk)
    assert (w.effect(run).state, len(w.sandbox.requests())) == (EffectState.UNKNOWN, 1)


def test_a_forced_end_tells_the_parent_and_leaves_its_children(w: World, admin: Person) -> None:
    run = w.accept("test.nested", amount=2)
    w.drive()
    middle, leaf = Run.objects.get(depth=1), Run.objects.get(depth=2)
    ends.abort(middle.pk, actor=admin, act=act("abort"), reason="it must stop")
    w.drive()
    assert (w.run(run).state, w.heard(run)) == (RunState.FAILED, ["aborted"])
    assert [c["run"] for c in w.run(middle.pk).ended_how["children"]] == [str(leaf.pk)]
    assert w.run(leaf.pk).state == RunState.WAITING


def test_an_ended_run_is_not_ended_again(w: World, admin: Person) -> None:
    """Invariant 5."""
    run = w.accept("test.many", "pay")
    w.drive()
    with pytest.raises(errors.RunEnded):
        ends.abort(run, actor=admin, act=act("abort"), reason="no")
    with pytest.raises(errors.RunEnded):
        close(w, run)


def test_twice_is_once(w: World, admin: Person) -> None:
    """Invariant 15."""
    run = unknown(w)
    mine = act("abort")
    first = ends.abort(run, actor=admin, act=mine, reason="stop")
    again = ends.abort(run, actor=admin, act=mine, reason="stop")
    assert (again.event, again.replayed) == (first.event, True)
    assert len(w.events(run, EventKind.RUN_ABORTED)) == 1
