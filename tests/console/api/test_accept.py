"""POST workspaces/{w}/runs: what is accepted is recorded, once, or refused by name."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest

from console.api import problems
from runs.models import Event, Run
from runs.states import EventKind
from tests.console.api.conftest import ORDER, RUNS, START, Caller, Cast, problem


def test_a_run_is_accepted_and_recorded_before_the_answer(oncall: Caller) -> None:
    """Invariant 1."""
    answer = oncall.post(RUNS, START | {"goal": "refunded", "priority": 3, "deadline": "2036-12-01T18:00:00+08:00"})
    assert answer.status_code == 202, answer.content
    body = answer.json()
    run = Run.objects.get(pk=body["id"])
    assert body["state"] == run.state == "accepted"
    assert answer["Location"] == body["url"] == f"/api/v1/runs/{run.pk}"
    assert (run.goal, run.priority, run.references) == ("refunded", 3, ["A-10427", "ch_3QK9"])
    assert run.deadline is not None and run.deadline.isoformat() == "2036-12-01T10:00:00+00:00"
    assert run.principal == "oncall-a@acme.example"
    assert run.started_by is not None and run.started_by.name == "Oncall A"
    assert answer["Cache-Control"].count("no-store") == 1


def test_the_same_key_and_body_gives_the_first_answer_and_one_run(oncall: Caller) -> None:
    """Invariant 15: the stored 202, whatever the order of the keys."""
    key = uuid4()
    first = oncall.post(RUNS, START, key)
    again = oncall.post(RUNS, {"input": dict(reversed(ORDER.items())), "type": "orders.cancel"}, f'"{key}"')
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert "Idempotent-Replayed" not in first and again["Idempotent-Replayed"] == "true"
    assert Run.objects.count() == 1


def test_the_same_key_with_another_body_is_refused_and_kept_in_the_history(oncall: Caller, cast: Cast) -> None:
    """Fault 4: the first run is untouched, the refusal is audited."""
    key = uuid4()
    assert oncall.post(RUNS, START, key).status_code == 202
    problem(oncall.post(RUNS, START | {"priority": 1}, key), 422, "action_mismatch")
    assert Run.objects.get().priority == 0
    (line,) = Event.objects.filter(workspace=cast.acme, run=None, kind=EventKind.ACTION_REFUSED)
    assert line.data["code"] == "action_mismatch" and line.data["action"] == str(key)


def test_another_persons_same_key_is_their_own(oncall: Caller, cast: Cast) -> None:
    """Keys are scoped by workspace, person and route."""
    key = uuid4()
    outsider = cast.caller("Outsider E", workspace=cast.other)
    first = oncall.post(RUNS, START, key)
    second = outsider.post("/api/v1/workspaces/other-pay/runs", START, key)
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["id"] != second.json()["id"]


def test_a_stored_answer_is_not_replayed_to_someone_whose_right_is_gone(oncall: Caller, cast: Cast) -> None:
    """Trap 30: authorised again before the replay."""
    from runs import access

    key = uuid4()
    assert oncall.post(RUNS, START, key).status_code == 202
    access.grant(cast.person("Oncall A"), cast.acme, ["auditor"])
    body = problem(oncall.post(RUNS, START, key), 403, "not_allowed")
    assert body["facts"]["roles"] == ["on-call", "author"]
    access.grant(cast.person("Oncall A"), cast.acme, [])
    problem(oncall.post(RUNS, START, key), 401, "token_refused")


@pytest.mark.parametrize(("key", "code"), [("", "key_missing"), ("order-7", "key_format"), ("1" * 36, "key_format")])
def test_a_missing_or_odd_key_is_refused(oncall: Caller, key: str, code: str) -> None:
    body = problem(oncall.post(RUNS, START, key), 400, code)
    assert body["errors"][0]["field"] == "Idempotency-Key"
    assert body["what_now"]
    assert not Run.objects.exists()


def test_an_unknown_run_type_is_refused_naming_the_known_ones(oncall: Caller) -> None:
    body = problem(oncall.post(RUNS, START | {"type": "orders.cancle"}), 422, "unknown_run_type")
    assert body["facts"]["known"] == ["notices.send", "orders.cancel"]
    assert "orders.cancel" in body["detail"]


def test_input_that_does_not_fit_is_refused_with_each_fields_path(oncall: Caller) -> None:
    wrong = {**ORDER, "amount": -1, "currency": "euro", "colour": "red"}
    del wrong["email"]
    body = problem(oncall.post(RUNS, START | {"input": wrong}), 422, "params_invalid")
    assert {e["field"] for e in body["errors"]} == {
        "input.amount",
        "input.currency",
        "input.colour",
        "input.email",
    }
    assert all(e["why"] for e in body["errors"])
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"state": "completed"}, "state"),
        ({"lease_owner": str(uuid4())}, "lease_owner"),
        ({"workspace": "other-pay"}, "workspace"),
        ({"type": 7}, "type"),
        ({"input": []}, "input"),
        ({"priority": "1"}, "priority"),
        ({"priority": True}, "priority"),
        ({"priority": 101}, "priority"),
        ({"deadline": "2036-12-01T18:00:00"}, "deadline"),
        ({"deadline": 2111111111}, "deadline"),
        ({"deadline": "2111111111"}, "deadline"),
        ({"deadline": "0001-01-01T00:00:00+23:59"}, "deadline"),
        ({"deadline": "9999-12-31T23:59:59-23:59"}, "deadline"),
        ({"deadline": "2111111111"}, "deadline"),
        ({"deadline": "0001-01-01T00:00:00+23:59"}, "deadline"),
        ({"deadline": "9999-12-31T23:59:59-23:59"}, "deadline"),
        ({"goal": "x" * 501}, "goal"),
        ({"principal": ""}, "principal"),
    ],
)
def test_a_field_that_is_not_the_callers_or_not_right_is_named(oncall: Caller, change: Any, field: str) -> None:
    """Trap 16: state, token and tenant are never writable."""
    body = problem(oncall.post(RUNS, START | change), 422, "body_invalid")
    assert [error["field"] for error in body["errors"]] == [field]
    assert not Run.objects.exists()


def deep(levels: int) -> bytes:
    return b'{"type":"orders.cancel","input":' + b'{"a":' * levels + b"1" + b"}" * levels + b"}"


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b'{"type":"orders.cancel","type":"notices.send","input":{}}', "$.type"),
        (b'{"type":"orders.cancel","input":{"amount":NaN}}', "$.input.amount"),
        (b'{"type":"orders.cancel","input":{"amount":1e999}}', "$.input.amount"),
        (b'{"type":"orders.cancel","input":{"amount":9007199254740993}}', "$.input.amount"),
        (b'{"type":"orders.cancel","input":{"a":"\\ud800"}}', "$.input.a"),
        (b'{"type":"orders.cancel","input":{"a":"e\\u0301"}}', "$.input.a"),
        (b'{"type":', "$"),
        (b"\xff", "$"),
    ],
)
def test_json_with_two_readings_is_refused_with_its_place(oncall: Caller, raw: bytes, path: str) -> None:
    """Trap 28."""
    body = problem(oncall.post(RUNS, raw), 400, "not_canonical")
    assert body["errors"] == [{"field": path, "why": body["facts"]["why"]}]
    assert not Run.objects.exists()


def test_json_deeper_than_32_is_refused(oncall: Caller) -> None:
    problem(oncall.post(RUNS, deep(32)), 400, "not_canonical")
    problem(oncall.post(RUNS, deep(100_000)), 400, "not_canonical")
    problem(oncall.post(RUNS, deep(30)), 422, "params_invalid")


def test_a_body_over_a_megabyte_is_refused(oncall: Caller) -> None:
    """Trap 29."""
    big = json.dumps(START | {"goal": "x" * 2_000_000}).encode()
    body = problem(oncall.post(RUNS, big), 413, "body_too_large")
    assert body["facts"]["most"] == 1_000_000


def test_a_body_that_is_no_object_or_no_json_is_refused(oncall: Caller) -> None:
    problem(oncall.post(RUNS, b"[]"), 422, "body_not_object")
    form = oncall.client.post(RUNS, {"type": "x"}, headers=oncall._headers() | {"Idempotency-Key": str(uuid4())})
    assert problem(form, 415, "unsupported_media_type")["facts"]["media_type"].startswith("multipart/form-data")


def test_accepting_takes_few_queries(oncall: Caller, django_assert_max_num_queries: Any) -> None:
    """The figure of 80/s rests on it: who calls is one query, the write is one statement of the record's own."""
    oncall.post(RUNS, START)
    with django_assert_max_num_queries(8) as asked:  # two savepoints of the test's own transaction among them
        assert oncall.post(RUNS, START).status_code == 202
    writes = ("INSERT", "UPDATE", "DELETE")
    assert not [query["sql"] for query in asked.captured_queries if query["sql"].startswith(writes)]
    assert sum("runs_apitoken" in query["sql"] for query in asked.captured_queries) == 1


def test_the_id_that_was_answered_is_the_runs(oncall: Caller) -> None:
    body = oncall.post(RUNS, START).json()
    whole = oncall.get(body["url"]).json()
    assert UUID(whole["id"]) == UUID(body["id"])
    assert whole["last_event"] == body["event"] == 1


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_another_media_type_is_refused_in_every_language(oncall: Caller, language: str) -> None:
    """The refusal of a refusal must not break on how a sentence quotes."""
    headers = {"Authorization": f"Bearer {oncall.token}", "Accept-Language": language, "Idempotency-Key": str(uuid4())}
    answer = oncall.client.post(RUNS, b"type=x", content_type="text/plain", headers=headers)
    assert problem(answer, 415, "unsupported_media_type")["facts"] == {"media_type": "text/plain"}


def test_what_nobody_foresaw_is_never_said_to_be_undone() -> None:
    """A 500 may have come after the commit: then "nothing was done" would be a lie."""
    detail, what_now = problems.sentence("internal", {})
    assert "does not know whether this was done" in detail and "/api/v1/actions/" in what_now
