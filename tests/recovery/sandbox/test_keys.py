"""Keys: one intent takes effect at most once where they are honoured, and as often as sent where not."""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from recovery.sandbox.server import Sandbox


def until(holds: Callable[[], bool]) -> None:
    """Wait until `holds`, at most five seconds."""
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline, "did not happen within 5 s"
        time.sleep(0.005)


def test_a_repeat_gets_the_stored_answer(sandbox: Sandbox, wire: Any) -> None:
    first, again = wire.post("payments", "k-1"), wire.post("payments", "k-1")
    assert first.headers["Idempotent-Replayed"] is None
    assert (again.status, again.body, again.headers["Idempotent-Replayed"]) == (201, first.body, "true")
    [entry] = sandbox.ledger("k-1")
    assert (entry["applied"], entry["received"], len(entry["ids"])) == (1, 2, 1)


def test_the_order_of_members_is_no_other_body(wire: Any) -> None:
    first = wire.post("payments", "k-1")
    body = json.dumps({"currency": "EUR", "amount": 8400, "charge": "ch_3QK9"}, indent=1).encode()
    again = wire.ask("POST", "/payments/v1/refunds", body, {"Idempotency-Key": "k-1"})
    assert (again.status, again.body) == (201, first.body)


def test_the_same_key_with_another_body_is_a_mismatch(sandbox: Sandbox, wire: Any) -> None:
    wire.post("payments", "k-1")
    other = wire.post("payments", "k-1", amount=8401)
    assert (other.status, other.json["error"]["code"]) == (422, "mismatch")
    [entry] = sandbox.ledger("k-1")
    assert (entry["applied"], len(entry["bodies"])) == (1, 2)


def test_the_same_key_at_two_providers_is_two_intents(sandbox: Sandbox, wire: Any) -> None:
    assert [wire.post("payments", "k-1").status, wire.post("mail", "k-1").status] == [201, 201]
    assert [(entry["provider"], entry["applied"]) for entry in sandbox.ledger("k-1")] == [
        ("payments", 1),
        ("mail", 1),
    ]


def test_a_repeat_in_flight_is_refused_and_later_replayed(sandbox: Sandbox, wire: Any) -> None:
    sandbox.dial("payments", reply="slow", delay=0.5, times=1)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(wire.post, "payments", "k-1")
        until(lambda: sandbox.applied("k-1") == 1)
        busy = wire.post("payments", "k-1")
        assert (busy.status, busy.json["error"]["code"]) == (409, "in_flight")
        assert not first.done()
        assert first.result().status == 201
    assert wire.post("payments", "k-1").body == first.result().body
    assert sandbox.applied("k-1") == 1


def test_the_same_key_twenty_times_at_once_takes_effect_once(sandbox: Sandbox, wire: Any) -> None:
    together = threading.Barrier(20)

    def post(_: int) -> Any:
        together.wait()
        return wire.post("payments", "k-1")

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(post, range(20)))
    assert sandbox.applied("k-1") == 1
    assert {answer.status for answer in answers} <= {201, 409}
    assert len({answer.body for answer in answers if answer.status == 201}) == 1
    assert sandbox.ledger("k-1")[0]["received"] == 20


def test_twenty_different_keys_at_once_all_take_effect(sandbox: Sandbox, wire: Any) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda n: wire.post("payments", f"k-{n}"), range(20)))
    assert [answer.status for answer in answers] == [201] * 20
    assert [entry["applied"] for entry in sandbox.ledger()] == [1] * 20


def test_a_provider_without_keys_applies_each_request(sandbox: Sandbox, wire: Any) -> None:
    """The ledger counts by the key as sent, also where the provider ignores it."""
    ids = [wire.post("cards-eu", "k-1").json["id"], wire.post("cards-eu", "k-1").json["id"]]
    [entry] = sandbox.ledger("k-1")
    assert (entry["provider"], entry["applied"], entry["received"]) == ("cards-eu", 2, 2)
    assert entry["ids"] == ids
    assert len(set(ids)) == 2


def test_the_keys_dial_makes_payments_ignore_keys(sandbox: Sandbox, wire: Any) -> None:
    sandbox.dial("payments", keys=False)
    wire.post("payments", "k-1")
    wire.post("payments", "k-1")
    assert sandbox.applied("k-1") == 2
    assert len(wire.get("/payments/v1/refunds?reference=k-1").json["data"]) == 2


def test_a_key_older_than_its_window_is_a_new_request(sandbox: Sandbox, wire: Any) -> None:
    wire.post("payments", "k-1")
    sandbox.dial("payments", key_window=0.001)
    time.sleep(0.01)
    assert wire.post("payments", "k-1").headers["Idempotent-Replayed"] is None
    assert sandbox.applied("k-1") == 2


def test_without_a_key_the_ledger_counts_by_the_bytes(sandbox: Sandbox, wire: Any) -> None:
    for text in ("one", "one", "two"):
        wire.post("notices", text=text)
    assert [entry["applied"] for entry in sandbox.ledger()] == [2, 1]
    assert all(entry["intent"].startswith("sha256:") for entry in sandbox.ledger())
