"""Sending for the first time, or again what is known not to have been applied. Pure."""

from __future__ import annotations

from datetime import timedelta

from recovery.contract.failures import FailureClass
from recovery.contract.outcomes import Outcome, OutcomeKind
from recovery.engine.judging import Case
from recovery.engine.snapshot import Decision, Verb
from runs.states import EffectState, ReviewKind


def before_send(case: Case) -> Decision:
    """An effect that is ready: nothing of it is outstanding."""
    snap = case.snap
    if snap.cancelling:
        return case.settle(EffectState.CANCELLED, "cancelled_before_sending")
    if case.now >= case.last_moment_to_send:
        return case.settle(EffectState.EXPIRED, "deadline_passed")
    if not case.approval_holds:
        # Invariant 8. The effect waits for a new request; only its own deadline makes it expired.
        return case.ask(
            "approval_expired",
            review=ReviewKind.SIGNATURES_NEEDED,
            becomes=EffectState.AWAITING_APPROVAL,
            again=case.last_moment_to_send,
        )
    if case.attempts and not case.tries_left(_class_of(case)):
        return case.settle(EffectState.NOT_APPLIED, "tries_used_up", failure=str(_class_of(case)))
    if snap.paused:
        return case.wait("run_paused", case.look_again)
    if snap.shed and not case.attempts:
        return case.settle(EffectState.NOT_APPLIED, "refused_meanwhile")
    if snap.held:
        return case.wait("dependency_held", case.look_again)
    if case.attempts and not snap.budget_left:
        return case.wait("budget_used_up", case.look_soon)
    if snap.not_before is not None and case.now < snap.not_before:
        return case.wait("pause", snap.not_before)
    return case.act(Verb.SEND, "send_now")


def send_again(case: Case, reason: str, outcome: Outcome | None) -> Decision:
    """The last attempt is known not to have been applied and no other is outstanding: again, in budget."""
    if case.snap.cancelling:
        return case.settle(EffectState.CANCELLED, "cancelled_before_sending")
    if case.now >= case.last_moment_to_send:
        return case.settle(EffectState.EXPIRED, "deadline_passed")
    if not case.tries_left(_class_of(case)):
        return case.settle(EffectState.NOT_APPLIED, "tries_used_up", failure=str(_class_of(case)))
    told = None if outcome is None or outcome.retry_after_s is None else timedelta(seconds=outcome.retry_after_s)
    at = max(case.pause_ends(told), case.now)
    if at >= case.last_moment_to_send:
        # Waiting longer than there is time for is only a slower way to expire; say so at the deadline.
        at = case.last_moment_to_send
    return case.wait(reason, at, becomes=EffectState.READY)


def _class_of(case: Case) -> FailureClass:
    last = case.last
    if last is not None and last.outcome is not None and last.outcome.kind == OutcomeKind.OVERLOADED:
        return FailureClass.OVERLOAD
    return FailureClass.TRANSIENT
