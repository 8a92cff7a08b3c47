"""The demo's four contracts against the real sandbox: send, classify, read back. Its ledger is the oracle."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from demo.effects import post_notice, refund_by_cards, refund_by_payments, tell_by_mail
from recovery.contract import EffectRequest, OutcomeKind
from recovery.contract.readback import ReadbackAnswer
from recovery.sandbox.server import Sandbox
from runs.states import Claim, Strength
from tests.recovery.ports.conformance import ATTEMPT, sandbox

__all__ = ["sandbox"]

KEY = "refund:ch_3QK9"
REFUND = {"charge": "ch_3QK9", "amount": 8400, "currency": "EUR"}
REQUESTS: dict[str, EffectRequest] = {
    "payments": refund_by_payments(**REFUND),
    "cards-eu": refund_by_cards(**REFUND),
    "mail": tell_by_mail(to="jo@customer.example", template="order_cancelled", order="A-10427"),
    "notices": post_notice(to="board", text="Sale ends"),
}


def send(sandbox: Sandbox, provider: str, key: str = KEY, timeout_s: float = 5.0) -> Any:
    request = REQUESTS[provider]
    port = request.contract.port
    prepared = port.prepare(request.params, f"{sandbox.url}/{provider}", "alias")
    answer = port.send(prepared, key=key, attempt_id=ATTEMPT, token=1, timeout_s=timeout_s)
    return request.contract.outcomes.classify(answer)


def look(sandbox: Sandbox, provider: str, since: datetime | None = None) -> ReadbackAnswer:
    request = REQUESTS[provider]
    assert request.contract.reconcile is not None
    base = f"{sandbox.url}/{provider}"
    body = request.contract.port.prepare(request.params, base, "alias").body
    return request.contract.reconcile.ask(
        request.contract.port, base, request.params, KEY, body=body, first_sent_at=since
    )


@pytest.mark.parametrize("provider", REQUESTS)
def test_each_operation_succeeds(sandbox: Sandbox, provider: str) -> None:
    outcome = send(sandbox, provider)
    assert outcome.kind == OutcomeKind.SUCCEEDED, outcome
    assert set(outcome.result) == {"id", "status"}
    assert sandbox.applied(KEY) == 1


@pytest.mark.parametrize("provider", REQUESTS)
@pytest.mark.parametrize(
    ("reply", "kind", "applied"),
    [
        ("drop", OutcomeKind.UNKNOWN, 1),
        ("error500", OutcomeKind.UNKNOWN, 1),
        ("garbage", OutcomeKind.UNKNOWN, 1),
        ("reject", OutcomeKind.REJECTED, 0),
        ("overload", OutcomeKind.OVERLOADED, 0),
        ("refuse", OutcomeKind.TRANSIENT, 0),
    ],
)
def test_each_fault_is_what_it_is(sandbox: Sandbox, provider: str, reply: str, kind: OutcomeKind, applied: int) -> None:
    """What the contract says was proved is what the ledger says: unknown only where it may have happened."""
    sandbox.dial(provider, reply=reply)
    assert send(sandbox, provider).kind == kind
    assert sandbox.applied(KEY) == applied


@pytest.mark.parametrize("provider", ["payments", "mail"])
def test_the_same_key_again_never_applies_twice(sandbox: Sandbox, provider: str) -> None:
    sandbox.dial(provider, reply="drop", times=1)
    assert send(sandbox, provider).kind == OutcomeKind.UNKNOWN
    assert send(sandbox, provider).kind == OutcomeKind.SUCCEEDED
    assert sandbox.applied(KEY) == 1


def test_without_keys_the_same_key_again_applies_twice(sandbox: Sandbox) -> None:
    """Why cards-eu is never sent again: the test above bites."""
    for _ in range(2):
        send(sandbox, "cards-eu")
    assert sandbox.applied(KEY) == 2


def test_payments_proves_by_our_reference(sandbox: Sandbox) -> None:
    sandbox.dial("payments", reply="drop")
    send(sandbox, "payments")
    got = look(sandbox, "payments", datetime.now(UTC) - timedelta(seconds=5))
    assert (got.claim, got.strength) == (Claim.HAPPENED, Strength.PROVES)
    assert got.item is not None and got.item["id"].startswith("re_")


def test_cards_agrees_without_proving(sandbox: Sandbox) -> None:
    """Walk a: 3 of 3 facts that can be compared."""
    sandbox.dial("cards-eu", reply="drop")
    send(sandbox, "cards-eu")
    got = look(sandbox, "cards-eu", datetime.now(UTC) - timedelta(seconds=5))
    assert (got.claim, got.strength) == (Claim.HAPPENED, Strength.AGREES)
    compared = [row.same for row in got.facts if row.same is not None]
    assert compared == [True, True, True]


@pytest.mark.parametrize("provider", ["payments", "cards-eu"])
def test_nothing_happened_is_not_found(sandbox: Sandbox, provider: str) -> None:
    assert look(sandbox, provider).claim == Claim.NOT_FOUND


def test_a_readback_that_is_down_is_no_answer(sandbox: Sandbox) -> None:
    sandbox.dial("cards-eu", readback="down")
    got = look(sandbox, "cards-eu")
    assert (got.claim, got.strength, got.error) == (Claim.UNAVAILABLE, Strength.NONE, "http_503")


def test_a_readback_that_lags_speaks_of_earlier(sandbox: Sandbox) -> None:
    """Fault 20: what a lagging replica does not find is not found in the past."""
    sandbox.dial("payments", readback="lag", readback_lag=30)
    send(sandbox, "payments")
    got = look(sandbox, "payments")
    assert got.claim == Claim.NOT_FOUND
    assert got.observed_at <= datetime.now(UTC) - timedelta(seconds=29)
