"""Readback: by our reference, by the charge, silent and late."""

from datetime import UTC, datetime
from typing import Any

from recovery.sandbox.server import Sandbox


def test_payments_is_read_by_reference_and_by_charge(wire: Any) -> None:
    item = wire.post("payments", "k-1").json
    wire.post("payments", "k-2", charge="ch_other")
    assert wire.get("/payments/v1/refunds?reference=k-1").json["data"] == [item]
    assert wire.get("/payments/v1/refunds?charge=ch_3QK9").json["data"] == [item]
    assert wire.get("/payments/v1/refunds?reference=k-1&charge=ch_other").json["data"] == []
    assert wire.get("/payments/v1/refunds?reference=k-9").json["data"] == []


def test_cards_eu_is_read_by_charge_only_and_shows_no_reference(wire: Any) -> None:
    wire.post("cards-eu", "k-1")
    [item] = wire.get("/cards-eu/v1/refunds?charge=ch_3QK9").json["data"]
    assert "reference" not in item
    refused = wire.get("/cards-eu/v1/refunds?reference=k-1")
    assert (refused.status, refused.json["error"]["code"]) == (400, "unknown_parameter")
    assert wire.get("/cards-eu/v1/refunds").json["error"]["code"] == "missing_parameter"
    assert wire.get("/cards-eu/v1/refunds?charge=").json["error"]["code"] == "missing_parameter"


def test_providers_do_not_see_each_other(wire: Any) -> None:
    wire.post("payments", "k-1")
    assert wire.get("/cards-eu/v1/refunds?charge=ch_3QK9").json["data"] == []


def test_readback_down_answers_503_and_posts_go_on(sandbox: Sandbox, wire: Any) -> None:
    sandbox.dial("payments", readback="down", readback_times=2)
    assert wire.post("payments", "k-1").status == 201
    statuses = [wire.get("/payments/v1/refunds?reference=k-1").status for _ in range(3)]
    assert statuses == [503, 503, 200]


def test_a_lagging_readback_hides_what_is_young(sandbox: Sandbox, wire: Any) -> None:
    wire.post("cards-eu", "k-1")
    before = datetime.now(UTC)
    sandbox.dial("cards-eu", readback_lag=60)
    late = wire.get("/cards-eu/v1/refunds?charge=ch_3QK9").json
    assert late["data"] == []
    assert 59 <= (before - datetime.fromisoformat(late["as_of"])).total_seconds() < 60.001
    sandbox.dial("cards-eu", readback="lag", readback_lag=0)
    assert wire.get("/cards-eu/v1/refunds?charge=ch_3QK9").json["data"] == []
    sandbox.dial("cards-eu", readback="ok")
    fresh = wire.get("/cards-eu/v1/refunds?charge=ch_3QK9").json
    assert len(fresh["data"]) == 1
    assert datetime.fromisoformat(fresh["as_of"]).replace(microsecond=0) >= before.replace(microsecond=0)


def test_a_page_is_bounded_and_says_so(sandbox: Sandbox, wire: Any) -> None:
    for _ in range(101):
        wire.post("cards-eu")
    answer = wire.get("/cards-eu/v1/refunds?charge=ch_3QK9").json
    assert (len(answer["data"]), answer["has_more"]) == (100, True)


def test_what_was_made_since_is_listed_by_prefix_in_pages(wire: Any) -> None:
    early = wire.post("payments", "refund:0").json
    since = datetime.now(UTC).isoformat().replace("+", "%2B")
    for n in range(101):
        wire.post("payments", f"refund:{n + 1}", charge=f"ch_{n}")
    wire.post("payments", "other:1", charge="ch_other")
    address = f"/payments/v1/refunds?prefix=refund:&since={since}"
    first = wire.get(address).json
    assert len(first["data"]) == 100 and early not in first["data"]
    last = wire.get(f"{address}&after={first['next']}").json
    assert ([item["reference"] for item in last["data"]], last["next"]) == (["refund:101"], None)
    assert wire.get("/payments/v1/refunds?prefix=refund:&since=then").json["error"]["code"] == "bad_parameter"
    assert wire.get("/cards-eu/v1/refunds?prefix=refund:").json["error"]["code"] == "unknown_parameter"
