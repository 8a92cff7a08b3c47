"""The sandbox's own addresses: dials that name what is wrong, and a ledger that tells all."""

import json
from typing import Any

import pytest

from recovery.sandbox.client import SandboxClient, SandboxRefused, SandboxUnreachable
from recovery.sandbox.server import Sandbox


@pytest.mark.parametrize(
    ("settings", "name", "allowed"),
    [
        ({"replly": "drop"}, "replly", "reply"),
        ({"reply": "vanish"}, "reply", "garbage"),
        ({"times": 0}, "times", "whole number"),
        ({"times": True}, "times", "whole number"),
        ({"delay": -1}, "delay", "seconds"),
        ({"delay_before": "soon"}, "delay_before", "seconds"),
        ({"retry_after": 1.5}, "retry_after", "whole seconds"),
        ({"readback": "maybe"}, "readback", "lag"),
        ({"keys": "yes"}, "keys", "true or false"),
        ({"key_window": 0}, "key_window", "seconds"),
        ({"match": ""}, "match", "not empty"),
        ({"callback_url": "ftp://x"}, "callback_url", "http"),
        ({"callback_secret": "secret"}, "callback_secret", "whsec_"),
        ({"callback_secret": "whsec_"}, "callback_secret", "whsec_"),
        ({"callback_url": "http://127.0.0.1:1/"}, "callback_secret", "together"),
        ({"reply": ["drop"]}, "reply", "drop"),
    ],
)
def test_a_wrong_dial_is_refused_and_named(
    sandbox: Sandbox, wire: Any, settings: dict[str, Any], name: str, allowed: str
) -> None:
    before = sandbox.dials.get("payments")
    answer = wire.put("/_dials/payments", settings)
    assert (answer.status, answer.headers["Content-Type"]) == (400, "application/problem+json")
    assert answer.json["status"] == 400
    [error] = answer.json["errors"]
    assert error["name"] == name
    assert allowed in json.dumps(error["allowed"])
    assert sandbox.dials.get("payments") == before


def test_each_wrong_setting_is_named_and_none_is_taken(sandbox: Sandbox, wire: Any) -> None:
    answer = wire.put("/_dials/payments", {"reply": "drop", "times": -1, "what": 1})
    assert [error["name"] for error in answer.json["errors"]] == ["times", "what"]
    assert sandbox.dials.get("payments").reply == "ok"


def test_a_readback_dial_needs_a_readback(wire: Any) -> None:
    answer = wire.put("/_dials/mail", {"readback": "down"})
    assert answer.status == 400
    assert answer.json["errors"][0]["allowed"] == ["payments", "cards-eu"]


def test_an_unknown_provider_is_404_and_names_the_known(wire: Any) -> None:
    for answer in (
        wire.put("/_dials/nobody", {}),
        wire.get("/_dials/nobody"),
        wire.ask("DELETE", "/_dials/x"),
    ):
        assert answer.status == 404
        assert "payments, cards-eu, mail, notices" in answer.json["detail"]


def test_a_body_that_is_no_object_is_refused(wire: Any) -> None:
    assert wire.put("/_dials/payments", [1]).status == 400
    assert wire.ask("PUT", "/_dials/payments", b"{").status == 400


def test_setting_one_dial_leaves_the_others_and_a_new_reply_counts_anew(sandbox: Sandbox, wire: Any) -> None:
    wire.put("/_dials/cards-eu", {"reply": "drop", "times": 3, "match": "x"})
    shown = wire.put("/_dials/cards-eu", {"readback": "down"}).json
    assert (shown["reply"], shown["times"], shown["match"], shown["readback"]) == ("drop", 3, "x", "down")
    shown = wire.put("/_dials/cards-eu", {"reply": "slow"}).json
    assert (shown["reply"], shown["times"], shown["match"], shown["readback"]) == ("slow", None, None, "down")
    shown = wire.ask("DELETE", "/_dials/cards-eu").json
    assert (shown["reply"], shown["readback"], shown["keys"]) == ("ok", "ok", False)
    assert wire.get("/_dials").json["payments"]["keys"] is True


def test_the_secret_is_never_shown(sandbox: Sandbox, wire: Any) -> None:
    settings = {"callback_url": "http://127.0.0.1:1/", "callback_secret": "whsec_c2VjcmV0c2VjcmV0"}
    assert wire.put("/_dials/payments", settings).json["callback_secret"] == "set"
    assert b"c2VjcmV0" not in wire.get("/_dials").body
    assert "c2VjcmV0" not in repr(sandbox.dials.get("payments"))


def test_the_ledger_keeps_exact_bytes_headers_and_order(sandbox: Sandbox, wire: Any) -> None:
    body = b'{"charge":"ch_\xc3\xbc",  "amount":8400,"currency":"EUR"}'
    headers = {"Idempotency-Key": "k/1 &?", "Recourse-Attempt": "0199-a", "Recourse-Token": "42"}
    wire.ask("POST", "/payments/v1/refunds", body, headers)
    wire.post("mail", "other")
    wire.ask("POST", "/payments/v1/refunds", body, headers)
    client = SandboxClient(sandbox.url)
    [entry] = client.ledger("k/1 &?")
    assert [text.encode() for text in entry["bodies"]] == [body]
    first, second = client.requests("k/1 &?")
    assert first["headers"] == headers
    assert first["received_at"] < second["received_at"]
    assert (first["verdict"], second["verdict"], first["id"]) == ("applied", "replayed", entry["ids"][0])
    assert [line["provider"] for line in client.requests()] == ["payments", "mail", "payments"]
    assert client.health() | {"pid": 0, "started_at": ""} == {
        "status": "ok",
        "pid": 0,
        "started_at": "",
        "received": 3,
        "applied": 2,
    }


def test_reset_leaves_the_ledger(sandbox: Sandbox, wire: Any) -> None:
    client = SandboxClient(sandbox.url)
    client.dial("cards-eu", reply="reject")
    wire.post("cards-eu", "k-1")
    assert client.reset("cards-eu")["reply"] == "ok"
    assert client.reset()["cards-eu"]["reply"] == "ok"
    assert client.ledger("k-1")[0]["received"] == 1
    assert client.applied("k-1") == 0


def test_the_client_says_who_refused_and_who_is_not_there(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxRefused, match="vanish") as refused:
        SandboxClient(sandbox.url).dial("payments", reply="vanish")
    assert refused.value.problem["errors"][0]["name"] == "reply"
    sandbox_url = sandbox.url
    with pytest.raises(ValueError, match="not an address"):
        SandboxClient("127.0.0.1")
    sandbox.stop()
    with pytest.raises(SandboxUnreachable, match="no sandbox answers"):
        SandboxClient(sandbox_url).health()
