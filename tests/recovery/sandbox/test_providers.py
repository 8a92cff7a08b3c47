"""Each provider takes what it should, names what is wrong, and answers in its own shape."""

import json
import socket
from typing import Any

import pytest

from recovery.sandbox.server import Sandbox


@pytest.mark.parametrize(
    ("provider", "prefix"), [("payments", "re_"), ("cards-eu", "re_"), ("mail", "msg_"), ("notices", "nt_")]
)
def test_a_good_request_takes_effect_once(sandbox: Sandbox, wire: Any, provider: str, prefix: str) -> None:
    answer = wire.post(provider, "k-1")
    assert answer.status == 201
    assert answer.json["id"].startswith(prefix)
    assert sandbox.applied("k-1") == 1


def test_a_payments_refund_shows_what_was_asked_and_our_reference(wire: Any) -> None:
    item = wire.post("payments", "k-1").json
    assert {name: item[name] for name in ("object", "status", "charge", "amount", "currency", "reference")} == {
        "object": "refund",
        "status": "succeeded",
        "charge": "ch_3QK9",
        "amount": 8400,
        "currency": "EUR",
        "reference": "k-1",
    }


def test_cards_eu_never_shows_our_reference(wire: Any) -> None:
    assert "reference" not in wire.post("cards-eu", "k-1").json


@pytest.mark.parametrize(
    ("provider", "changes", "names"),
    [
        ("payments", {"charge": None, "amount": None, "currency": None}, ["charge", "amount", "currency"]),
        ("payments", {"amount": 0}, ["amount"]),
        ("payments", {"amount": -5}, ["amount"]),
        ("payments", {"amount": 84.0}, ["amount"]),
        ("payments", {"amount": "8400"}, ["amount"]),
        ("payments", {"amount": True}, ["amount"]),
        ("cards-eu", {"currency": "eur"}, ["currency"]),
        ("cards-eu", {"charge": " "}, ["charge"]),
        ("mail", {"to": "nobody", "data": []}, ["to", "data"]),
        ("notices", {"to": None, "text": 7}, ["to", "text"]),
    ],
)
def test_each_wrong_field_is_named_and_nothing_is_applied(
    sandbox: Sandbox, wire: Any, provider: str, changes: dict[str, Any], names: list[str]
) -> None:
    answer = wire.post(provider, "k-1", **changes)
    assert answer.status == 422
    assert answer.json["error"]["code"] == "invalid"
    assert [field["name"] for field in answer.json["error"]["fields"]] == names
    assert sandbox.applied("k-1") == 0
    assert sandbox.ledger("k-1")[0]["received"] == 1


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff", b'{"amount": NaN}', b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(sandbox: Sandbox, wire: Any, body: bytes) -> None:
    answer = wire.ask("POST", "/payments/v1/refunds", body, {"Idempotency-Key": "k-1"})
    assert (answer.status, answer.json["error"]["code"]) == (400, "malformed")
    assert sandbox.applied("k-1") == 0


def test_a_missing_or_unfit_key_is_refused_where_keys_are_honoured(sandbox: Sandbox, wire: Any) -> None:
    assert wire.post("payments").json["error"]["code"] == "key_missing"
    assert wire.post("mail", "x" * 256).json["error"]["code"] == "key_invalid"
    assert [entry["applied"] for entry in sandbox.ledger()] == [0, 0]


def test_unknown_addresses_methods_and_sizes_are_refused(wire: Any) -> None:
    assert wire.get("/nobody/v1/things").status == 404
    assert wire.get("/payments/v2/refunds").status == 404
    assert wire.get("/_nothing").status == 404
    assert wire.ask("DELETE", "/payments/v1/refunds").status == 405
    assert wire.get("/mail/v1/messages").status == 405
    assert wire.ask("POST", "/payments/v1/refunds", None, {"Content-Length": "2000000"}).status == 413
    assert wire.ask("POST", "/payments/v1/refunds", None, {"Transfer-Encoding": "chunked"}).status == 411


def test_a_body_that_breaks_off_is_never_applied(sandbox: Sandbox) -> None:
    """Bytes that did not all arrive are no request."""
    body = json.dumps({"to": "desk-4", "text": "hello"}).encode()
    with socket.create_connection(("127.0.0.1", int(sandbox.url.rpartition(":")[2]))) as connection:
        head = f"POST /notices/v1/notices HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body) + 10}\r\n\r\n"
        connection.sendall(head.encode() + body)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert sandbox.ledger() == []


def test_a_connection_is_kept_for_many_requests(sandbox: Sandbox) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", int(sandbox.url.rpartition(":")[2]))
    body = json.dumps({"to": "desk-4", "text": "hello"})
    connection.connect()
    first = connection.sock
    for _ in range(5):
        connection.request("POST", "/notices/v1/notices", body)
        assert connection.getresponse().read()
        assert connection.sock is first
    connection.close()
    assert sandbox.ledger()[0]["applied"] == 5
