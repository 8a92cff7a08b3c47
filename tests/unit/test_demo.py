"""The demonstration's two run types, walked through by hand: every step, every outcome."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from demo.contracts import CancelOrder, OrderData, SendNotice
from recovery.checks import contract_checks
from recovery.contract import EffectState, Fail, Finish, Perform, StepOutcome, StepRun, registry
from tests.unit.samples import T0

ORDER = {
    "order": "A-10427",
    "charge": "ch_3QK9",
    "amount": 8400,
    "currency": "EUR",
    "email": "jo@customer.example",
    "provider": "cards-eu",
}


def run(**change: Any) -> StepRun:
    return StepRun(UUID(int=1), OrderData(**{**ORDER, **change}), T0, None, "svc-orders")


def ended(state: EffectState) -> StepOutcome:
    return StepOutcome(state, "cards.refund", "refund:ch_3QK9", evidence=(UUID(int=9),))


def test_the_demo_is_declared_without_a_problem() -> None:
    """Discovery finds contracts.py in the installed app and no check complains."""
    assert contract_checks(None) == []
    declared = {contract.operation for contract in registry.effects()}
    assert {"payments.refund", "cards.refund", "mail.send", "notices.notify"} <= declared
    assert registry.run_type("orders.cancel").version == 1


@pytest.mark.parametrize(("provider", "operation"), [("payments", "payments.refund"), ("cards-eu", "cards.refund")])
def test_the_refund_goes_to_the_provider_that_took_the_payment(provider: str, operation: str) -> None:
    got = CancelOrder().call("begin", run(provider=provider))
    assert isinstance(got, Perform)
    (request,) = got.requests
    assert (request.contract.operation, request.contract.dependency) == (operation, provider)
    assert request.key(None) == "refund:ch_3QK9"
    assert request.sentence("en") == "Refund EUR 84.00 on charge ch_3QK9"
    assert (got.then, got.on) == ("refunded", {"order.changed": "changed"})


@pytest.mark.parametrize(("amount", "signed"), [(99_999, False), (100_000, True)])
def test_two_signatures_from_1000_on(amount: int, signed: bool) -> None:
    got = CancelOrder().call("begin", run(amount=amount))
    assert isinstance(got, Perform)
    rule = got.requests[0].signatures()
    assert (rule is not None) is signed
    if rule is not None:
        assert (rule.needed, rule.group) == (2, "payments-approvers")


def test_a_changed_order_amends_the_same_intent() -> None:
    """Walk b: same operation, same key, another amount and digest."""
    steps, order = CancelOrder(), run(amount=125_000)
    before = steps.call("begin", order)
    after = steps.call("changed", order, steps.load_signal("order.changed", {"amount": 120_500}))
    assert isinstance(before, Perform) and isinstance(after, Perform)
    old, new = before.requests[0], after.requests[0]
    assert old.key(None) == new.key(None)
    assert old.intent_digest != new.intent_digest
    assert new.data["amount"] == order.data.amount == 120_500


def test_a_refund_that_happened_is_told_and_the_end_rests_on_both() -> None:
    """Invariant 7: completed names the evidence of each effect."""
    steps, order = CancelOrder(), run()
    told = steps.call("refunded", order, ended(EffectState.SUCCEEDED))
    assert isinstance(told, Perform)
    assert told.requests[0].contract.operation == "mail.send"
    mail = StepOutcome(EffectState.SUCCEEDED, "mail.send", "k", evidence=(UUID(int=10),))
    assert steps.call("told", order, mail) == Finish(verified=[UUID(int=9), UUID(int=10)])
    assert steps.dump(order.data)["refund_evidence"] == [str(UUID(int=9))]


def test_a_refund_that_did_not_happen_is_asked_for_once_more() -> None:
    steps, order = CancelOrder(), run()
    assert isinstance(steps.call("refunded", order, ended(EffectState.NOT_APPLIED)), Perform)
    assert steps.call("refunded", order, ended(EffectState.NOT_APPLIED)) == Fail("refund_not_made")


@pytest.mark.parametrize("state", [s for s in EffectState if s not in (EffectState.SUCCEEDED, EffectState.NOT_APPLIED)])
def test_every_other_end_says_why(state: EffectState) -> None:
    got = CancelOrder().call("refunded", run(), ended(state))
    assert isinstance(got, Finish | Fail)
    assert got.reason is not None
    assert CancelOrder().reason_text(got.reason, got.facts)


def test_the_notice_is_posted_once() -> None:
    """Neither keys nor readback: the key is the run's, and only a person can settle an unknown."""
    steps = SendNotice()
    order = StepRun(UUID(int=7), steps.load({"to": "board", "text": "Sale ends"}), T0, None, "svc")
    got = steps.call("begin", order)
    assert isinstance(got, Perform)
    assert got.requests[0].key(order) == f"notice:{UUID(int=7)}"
    assert got.requests[0].contract.claims_before_send
    assert steps.call("posted", order, ended(EffectState.SUCCEEDED)) == Finish(verified=[UUID(int=9)])
    assert isinstance(steps.call("posted", order, ended(EffectState.NOT_APPLIED)), Fail)
