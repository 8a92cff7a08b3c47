"""Amending a request whose signatures ran out: it is replaced like one that is still open (R1, R4)."""

from __future__ import annotations

from uuid import UUID

import pytest

from recovery.actions import runs as run_actions
from runs import access, errors
from runs.models import Approval, Review
from runs.states import ApprovalState, EffectState, RunState
from tests.recovery.engine.world import World
from tests.recovery.signers import sign
from tests.recovery.stage import act, later

ABOVE = 120_500


def ran_out(w: World) -> UUID:
    """A refund above the limit that nobody signed in time."""
    run = w.accept("test.many", "pay", amount=ABOVE)
    w.advance(run)
    _run_out(w)
    return run


def _run_out(w: World) -> None:
    later(hours=9)
    w.drive()


def _newest() -> Approval:
    return Approval.objects.order_by("-revision")[0]


def test_the_new_revision_takes_its_place(w: World) -> None:
    """R1: one request is open, one item is in the inbox."""
    run = ran_out(w)
    w.signal(run, "order.changed", amount=130_000)
    w.drive()
    assert Approval.objects.get(revision=1).state == ApprovalState.SUPERSEDED
    assert [r.subject for r in Review.objects.filter(state="open")] == [_newest().pk]


def test_below_the_limit_it_is_sent_without_signatures(w: World) -> None:
    run = ran_out(w)
    w.signal(run, "order.changed", amount=5)
    w.drive()
    assert (w.effect(run).state, w.run(run).state) == (EffectState.SUCCEEDED, RunState.COMPLETED)
    assert w.reviews(run) == []


def test_whoever_changed_an_earlier_revision_does_not_sign_a_later_one(w: World) -> None:
    """R4, invariant 8: also where the revision in between ran out unsigned."""
    editor = w.s.oncall_g
    access.grant(editor, w.s.here, ["on-call", "approver"])
    w.s.approvers.members.add(editor)
    run = w.accept("test.many", "pay", amount=ABOVE)
    w.advance(run)
    w.signal(run, "order.changed", amount=130_000)
    w.drive()
    _run_out(w)
    run_actions.signal(run, "order.changed", {"amount": 140_000}, actor=w.s.oncall_a, act=act("signal"))
    w.drive()
    assert _newest().revision == 3
    with pytest.raises(errors.OwnRequest):
        sign(_newest(), editor)
