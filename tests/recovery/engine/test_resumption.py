"""A person's answer to what the checks found, with the report in view (invariant 13), and the checks made dry."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from recovery import failpoints
from recovery.actions import resumption
from recovery.engine.refusals import NotAsked
from runs import access
from runs.errors import ActionMismatch, NotAllowed, NotFound, ReasonNeeded, RunEnded, StaleVersion
from runs.models import Review, Run, WorkspaceUserPermission
from runs.states import EffectState, EventKind, ReviewKind, RunState, Scope, WaitingOn
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later


def asked(w: World) -> UUID:
    """A run whose starter lost the right meanwhile: the checks ask. Its second effect is ready and not sent."""
    run = w.accept("test.chain", "pay", "slow", "pay")
    assert w.advance(run) == "waits: in_flight"
    WorkspaceUserPermission.objects.filter(user=w.s.oncall_a).delete()
    later(seconds=61)
    w.advance_anyway(run)
    assert w.run(run).waiting_on == WaitingOn.PERSON
    return run


def report(w: World, run: UUID) -> str:
    """The digest of what is asked, as a page shows it."""
    return str(Review.objects.get(run_id=run, kind=ReviewKind.RESUMPTION, state="open").why["facts"]["report"])


def go_on(w: World, run: UUID, digest: str | None = None, **given: Any) -> Any:
    asked_by = {"actor": w.s.oncall_g, "act": act("resumption"), "reason": "known, she moved teams", **given}
    return resumption.go_on(run, report=report(w, run) if digest is None else digest, **asked_by)


def test_go_on_lets_it_go_on_over_what_was_found(w: World) -> None:
    """Row, event, review; the checks are made again and find nothing else; the run comes to its end."""
    run = asked(w)
    version = w.run(run).version
    done = go_on(w, run)
    assert done.facts["answer"] == "go_on"
    row = w.run(run)
    assert row.version > version and row.wake_at is not None
    assert w.reviews(run) == []
    (line,) = w.events(run, EventKind.RUN_RESUMED)
    assert (line.actor_id, line.body["reason"]) == (w.s.oncall_g.pk, "known, she moved teams")
    assert w.dispatch(w.effects(run)[1]) == "waits for a person", "nothing is sent before the checks have passed"
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert w.run(run).gate == []
    last = w.events(run, EventKind.RUN_CHECKED)[-1].data
    assert last["checks"][-1]["facts"] == {"verdict": "go_on", "answered_by": str(w.s.oncall_g.pk)}


def test_nothing_is_sent_while_the_checks_are_made_again(w: World) -> None:
    """Invariant 13: also not in the moment in which its owner is at work on them."""
    run = asked(w)
    second = w.effects(run)[1]
    met: list[str] = []
    failpoints.arm("advance.leased", lambda: met.append(w.dispatch(second)))
    w.advance_anyway(run)
    failpoints.disarm()
    assert met == ["waits for a person"]
    assert w.effects(run)[1].state == EffectState.READY


def test_nothing_is_sent_again_either(w: World) -> None:
    """Invariant 13: the same bytes under the same key may be the first to arrive."""
    run = w.accept("test.many", "mail", "slow")
    w.advance(run)
    w.sandbox.dial("mail", reply="drop", times=1)
    mail = w.effects(run)[0]
    assert w.dispatch(mail) == EffectState.UNKNOWN
    WorkspaceUserPermission.objects.filter(user=w.s.oncall_a).delete()
    later(seconds=61)
    w.advance_anyway(run)
    assert w.run(run).waiting_on == WaitingOn.PERSON
    for _look in range(3):
        later(seconds=61)
        w.reconcile(mail)
    assert len(w.attempts(mail)) == 1
    assert w.effects(run)[0].decision["reason"] == "run_stopped"
    go_on(w, run)
    w.drive(jump=timedelta(minutes=5))
    assert len(w.attempts(mail)) == 2
    assert (w.effects(run)[0].state, w.applied(mail)) == (EffectState.SUCCEEDED, 1)


def test_the_first_of_two_answers_counts(w: World) -> None:
    """What was answered is not asked any more: the other person is told so."""
    run = asked(w)
    digest = report(w, run)
    go_on(w, run, digest)
    with pytest.raises(NotAsked):
        resumption.do_not_go_on(run, actor=w.s.oncall_g, act=act("resumption"), reason="no", report=digest)
    assert w.run(run).cancel_asked_at is None


def test_do_not_go_on_settles_and_ends_it(w: World) -> None:
    run = asked(w)
    resumption.do_not_go_on(
        run, actor=w.s.oncall_g, act=act("resumption"), reason="not hers any more", report=report(w, run)
    )
    w.drive()
    row = w.run(run)
    assert (row.state, row.cancel_reason) == (RunState.CANCELLED, "not hers any more")
    assert w.effect_states(run) == ["succeeded", "cancelled"]
    assert w.reviews(run) == []
    assert w.events(run, EventKind.RUN_CANCEL_ASKED)[0].data["answer"] == "do_not_go_on"


def test_do_not_go_on_ends_what_it_started_too(w: World) -> None:
    """As any cancellation, unless somebody says otherwise: nothing below goes on for a run that people have ended."""
    run = w.accept("test.nested", amount=1)
    w.drive()
    WorkspaceUserPermission.objects.filter(user=w.s.oncall_a).delete()
    later(seconds=61)
    w.advance_anyway(run)
    assert w.run(run).waiting_on == WaitingOn.PERSON
    resumption.do_not_go_on(
        run, actor=w.s.oncall_g, act=act("resumption"), reason="not hers any more", report=report(w, run)
    )
    w.drive()
    assert {r.state for r in Run.objects.all()} == {RunState.CANCELLED}
    assert Run.objects.get(parent_id=run).cancel_scope == Scope.PARENT


def test_the_same_act_again_is_the_first_result(w: World) -> None:
    """Invariant 15; the same id with another body is refused."""
    run = asked(w)
    digest, how = report(w, run), act("resumption")
    first = go_on(w, run, digest, act=how)
    again = go_on(w, run, digest, act=how)
    assert (again.replayed, again.event) == (True, first.event)
    with pytest.raises(ActionMismatch):
        go_on(w, run, digest, act=type(how)(how.id, how.route, "other"))


def test_an_answer_to_something_else_is_refused(w: World) -> None:
    """What was found since is not what was read."""
    run = asked(w)
    before = report(w, run)
    access.grant(w.s.oncall_a, w.s.here, ["on-call"])
    w.s.oncall_a.is_active = False
    w.s.oncall_a.save()
    w.advance_anyway(run)
    assert report(w, run) != before
    with pytest.raises(StaleVersion) as refused:
        go_on(w, run, before)
    assert refused.value.facts["now"] == report(w, run)
    assert w.run(run).waiting_on == WaitingOn.PERSON


def test_what_is_found_after_the_answer_asks_anew(w: World) -> None:
    """The answer counts for what was found, not for the run."""
    run = asked(w)
    go_on(w, run)
    w.s.oncall_a.is_active = False
    w.s.oncall_a.save()
    w.drive()
    assert w.run(run).waiting_on == WaitingOn.PERSON
    assert len(w.sandbox.requests()) == 1


def test_an_answer_counts_for_one_gap(w: World) -> None:
    """At the next gap the same finding is asked again: it went on once, knowingly."""
    run = asked(w)
    go_on(w, run)
    w.advance(run)
    assert w.run(run).waiting_on == WaitingOn.IN_FLIGHT
    later(seconds=61)
    w.advance_anyway(run)
    assert w.run(run).waiting_on == WaitingOn.PERSON


def test_who_may_answer(w: World) -> None:
    run = asked(w)
    with pytest.raises(NotAllowed):
        go_on(w, run, actor=w.s.auditor_d)
    with pytest.raises(NotFound):
        go_on(w, run, actor=w.s.outsider_e)
    with pytest.raises(ReasonNeeded):
        go_on(w, run, reason=" ")
    assert w.run(run).waiting_on == WaitingOn.PERSON
    assert w.s.refusals()[-1]["code"] == "not_allowed"


def test_where_nothing_is_asked_there_is_nothing_to_answer(w: World) -> None:
    run = w.accept("test.waiter", mode="event")
    w.drive()
    with pytest.raises(NotAsked):
        go_on(w, run, "d")
    w.cancel(run)
    w.drive()
    with pytest.raises(RunEnded):
        go_on(w, run, "d")


def test_a_dry_run_finds_the_same_and_changes_nothing(w: World) -> None:
    """A person can run the checks dry; the line is marked dry."""
    run = asked(w)
    before = {name: value for name, value in vars(w.run(run)).items() if not name.startswith(("_", "head_"))}
    how = act("checks")
    done = resumption.check_dry(run, actor=w.s.oncall_g, act=how)
    assert (done.facts["verdict"], done.facts["report"]) == ("escalate", report(w, run))
    assert [line["n"] for line in done.facts["checks"]] == list(range(1, 10))
    after = {name: value for name, value in vars(w.run(run)).items() if not name.startswith(("_", "head_"))}
    assert after == before
    line = w.events(run, EventKind.RUN_CHECKED)[-1]
    assert line.data["dry"] is True and line.body["moves"] == []
    assert resumption.check_dry(run, actor=w.s.oncall_g, act=how).replayed
    with pytest.raises(NotAllowed):
        resumption.check_dry(run, actor=w.s.auditor_d, act=act("checks"))


def test_a_dry_run_says_what_it_would_do(w: World) -> None:
    run = w.accept("test.waiter", mode="event")
    w.drive()
    assert resumption.check_dry(run, actor=w.s.oncall_g, act=act("checks")).facts["verdict"] == "go_on"
