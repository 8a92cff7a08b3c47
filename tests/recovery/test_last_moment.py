"""Nothing is sent once its time is over, also where it was in time when it was judged (invariants 8 and 12)."""

from __future__ import annotations

from datetime import timedelta

from recovery import failpoints
from runs import clock
from runs.models import Approval
from runs.states import ApprovalState, AttemptState, EffectState, ReviewKind
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


def test_a_sender_that_was_paused_before_its_claim_sends_nothing_on_old_signatures(w: World) -> None:
    """R6: judged in time, claimed at execute_by; the attempt is known not to have left and a person sees it."""
    run = w.accept("test.many", "pay", amount=ABOVE)
    w.advance(run)
    sign(Approval.objects.get(), w.s.approver_b)
    sign(Approval.objects.get(), w.s.approver_c)
    signed = Approval.objects.get()
    assert signed.execute_by is not None
    until = signed.execute_by
    failpoints.arm("dispatch.before_claim", lambda: clock.shift(until - clock.now()))
    w.dispatch(w.effect(run))
    failpoints.disarm()
    (attempt,) = w.attempts(w.effect(run))
    assert (attempt.state, attempt.outcome["code"]) == (AttemptState.NOT_SENT, "too_late")
    w.drive(jump=timedelta(minutes=5))
    assert w.effect(run).state == EffectState.AWAITING_APPROVAL
    assert w.reviews(run) == [ReviewKind.SIGNATURES_NEEDED]
    assert w.sandbox.requests() == []
    renew(signed, w.s.oncall_g)
    assert Approval.objects.order_by("-revision")[0].state == ApprovalState.PENDING


def test_a_sender_that_was_paused_past_the_deadline_sends_nothing(w: World) -> None:
    run = w.accept("test.bounded", "slow")
    w.advance(run)
    failpoints.arm("dispatch.before_claim", lambda: clock.shift(timedelta(hours=2)))
    w.dispatch(w.effect(run))
    failpoints.disarm()
    w.drive()
    assert w.effect(run).state == EffectState.EXPIRED
    assert w.sandbox.requests() == []
