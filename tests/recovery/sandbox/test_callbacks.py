"""Callbacks are signed after Standard Webhooks, sent after the effect, and kept with what became of them."""

from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from recovery.sandbox.client import SandboxClient, SandboxRefused
from recovery.sandbox.server import Sandbox

SECRET = "whsec_c2FuZGJveC1zZWNyZXQtb25l"
OTHER = "whsec_c2FuZGJveC1zZWNyZXQtdHdv"


def test_an_effect_sends_one_callback_that_verifies(sandbox: Sandbox, wire: Any, receiver: Any) -> None:
    url, came, arrived = receiver
    sandbox.dial("payments", callback_url=f"{url}/callbacks", callback_secret=SECRET)
    item = wire.post("payments", "k-1").json
    assert arrived.acquire(timeout=5)
    wire.post("payments", "k-1")  # a replay is no effect
    wire.post("payments", "k-2")
    assert arrived.acquire(timeout=5)
    event = Webhook(SECRET).verify(came[0].body, came[0].headers)
    assert (event["type"], event["data"]) == ("refund.succeeded", item)
    with pytest.raises(WebhookVerificationError):
        Webhook(OTHER).verify(came[0].body, came[0].headers)
    assert [Webhook(SECRET).verify(c.body, c.headers)["data"]["reference"] for c in came] == ["k-1", "k-2"]


def test_what_is_not_applied_sends_none(sandbox: Sandbox, wire: Any, receiver: Any) -> None:
    url, came, arrived = receiver
    sandbox.dial("payments", callback_url=url, callback_secret=SECRET, reply="reject", times=1)
    wire.post("payments", "k-1")
    wire.post("payments", "k-2")
    assert arrived.acquire(timeout=5)
    assert [Webhook(SECRET).verify(c.body, c.headers)["data"]["reference"] for c in came] == ["k-2"]


def test_the_callback_of_a_dropped_answer_still_comes(sandbox: Sandbox, wire: Any, receiver: Any) -> None:
    url, _came, arrived = receiver
    sandbox.dial("mail", callback_url=url, callback_secret=SECRET, reply="drop")
    with pytest.raises(ConnectionError):
        wire.post("mail", "k-1")
    assert arrived.acquire(timeout=5)


def test_send_signs_any_event_and_repeats_one_by_id(sandbox: Sandbox, receiver: Any) -> None:
    url, came, _ = receiver
    client = SandboxClient(sandbox.url)
    asked = {"provider": "payments", "url": url, "secret": SECRET, "event": {"type": "x", "n": "ü"}}
    first = client.send_callback(**asked)
    assert (first["status"], first["error"]) == (204, None)
    client.send_callback(**asked, id=first["id"])
    assert [c.headers["webhook-id"] for c in came] == [first["id"]] * 2
    assert Webhook(SECRET).verify(came[1].body, came[1].headers) == {"type": "x", "n": "ü"}
    assert [line["id"] for line in client.callbacks()] == [first["id"]] * 2


def test_a_receiver_that_is_not_there_is_said(sandbox: Sandbox, receiver: Any) -> None:
    url, came, _ = receiver
    client = SandboxClient(sandbox.url)
    asked = {"provider": "mail", "secret": SECRET, "event": {}}
    gone = client.send_callback(**asked, url="http://127.0.0.1:1/")
    assert gone["status"] is None
    assert "refused" in gone["error"]
    assert client.send_callback(**asked, url=f"{url}/elsewhere")["status"] == 302
    assert len(came) == 1, "a redirect is not followed"


def test_a_wrong_send_names_each_field(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxRefused) as refused:
        SandboxClient(sandbox.url).send_callback(provider="x", url="y", secret="z", event=1, id=2)
    names = [error["name"] for error in refused.value.problem["errors"]]
    assert names == ["provider", "url", "secret", "event", "id"]
