"""Amending a request that was not attempted yet: same effect and key, next revision (invariant 3, R1)."""

from __future__ import annotations

from datetime import timedelta

from runs.models import Approval, Effect, Review
from runs.states import ApprovalState, EffectState, EventKind, ReviewKind, RunState, WaitingOn
from tests.recovery.engine.world import World
from tests.recovery.signers import sign

ABOVE = 120_500


def asked(w: World, amount: int = ABOVE) -> object:
    """A refund above the limit, waiting for two signatures."""
    run = w.accept("test.many", "pay", amount=amount)
    assert w.advance(run) == "waits: approval"
    return run


def newest(w: World, effect: Effect) -> Approval:
    return Approval.objects.filter(effect=effect).order_by("-revision")[0]


def test_before_an_attempt_the_run_may_change_its_request(w: World) -> None:
    """Revision 2, new digest and bytes, same effect and key; the old request is superseded with its signatures."""
    run = asked(w)
    before = w.effect(run)
    sign(newest(w, before), w.s.approver_b)
    w.signal(run, "order.changed", amount=130_000)
    w.drive()
    after, approval = w.effect(run), newest(w, before)
    assert (after.pk, after.key, after.revision) == (before.pk, before.key, 2)
    assert after.intent_digest != before.intent_digest and "130000" in after.body
    assert Approval.objects.get(effect=after, revision=1).state == ApprovalState.SUPERSEDED
    assert (approval.revision, approval.state, approval.signatures.count()) == (2, ApprovalState.PENDING, 0)
    assert w.run(run).waiting_on == WaitingOn.APPROVAL
    assert [r.subject for r in Review.objects.filter(state="open")] == [approval.pk]
    (line,) = w.events(run, EventKind.EFFECT_AMENDED)
    assert (line.data["before"]["amount"], line.data["after"]["amount"]) == (ABOVE, 130_000)
    assert line.data["by"] == w.s.oncall_g.name


def test_what_is_signed_in_the_end_is_what_is_sent(w: World) -> None:
    """R3: two signatures on revision 2, and the bytes of revision 2 arrive."""
    run = asked(w)
    w.signal(run, "order.changed", amount=130_000)
    w.drive()
    approval = newest(w, w.effect(run))
    sign(approval, w.s.approver_b)
    sign(approval, w.s.approver_c)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    (request,) = w.sandbox.requests()
    assert request["body"] == approval.body == w.effect(run).body


def test_whoever_changed_it_does_not_sign_it(w: World) -> None:
    """R4: the sender of the signal is an editor of the request."""
    run = asked(w)
    w.signal(run, "order.changed", amount=130_000)
    w.drive()
    assert str(w.s.oncall_g.pk) in newest(w, w.effect(run)).editors


def test_below_the_limit_nobody_has_to_sign(w: World) -> None:
    run = asked(w)
    w.signal(run, "order.changed", amount=5)
    w.drive()
    effect = w.effect(run)
    assert (effect.state, effect.revision) == (EffectState.SUCCEEDED, 2)
    assert Approval.objects.get(effect=effect).state == ApprovalState.SUPERSEDED
    assert w.reviews(run) == []
    assert w.sandbox.requests()[0]["body"] == effect.body


def test_above_the_limit_somebody_has_to_sign(w: World) -> None:
    """The other way: a request that was ready waits for signatures."""
    w.sandbox.dial("payments", reply="ok")
    run = w.accept("test.many", "pay", "mail")
    w.advance(run)
    w.signal(run, "order.changed", amount=ABOVE)
    w.advance(run)
    pay, mail = w.effects(run)
    assert (pay.state, pay.revision) == (EffectState.AWAITING_APPROVAL, 2)
    assert w.reviews(run) == [ReviewKind.SIGNATURES_NEEDED]
    w.drive()
    assert w.applied(pay) == 0 and w.applied(mail) == 1


def test_after_an_attempt_it_is_refused(w: World) -> None:
    """Invariant 3: bytes of the old digest may have left; the signal stays unused and nothing changes."""
    w.sandbox.dial("payments", reply="refuse", times=1)
    run = w.accept("test.many", "pay")
    w.advance(run)
    before = w.effect(run)
    assert (before.state, before.attempts) == (EffectState.READY, 1)
    w.signal(run, "order.changed", amount=5)
    w.drive(jump=timedelta(minutes=1))
    after = w.effect(run)
    assert (after.revision, after.intent_digest) == (1, before.intent_digest)
    assert {r["body"] for r in w.sandbox.requests()} == {before.body}
    assert w.run(run).state == RunState.COMPLETED


def test_another_runs_effect_is_not_amended(w: World) -> None:
    """Invariant 3: a run that only waits on an effect does not change it."""
    owner = w.accept("test.many", ("pay", "ch_same"), amount=ABOVE)
    w.advance(owner)
    other = w.accept("test.many", ("pay", "ch_same"), amount=ABOVE)
    w.advance(other)
    w.signal(other, "order.changed", amount=5)
    w.drive()
    effect = w.effect(owner)
    assert (effect.revision, effect.state) == (1, EffectState.AWAITING_APPROVAL)
    assert w.run(other).state == RunState.WAITING


def test_a_send_that_came_first_wins_and_the_run_goes_on(w: World) -> None:
    """The amendment meets an attempt at the last moment: refused by the guard, and the run is not stuck."""
    from recovery import failpoints

    run = w.accept("test.many", "slow")
    w.advance(run)
    effect = w.effect(run)

    def sent_meanwhile() -> None:
        failpoints.disarm()
        assert w.dispatch(effect) == EffectState.SUCCEEDED

    w.signal(run, "order.changed", amount=5)
    failpoints.arm("advance.before_commit", sent_meanwhile)
    assert w.advance(run) == "another was first"
    assert w.run(run).lease_owner is None
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert w.effect(run).revision == 1 and w.applied(effect) == 1
