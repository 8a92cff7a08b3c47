"""Reading runs, events, effects and actions, and signalling a run."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from runs.models import Effect, Run, Signal
from tests.console.api.conftest import ORDER, RUNS, START, Caller, Cast, problem


def start(caller: Caller, order: str = "A-1") -> str:
    answer = caller.post(RUNS, {"type": "orders.cancel", "input": {**ORDER, "order": order}})
    assert answer.status_code == 202, answer.content
    return str(answer.json()["id"])


def test_runs_are_listed_newest_first_in_pages(oncall: Caller) -> None:
    made = [start(oncall, f"A-{n}") for n in range(5)]
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        page = oncall.get(RUNS, limit=2, **({"cursor": cursor} if cursor else {})).json()
        seen += [run["id"] for run in page["items"]]
        cursor = page["next"]
    assert seen == made[::-1] and cursor is None


def test_runs_are_filtered_and_searched(oncall: Caller) -> None:
    first, second = start(oncall, "A-1"), start(oncall, "A-2")

    def found(**query: Any) -> list[str]:
        return [run["id"] for run in oncall.get(RUNS, **query).json()["items"]]

    assert found(q="A-1") == [first]
    assert found(q=second[-8:]) == [second]
    assert found(state="accepted,running") == [second, first]
    assert found(state=["completed", "failed"]) == []
    assert found(type="orders.cancel") == [second, first]
    assert found(waiting_on="approval") == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"stat": "running"}, "stat"),
        ({"state": "runing"}, "state"),
        ({"waiting_on": "godot"}, "waiting_on"),
        ({"limit": "0"}, "limit"),
        ({"limit": "201"}, "limit"),
        ({"limit": "9" * 50}, "limit"),
        ({"limit": "x"}, "limit"),
        ({"limit": "0000000509999999"}, "limit"),
        ({"limit": "000000050" + "9" * 5000}, "limit"),
        ({"q": "a\x00b"}, "q"),
        ({"type": "\x00"}, "type"),
        ({"limit": "0000000509999999"}, "limit"),
        ({"limit": "000000050" + "9" * 5000}, "limit"),
        ({"q": "a\x00b"}, "q"),
        ({"type": "\x00"}, "type"),
        ({"q": ["a", "b"]}, "q"),
    ],
)
def test_a_query_nobody_knows_is_refused_by_name(oncall: Caller, query: dict[str, Any], field: str) -> None:
    body = problem(oncall.get(RUNS, **query), 400, "query_invalid")
    assert [error["field"] for error in body["errors"]] == [field]


def test_a_cursor_of_nobody_is_refused(oncall: Caller) -> None:
    problem(oncall.get(RUNS, cursor="nonsense"), 400, "bad_cursor")
    run = start(oncall)
    problem(oncall.get(f"/api/v1/runs/{run}/events", cursor="nonsense"), 400, "bad_cursor")


def test_a_run_says_where_it_stands_and_where_to_read_on(oncall: Caller) -> None:
    run = start(oncall)
    body = oncall.get(f"/api/v1/runs/{run}").json()
    assert (body["type"], body["state"], body["version"], body["workspace"]) == (
        "orders.cancel",
        "accepted",
        1,
        "acme-pay",
    )
    assert body["started_by"]["name"] == "Oncall A"
    assert body["effects"] == {}
    events = oncall.get(body["events_url"]).json()
    assert [(line["seq"], line["kind"]) for line in events["items"]] == [(1, "run.accepted")]
    line = events["items"][0]
    assert line["actor"]["name"] == "Oncall A" and line["prev"] == "" and len(line["hash"]) == 64
    assert line["moves"] == [{"t": "run", "id": run, "from": "", "to": "accepted"}]
    assert oncall.get(body["effects_url"]).json() == {"items": [], "next": None, "previous": None}


def test_events_are_read_in_pages_from_the_first(oncall: Caller) -> None:
    run = start(oncall)
    for n in range(4):
        signal = {"name": "order.changed", "payload": {"amount": 100 + n}}
        assert oncall.post(f"/api/v1/runs/{run}/signals", signal).status_code == 202
    first = oncall.get(f"/api/v1/runs/{run}/events", limit=2).json()
    second = oncall.get(f"/api/v1/runs/{run}/events", limit=2, cursor=first["next"]).json()
    assert [line["seq"] for line in (*first["items"], *second["items"])] == [1, 2, 3, 4]
    assert first["previous"] is None
    back = oncall.get(f"/api/v1/runs/{run}/events", limit=2, cursor=second["previous"]).json()
    assert back["items"] == first["items"]


def test_an_effect_is_read_with_everything_said_about_it(oncall: Caller, cast: Cast) -> None:
    from runs import clock
    from runs.models import Approval, Attempt, Dependency, Evidence, Group, Signature
    from runs.models.base import new_id

    now, run = clock.now(), UUID(start(oncall))
    of: dict[str, Any] = {"workspace": cast.acme, "run_id": run}
    effect = Effect.objects.create(
        **of,
        dependency=Dependency.objects.get(workspace=cast.acme, name="cards-eu"),
        ordinal=1,
        operation="cards.refund",
        contract_version=1,
        contract_digest="d",
        target="ch_3QK9",
        params={"charge": "ch_3QK9"},
        key="refund:ch_3QK9",
        sent_key="refund:ch_3QK9",
        intent_digest="d",
        state="unknown",
        request={
            "method": "POST",
            "url": "http://cards.example/v1/refunds",
            "credential": "cards-live",
            "headers": {"X": "y"},
        },
        body='{"amount":8400}',
        describe="Refund EUR 84.00 on charge ch_3QK9",
        stake={"kind": "money", "direction": "out", "amount": 8400, "currency": "EUR"},
        deadline=now,
        requested_at=now,
        unknown_since=now,
    )
    attempt = Attempt.objects.create(
        **of, effect=effect, n=1, state="lost", token=1, worker=new_id(), committed_at=now, expires_at=now
    )
    Evidence.objects.create(
        **of, effect=effect, attempt=attempt, kind="statement", strength="word", claim="happened", digest="d",
        raw="what somebody wrote", person=cast.person("Oncall A"), observed_at=now, received_at=now,
    )  # fmt: skip
    approval = Approval.objects.create(
        **of, effect=effect, revision=1, digest="4f2a91c0" + "0" * 56, fields={}, body="{}", state="consumed",
        needed=2,
        group=Group.objects.get(workspace=cast.acme, slug="payments-approvers"), epoch=1, asked_at=now,
        approve_by=now, execute_within=60,
    )  # fmt: skip
    Signature.objects.create(
        workspace=cast.acme,
        approval=approval,
        person=cast.person("Approver B"),
        state="signed",
        reason="r",
        saw={},
        at=now,
    )
    listed = oncall.get(f"/api/v1/runs/{run}/effects").json()["items"]
    assert [(e["state"], e["dependency"]) for e in listed] == [("unknown", "cards-eu")]
    assert "params" not in listed[0] and "body" not in listed[0], "no payload in a list"
    body = oncall.get(listed[0]["url"]).json()
    assert body["request"] == {
        "method": "POST",
        "url": "http://cards.example/v1/refunds",
        "credential": "cards-live",
        "body": '{"amount":8400}',
    }
    assert [(t["n"], t["state"]) for t in body["tries"]] == [(1, "lost")]
    assert [(e["strength"], e["person"]["name"]) for e in body["evidence"]] == [("word", "Oncall A")]
    assert [(a["check_code"], a["signed"], a["needed"]) for a in body["approvals"]] == [("4F2A-91C0", 1, 2)]
    assert oncall.get(RUNS).json()["items"][0]["effects"] == {"unknown": 1}


def test_a_signal_is_recorded_once(oncall: Caller) -> None:
    """Invariant 15."""
    run, key = start(oncall), uuid4()
    path, body = f"/api/v1/runs/{run}/signals", {"name": "order.changed", "payload": {"amount": 5}}
    first, again = oncall.post(path, body, key), oncall.post(path, body, key)
    assert (first.status_code, again.status_code) == (202, 202), first.content
    assert first.json() == again.json() and again["Idempotent-Replayed"] == "true"
    assert Signal.objects.get().payload == {"amount": 5}
    problem(oncall.post(path, body | {"payload": {"amount": 6}}, key), 422, "action_mismatch")
    other = start(oncall, "A-2")
    problem(oncall.post(f"/api/v1/runs/{other}/signals", body, key), 422, "action_mismatch")
    assert Signal.objects.count() == 1


def test_an_ended_run_takes_no_signal(oncall: Caller) -> None:
    """Invariant 5."""
    from runs import clock

    run = start(oncall)
    Run.objects.filter(pk=run).update(state="cancelled", ended_at=clock.now())
    answer = oncall.post(f"/api/v1/runs/{run}/signals", {"name": "order.changed", "payload": {"amount": 5}})
    problem(answer, 409, "run_ended")


def test_a_signals_fields_are_named(oncall: Caller) -> None:
    run = start(oncall)
    body = problem(oncall.post(f"/api/v1/runs/{run}/signals", {"nam": "x"}), 422, "body_invalid")
    assert {error["field"] for error in body["errors"]} == {"name", "nam"}


def test_an_action_says_whether_it_was_recorded(oncall: Caller, cast: Cast) -> None:
    key = uuid4()
    problem(oncall.get(f"/api/v1/actions/{key}"), 404, "not_found")
    run = oncall.post(RUNS, START, key).json()["id"]
    (item,) = oncall.get(f"/api/v1/actions/{key}").json()["items"]
    assert (item["route"], item["run"], item["first_event"]) == ("runs.accept", run, 1)
    assert item["url"] == f"/api/v1/runs/{run}"
    problem(cast.caller("Auditor D").get(f"/api/v1/actions/{key}"), 404, "not_found")


def test_what_nobody_foresaw_is_answered_without_detail(oncall: Caller, monkeypatch: Any) -> None:
    """Trap 26: errors fail closed, and the text of the exception stays inside."""
    from runs import queries

    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("secret of the inside")

    monkeypatch.setattr(queries, "visible_run", broken)
    answer = oncall.get(f"/api/v1/runs/{uuid4()}")
    problem(answer, 500, "internal")
    assert b"secret of the inside" not in answer.content


def test_a_record_that_is_away_is_said_with_503(oncall: Caller, monkeypatch: Any) -> None:
    from django.db import OperationalError

    from runs import queries

    def away(*args: Any, **kwargs: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(queries, "visible_run", away)
    answer = oncall.get(f"/api/v1/runs/{uuid4()}")
    problem(answer, 503, "record_away")
    assert answer["Retry-After"] == "5"
