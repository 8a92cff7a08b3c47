"""Each fault of `reply`: what the caller sees, and what really happened."""

import http.client
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from recovery.sandbox.server import Sandbox


@pytest.mark.parametrize(("reply", "seen"), [("drop", http.client.RemoteDisconnected), ("reset", ConnectionResetError)])
def test_a_lost_answer_took_effect(sandbox: Sandbox, wire: Any, reply: str, seen: type[ConnectionError]) -> None:
    sandbox.dial("payments", reply=reply, times=1)
    with pytest.raises(ConnectionError) as lost:
        wire.post("payments", "k-1")
    assert type(lost.value) is seen
    assert sandbox.applied("k-1") == 1
    assert sandbox.requests("k-1")[0]["status"] is None
    again = wire.post("payments", "k-1")
    assert (again.status, again.headers["Idempotent-Replayed"]) == (201, "true")
    assert sandbox.applied("k-1") == 1


def test_error500_and_garbage_took_effect(sandbox: Sandbox, wire: Any) -> None:
    sandbox.dial("mail", reply="error500", times=1)
    assert wire.post("mail", "k-1").status == 500
    sandbox.dial("mail", reply="garbage", times=1)
    answer = wire.post("mail", "k-2")
    assert answer.status == 201
    with pytest.raises(ValueError, match="decode"):
        answer.json  # noqa: B018
    assert [sandbox.applied("k-1"), sandbox.applied("k-2")] == [1, 1]
    assert wire.post("mail", "k-1").json["id"] == sandbox.ledger("k-1")[0]["ids"][0]


def test_slow_applies_at_once_and_answers_late(sandbox: Sandbox, wire: Any) -> None:
    sandbox.dial("cards-eu", reply="slow", delay=3600, times=1)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(wire.post, "cards-eu", "k-1")
        while not sandbox.applied("k-1"):
            assert not answer.done()
        sandbox.dial("cards-eu", reply="slow", delay=0.01)
        assert wire.post("cards-eu", "k-2").status == 201, "late is not never"
        assert not answer.done()
        sandbox.stop()
        with pytest.raises(ConnectionError):
            answer.result(60)


def test_delay_before_is_received_and_not_yet_applied(sandbox: Sandbox, wire: Any) -> None:
    sandbox.dial("cards-eu", delay_before=0.3)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(wire.post, "cards-eu", "k-1")
        while not sandbox.requests("k-1"):
            assert not answer.done()
        assert sandbox.requests("k-1")[0]["verdict"] == "waiting"
        assert sandbox.applied("k-1") == 0
        assert answer.result().status == 201
    [line] = sandbox.requests("k-1")
    assert (line["verdict"], line["status"]) == ("applied", 201)
    assert sandbox.applied("k-1") == 1


def test_reject_overload_and_refuse_did_not_take_effect(sandbox: Sandbox, wire: Any) -> None:
    sandbox.dial("payments", reply="reject")
    rejected = wire.post("payments", "k-1")
    assert (rejected.status, rejected.json["error"]["code"]) == (402, "insufficient_funds")
    sandbox.dial("payments", reply="overload", retry_after=7)
    overloaded = wire.post("payments", "k-1")
    assert (overloaded.status, overloaded.headers["Retry-After"]) == (429, "7")
    sandbox.dial("payments", reply="refuse")
    assert wire.post("payments", "k-1").status == 503
    assert sandbox.applied("k-1") == 0
    verdicts = [line["verdict"] for line in sandbox.requests("k-1")]
    assert verdicts == ["rejected", "overloaded", "refused"]
    sandbox.reset("payments")
    assert wire.post("payments", "k-1").status == 201


def test_a_hold_covers_its_times_and_then_lets_go(sandbox: Sandbox, wire: Any) -> None:
    sandbox.dial("notices", reply="refuse", times=2)
    assert [wire.post("notices").status for _ in range(4)] == [503, 503, 201, 201]
    assert sandbox.dials.get("notices").reply == "ok"


def test_without_times_a_hold_lasts_until_reset(sandbox: Sandbox, wire: Any) -> None:
    sandbox.dial("notices", reply="refuse")
    assert {wire.post("notices").status for _ in range(5)} == {503}
    sandbox.reset()
    assert wire.post("notices").status == 201


def test_match_holds_only_bodies_with_its_text(sandbox: Sandbox, wire: Any) -> None:
    sandbox.dial("payments", reply="reject", match="ch_bad", times=1)
    statuses = [wire.post("payments", f"k-{n}", charge=c).status for n, c in enumerate(["ch_ok", "ch_bad1"])]
    assert statuses == [201, 402]
    assert wire.post("payments", "k-3", charge="ch_bad1").status == 201


def test_a_refused_request_uses_up_no_times(sandbox: Sandbox, wire: Any) -> None:
    sandbox.dial("payments", reply="error500", times=1)
    assert wire.post("payments", "k-1", amount=0).status == 422
    assert wire.post("payments", "k-1").status == 500


def test_times_are_shared_out_exactly_under_load(sandbox: Sandbox, wire: Any) -> None:
    sandbox.dial("notices", reply="refuse", times=7)
    with ThreadPoolExecutor(10) as pool:
        statuses = list(pool.map(lambda _: wire.post("notices").status, range(30)))
    assert (statuses.count(503), statuses.count(201)) == (7, 23)
