"""Nothing is sent once its time is over, also where it was in time when it was judged (invariants 8 and 12)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from recovery import failpoints
from runs import clock
from runs.models import Approval, Person
from runs.states import ApprovalState, AttemptState, EffectState, ReviewKind, RunState
from tests.recovery.engine.world import World
from tests.recovery.signers import renew, sign
from tests.recovery.stage import later

ABOVE = 120_500


def test_the_owner_of_a_run_keeps_the_reserve_too(w: World) -> None:
    """Two hours less the reserve are over when the step asks: not sent inline, and expired unsent."""
    run = w.accept("test.bounded", "pay")
    later(minutes=119)
    w.drive()
    assert w.effect(run).state == EffectState.EXPIRED
    assert w.sandbox.requests() == []


def signed_until(w: World) -> tuple[UUID, Approval, datetime]:
    """A run whose refund is signed by two and not sent; the request, and when its time is over."""
    run = w.accept("test.many", "pay", amount=ABOVE)
    w.advance(run)
    sign(Approval.objects.get(), w.s.approver_b)
    sign(Approval.objects.get(), w.s.approver_c)
    signed = Approval.objects.get()
    assert signed.execute_by is not None
    return run, signed, signed.execute_by


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    """Time passes for the record and for the worker's own clock, as it does over a stopped process."""
    slept = [0.0]
    monkeypatch.setattr(clock, "elapsed", lambda: slept[0])

    def over(by: timedelta) -> None:
        slept[0] += by.total_seconds()
        clock.shift(by)

    return over


def test_a_sender_that_was_paused_before_its_claim_decides_anew(w: World) -> None:
    """R6: judged in time, claimed at execute_by: nothing is claimed on what was decided then, and a person sees it."""
    run, signed, until = signed_until(w)
    failpoints.arm("dispatch.before_claim", lambda: clock.shift(until - clock.now()))
    assert w.dispatch(w.effect(run)) == "another was first"
    failpoints.disarm()
    assert w.attempts(w.effect(run)) == []
    assert Approval.objects.get().state == ApprovalState.GRANTED
    w.drive(jump=timedelta(minutes=5))
    assert w.effect(run).state == EffectState.AWAITING_APPROVAL
    assert w.reviews(run) == [ReviewKind.SIGNATURES_NEEDED]
    assert w.sandbox.requests() == []
    renew(signed, w.s.oncall_g)
    assert Approval.objects.order_by("-revision")[0].state == ApprovalState.PENDING


def test_a_sender_that_was_paused_after_its_claim_sends_nothing(w: World, pause: Callable[[timedelta], None]) -> None:
    """The process was stopped as the answer of the commit came: what it slept counts, though it saw none of it."""
    run, signed, until = signed_until(w)
    clock.shift(until - clock.now() - timedelta(minutes=1))
    failpoints.arm("dispatch.after_claim", lambda: pause(timedelta(seconds=10)))
    w.dispatch(w.effect(run))
    failpoints.disarm()
    (attempt,) = w.attempts(w.effect(run))
    assert (attempt.state, attempt.outcome["code"]) == (AttemptState.NOT_SENT, "too_late")
    later(minutes=2)
    w.drive(jump=timedelta(minutes=5))
    assert w.effect(run).state == EffectState.AWAITING_APPROVAL
    assert w.sandbox.requests() == []
    renew(signed, w.s.oncall_g)
    assert Approval.objects.order_by("-revision")[0].state == ApprovalState.PENDING


def test_a_signer_who_leaves_as_the_sender_claims_does_not_count(w: World) -> None:
    """R5: the signatures are judged once more in the transaction that uses them up (faults, row 51)."""
    run, _signed, _until = signed_until(w)
    failpoints.arm("dispatch.before_claim", lambda: Person.objects.filter(pk=w.s.approver_b.pk).update(is_active=False))
    w.dispatch(w.effect(run))
    failpoints.disarm()
    assert w.sandbox.requests() == [] and w.attempts(w.effect(run)) == []
    w.drive()
    assert w.effect(run).state == EffectState.AWAITING_APPROVAL


def test_a_resend_that_was_decided_on_long_ago_is_decided_anew(w: World) -> None:
    """Invariant 10, and the window of the promise: who slept between the decision and the claim asks again first."""
    run = w.accept("test.many", "mail")
    w.sandbox.dial("mail", reply="drop", times=1)
    w.advance(run)
    effect = w.effect(run)
    assert effect.state == EffectState.UNKNOWN
    later(seconds=30)
    failpoints.arm("dispatch.before_claim", lambda: clock.shift(timedelta(days=1)))
    assert w.reconcile(effect) == "another was first"
    failpoints.disarm()
    assert len(w.attempts(effect)) == 1
    w.drive()
    assert w.effect(run).state == EffectState.UNKNOWN and len(w.sandbox.requests()) == 1


def test_what_breaks_right_after_the_lease_gives_the_run_back(w: World) -> None:
    """A lease is live while its worker is: one that fails and lives on holds nothing."""
    run = w.accept("test.many", "pay")
    failpoints.arm("advance.leased", "raise")
    with pytest.raises(failpoints.Failpoint):
        w.advance(run)
    failpoints.disarm()
    assert w.run(run).lease_owner is None
    w.drive(jump=timedelta(minutes=1))
    assert w.run(run).state == RunState.COMPLETED


def test_a_sender_that_was_paused_past_the_deadline_sends_nothing(w: World) -> None:
    run = w.accept("test.bounded", "slow")
    w.advance(run)
    failpoints.arm("dispatch.before_claim", lambda: clock.shift(timedelta(hours=2)))
    w.dispatch(w.effect(run))
    failpoints.disarm()
    w.drive()
    assert w.effect(run).state == EffectState.EXPIRED
    assert w.sandbox.requests() == []
