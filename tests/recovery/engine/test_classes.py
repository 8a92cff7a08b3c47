"""The ten failure classes: what each default answer does in the engine, and what a contract may answer instead.

The other side's statuses are what a contract says they are (classification as data), so one refusal of the sandbox
stands here for a malformed request, a missing right or a conflict, as the contract of the test names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils.translation import gettext_lazy as _

from recovery.actions import quarantine, resumption
from recovery.contract import (
    Answer,
    EffectContract,
    Fail,
    FailureClass,
    Finish,
    OutcomeKind,
    Perform,
    StepOutcome,
    StepRun,
    Transition,
    minutes,
    registry,
    seconds,
    step,
)
from recovery.contract.failures import OVERRIDES, RULES
from recovery.engine import classes
from recovery.engine.decide import decide
from recovery.engine.snapshot import Verb
from runs.models import Checkpoint, Review
from runs.states import EffectState, EventKind, ReviewKind, RunState, WaitingOn
from tests.recovery.engine import bases, contracts
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later
from tests.runs.make import forget
from tests.unit import samples

NONE: frozenset[int] = frozenset()
Own = Callable[..., EffectContract]


class Hears(bases.Base):
    """Asks once, or once more with another amount after each failure that is left in ``again``; keeps what it hears."""

    name = "test.hears"
    version = 1

    @step(title=_("Do"))
    def begin(self, run: StepRun) -> Transition:
        ((_name, charge),) = run.data.what
        own = registry.effect_contract("test.own")
        return Perform(own(charge=charge, amount=run.data.amount, currency="EUR"), then=self.done)

    @step(title=_("End"))
    def done(self, run: StepRun, outcome: StepOutcome) -> Transition:
        run.data.heard.append([str(outcome.state), outcome.failure and str(outcome.failure)])
        if outcome.succeeded:
            return Finish(verified=outcome.evidence)
        if run.data.again:
            run.data.again -= 1
            run.data.amount += 1
            return self.begin(run)
        return Fail("not_done")


@pytest.fixture
def own(w: World) -> Iterator[Own]:
    """Declare the operation ``test.own``: as pay, with its retry, its outcomes or whatever else changed."""
    kept = registry._registry
    kept._run_types["test.hears", 1] = Hears()

    def declare(*, http: dict[str, Any] | None = None, retry: dict[str, Any] | None = None, **changes: Any) -> Any:
        outcomes = replace(samples.HTTP, **(http or {}))
        policy = replace(contracts.RETRY, **(retry or {}))
        made = replace(contracts.pay, operation="test.own", outcomes=outcomes, retry=policy, approval=None, **changes)
        assert not list(outcomes.problems())
        kept._effects["test.own", 1] = made
        return made

    yield declare
    kept._effects.pop(("test.own", 1), None)


def begin(w: World, **data: Any) -> UUID:
    return w.accept("test.hears", "pay", **data)


def refused_as(table: str) -> dict[str, Any]:
    """The outcomes in which the sandbox's refusal (402) stands in another table."""
    return {"rejected": NONE, table: frozenset({402})}


def go_on(w: World, run: UUID) -> None:
    review = Review.objects.get(run_id=run, kind=ReviewKind.RESUMPTION, state="open")
    report = review.why["facts"]["report"]
    resumption.go_on(run, actor=w.s.oncall_g, act=act("resumption"), reason="seen to", report=report)


def asks(w: World, run: UUID, failure: FailureClass) -> None:
    """A person is asked, the step has heard nothing, no worker is held."""
    row = w.run(run)
    assert (row.state, row.waiting_on, row.lease_owner) == (RunState.WAITING, WaitingOn.PERSON, None)
    assert (row.gate[0]["code"], row.gate[0]["facts"]["failure"]) == ("class_asks", failure)
    assert w.heard(run) == []
    assert w.reviews(run) == [ReviewKind.RESUMPTION]


# --- the defaults


def test_invalid_is_repaired_or_ends(w: World, own: Own) -> None:
    """1: the same request is never sent again; the step hears that it was invalid and repairs it, or ends."""
    own(http=refused_as("invalid"))
    w.sandbox.dial("payments", reply="reject", times=1)
    run = begin(w, again=1)
    w.drive(jump=timedelta(minutes=5))
    assert w.heard(run) == [["rejected", "invalid"], ["succeeded", None]]
    assert [(len(w.attempts(e)), e.generation) for e in w.effects(run)] == [(1, 1), (1, 2)]


def test_refused_gets_authority_first(w: World, own: Own) -> None:
    """2: a missing right is nothing that a pause mends: a person is asked, gets it, and the step asks again."""
    own(http=refused_as("refused"))
    w.sandbox.dial("payments", reply="reject", times=1)
    run = begin(w, again=1)
    w.drive(jump=timedelta(hours=2))
    asks(w, run, FailureClass.REFUSED)
    assert len(w.attempts(w.effect(run))) == 1, "not taken for transient"
    go_on(w, run)
    w.drive(jump=timedelta(minutes=5))
    assert w.heard(run) == [["rejected", "refused"], ["succeeded", None]]
    assert w.run(run).state == RunState.COMPLETED


def test_rejected_is_the_steps_to_decide(w: World, own: Own) -> None:
    """3: the business said no: another path, or an end that says so."""
    own()
    w.sandbox.dial("payments", reply="reject")
    run = begin(w)
    w.drive(jump=timedelta(minutes=5))
    assert (w.heard(run), w.run(run).state) == ([["rejected", "rejected"]], RunState.FAILED)
    assert len(w.attempts(w.effect(run))) == 1


def test_transient_is_sent_again_in_budget(w: World, own: Own) -> None:
    """4: the same key, after pauses, and known not to have happened when the tries are used up."""
    own()
    w.sandbox.dial("payments", reply="refuse", times=2)
    run = begin(w)
    w.drive(jump=timedelta(minutes=5))
    assert w.heard(run) == [["succeeded", None]]
    assert (len(w.attempts(w.effect(run))), w.applied(w.effect(run))) == (3, 1)
    w.sandbox.dial("payments", reply="refuse")
    run = begin(w)
    w.drive(jump=timedelta(minutes=5))
    assert w.heard(run) == [["not_applied", "transient"]]
    assert len(w.attempts(w.effect(run))) == contracts.RETRY.attempts


def test_overload_backs_off(w: World, own: Own) -> None:
    """5: Retry-After is honoured, and being told to come later costs time, not tries."""
    own(retry={"attempts": 2})
    w.sandbox.dial("payments", reply="overload", times=3, retry_after=7)
    run = begin(w)
    w.drive(jump=timedelta(minutes=5))
    assert w.heard(run) == [["succeeded", None]]
    tries = w.attempts(w.effect(run))
    assert len(tries) == 4
    apart = [b.committed_at - a.committed_at for a, b in zip(tries, tries[1:], strict=False)]
    assert min(apart) >= timedelta(seconds=7)


def test_partial_is_mended_on_purpose(w: World, own: Own) -> None:
    """6: what happened is kept, and the step hears of a part: neither success nor failure."""
    own(http={"in_part": lambda body: True})
    run = begin(w)
    w.drive(jump=timedelta(minutes=5))
    assert w.heard(run) == [["partial", "partial"]]
    assert (w.effect(run).state, len(w.attempts(w.effect(run)))) == (EffectState.PARTIAL, 1)


def test_unknown_is_reconciled_first(w: World, own: Own) -> None:
    """7: before any other write the authority is asked, and its record settles it."""
    own()
    w.sandbox.dial("payments", reply="drop", times=1)
    run = begin(w)
    w.drive(jump=timedelta(minutes=5))
    assert w.heard(run) == [["succeeded", None]]
    assert (len(w.attempts(w.effect(run))), w.applied(w.effect(run))) == (1, 1)
    kinds = [e.kind for e in w.events(run)]
    assert kinds.index(EventKind.EFFECT_UNKNOWN) < kinds.index(EventKind.EFFECT_SETTLED)
    assert EventKind.RUN_QUARANTINED not in kinds


def test_conflict_is_planned_anew(w: World, own: Own) -> None:
    """8: the authority's state moved on: the step hears of a conflict and asks for what fits now, as a new intent."""
    own(http=refused_as("conflict"))
    w.sandbox.dial("payments", reply="reject", times=1)
    run = begin(w, again=1)
    w.drive(jump=timedelta(minutes=5))
    assert w.heard(run) == [["rejected", "conflict"], ["succeeded", None]]
    first, second = w.effects(run)
    assert first.reason["code"] == "state_moved_on"
    assert first.intent_digest != second.intent_digest


def test_a_conflict_after_a_lost_answer_proves_nothing() -> None:
    """8 and 7: what moved the state may have been the send before it; the authority is asked."""
    tries = (samples.lost(1), samples.answered(OutcomeKind.CONFLICT, 2, began=20))
    got = decide(samples.snap(EffectState.IN_FLIGHT, *tries), samples.keyed(), samples.at(40))
    assert (got.verb, got.becomes) == (Verb.READ_BACK, EffectState.UNKNOWN)
    alone = samples.snap(EffectState.IN_FLIGHT, samples.answered(OutcomeKind.CONFLICT))
    got = decide(alone, samples.keyed(), samples.at(12))
    assert (got.settle_as, got.reason) == (EffectState.REJECTED, "state_moved_on")


def test_expired_stops_new_work(w: World, own: Own) -> None:
    """9: what was not sent in time is not sent at all."""
    own(deadline=minutes(10), reserve=minutes(1))
    w.sandbox.dial("payments", reply="refuse")
    run = begin(w)
    w.advance(run)
    w.sandbox.reset("payments")
    later(minutes=10)
    w.drive()
    assert w.heard(run) == [["expired", "cancelled_or_expired"]]
    assert w.applied(w.effect(run)) == 0


def test_cancelled_settles_what_is_in_flight(w: World, own: Own) -> None:
    """9: and nothing is sent again meanwhile."""
    own()
    w.sandbox.dial("payments", reply="drop", times=1, readback="down")
    run = begin(w)
    w.advance(run)
    w.cancel(run)
    w.drive(jump=timedelta(minutes=1))
    assert w.run(run).state == RunState.CANCELLING
    w.sandbox.reset("payments")
    w.drive(jump=timedelta(minutes=20))
    assert (w.run(run).state, w.effect(run).state) == (RunState.CANCELLED, EffectState.SUCCEEDED)
    assert len(w.attempts(w.effect(run))) == 1


def test_damaged_state_is_quarantined(w: World, own: Own) -> None:
    """10: nothing is guessed and nothing begins anew."""
    own()
    w.sandbox.dial("payments", reply="refuse", times=1)
    run = begin(w)
    w.advance(run)
    newest = Checkpoint.objects.filter(run_id=run).order_by("-seq")[0]
    Checkpoint.objects.filter(pk=newest.pk).update(sealed=b"damaged")
    forget(run)  # no near copy is left either
    w.drive(jump=timedelta(minutes=5))
    assert w.run(run).state == RunState.QUARANTINED
    assert w.applied(w.effect(run)) <= 1


# --- other answers

TABLES = {
    FailureClass.INVALID: "invalid",
    FailureClass.REFUSED: "refused",
    FailureClass.REJECTED: "rejected",
    FailureClass.CONFLICT: "conflict",
}
TURNED_AWAY = [(kind, answer) for kind in TABLES for answer in sorted(OVERRIDES[kind])]


@pytest.mark.parametrize(("kind", "answer"), TURNED_AWAY, ids=str)
def test_another_answer_to_what_was_turned_away(w: World, own: Own, kind: FailureClass, answer: Answer) -> None:
    """1, 2, 3, 8: a person first, out of circulation, or at once to the step."""
    http = {**refused_as(TABLES[kind]), "answers": {kind: answer}}
    contract = own(http=http)
    assert contract.digest != replace(contract, outcomes=replace(contract.outcomes, answers={})).digest
    w.sandbox.dial("payments", reply="reject", times=1)
    run = begin(w)
    w.drive(jump=timedelta(minutes=5))
    if answer == Answer.QUARANTINE:
        row = w.run(run)
        assert (row.state, row.gate[0]["code"]) == (RunState.QUARANTINED, "class_quarantines")
        quarantine.release(run, actor=w.s.oncall_g, act=act("release"), reason="seen", version=row.version)
        w.drive()
    elif answer == Answer.ESCALATE:
        asks(w, run, kind)
        go_on(w, run)
        w.drive()
    assert w.heard(run) == [["rejected", str(kind)]]


def test_a_part_asks_a_person_first(w: World, own: Own) -> None:
    """6: another answer."""
    own(http={"in_part": lambda body: True, "answers": {FailureClass.PARTIAL: Answer.ESCALATE}})
    run = begin(w)
    w.drive(jump=timedelta(minutes=5))
    asks(w, run, FailureClass.PARTIAL)
    go_on(w, run)
    w.drive()
    assert w.heard(run) == [["partial", "partial"]]


@pytest.mark.parametrize(
    ("kind", "reply"), [(FailureClass.TRANSIENT, "refuse"), (FailureClass.OVERLOAD, "overload")], ids=str
)
def test_a_class_that_is_not_sent_again(w: World, own: Own, kind: FailureClass, reply: str) -> None:
    """4 and 5: taken out of ``Retry.classes``: shed at the first try, and the step hears which class it was."""
    own(retry={"classes": contracts.RETRY.classes - {kind}})
    w.sandbox.dial("payments", reply=reply, times=1)
    run = begin(w)
    w.drive(jump=timedelta(minutes=5))
    assert w.heard(run) == [["not_applied", str(kind)]]
    assert len(w.attempts(w.effect(run))) == 1


@pytest.mark.parametrize("kind", [FailureClass.TRANSIENT, FailureClass.OVERLOAD], ids=str)
def test_what_was_not_taken_at_all_asks_a_person_first(w: World, own: Own, kind: FailureClass) -> None:
    """4 and 5: another answer, once the tries are used up."""
    own(http={"answers": {kind: Answer.ESCALATE}}, retry={"classes": frozenset({FailureClass.UNKNOWN})})
    w.sandbox.dial("payments", reply="refuse" if kind == FailureClass.TRANSIENT else "overload", times=1)
    run = begin(w)
    w.drive(jump=timedelta(minutes=5))
    asks(w, run, kind)


def test_an_unknown_that_is_never_sent_again(w: World, own: Own) -> None:
    """7: taken out of ``Retry.classes``: only reading and a person remain, although the key would protect a repeat."""
    own(retry={"classes": contracts.RETRY.classes - {FailureClass.UNKNOWN}})
    w.sandbox.dial("payments", reply="drop", times=1, readback="down")
    run = begin(w)
    w.drive(jump=timedelta(minutes=30))
    assert len(w.attempts(w.effect(run))) == 1
    assert w.reviews(run) == [ReviewKind.OUTCOME_UNKNOWN]


@pytest.mark.parametrize("proves", [False, True], ids=["proves nothing", "proves not applied"])
def test_a_500_proves_what_the_contract_says(w: World, own: Own, proves: bool) -> None:
    """7 or 4: this operation's 500 is unknown, unless its contract says that it comes before anything is done."""
    own(http={"transient": frozenset({500, 503})} if proves else None)
    w.sandbox.dial("payments", reply="error500", times=1, readback="down", readback_times=1)
    run = begin(w)
    w.drive(jump=timedelta(minutes=10))
    assert bool(w.events(run, EventKind.EFFECT_UNKNOWN)) is not proves
    assert w.heard(run) == [["succeeded", None]]
    assert w.applied(w.effect(run)) == 1


def test_what_expired_asks_a_person_first(w: World, own: Own) -> None:
    """9: another answer."""
    answers = {FailureClass.CANCELLED_OR_EXPIRED: Answer.ESCALATE}
    own(deadline=minutes(10), reserve=minutes(1), http={"answers": answers}, timeout=seconds(10))
    w.sandbox.dial("payments", reply="refuse")
    run = begin(w)
    w.advance(run)
    later(minutes=10)
    w.drive()
    asks(w, run, FailureClass.CANCELLED_OR_EXPIRED)


def test_two_questions_at_one_checkpoint_are_both_answered(w: World, own: Own) -> None:
    """What the class asks and what the checks ask come one after the other, and neither asks twice."""
    own(http=refused_as("refused"))
    w.sandbox.dial("payments", reply="reject", times=1)
    run = begin(w)
    w.drive()
    asks(w, run, FailureClass.REFUSED)
    w.s.oncall_a.is_active = False
    w.s.oncall_a.save()
    for _question in range(2):
        go_on(w, run)
        w.drive()
    assert w.heard(run) == [["rejected", "refused"]]
    assert w.run(run).state == RunState.FAILED


def test_unknown_and_damage_have_no_other_answer() -> None:
    """Nothing may come before asking the authority; what is damaged is not gone on with."""
    assert set(OVERRIDES) == set(FailureClass) - {FailureClass.UNKNOWN, FailureClass.CORRUPT}
    for kind in (FailureClass.UNKNOWN, FailureClass.CORRUPT):
        wrong = replace(samples.HTTP, answers={kind: Answer.ESCALATE})
        assert list(wrong.problems()) == [f"{kind} is answered by escalate; it can be {RULES[kind].answer}"]


def test_every_settled_state_has_its_class() -> None:
    """A step is told the class of each outcome but success."""
    from runs.models import Effect

    told = {s: classes.failure_of(Effect(state=s, reason={"code": "x"})) for s in EffectState}
    assert {s for s, kind in told.items() if kind is None} >= {EffectState.SUCCEEDED, EffectState.COMPENSATED}
    assert told[EffectState.DECLINED] == FailureClass.REFUSED
    assert told[EffectState.NOT_APPLIED] == FailureClass.TRANSIENT
