"""The API's description is true: real answers are valid against it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import jsonschema
import pytest

from console.api import schema
from tests.console.api.conftest import RUNS, START, Caller


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return schema.describe()


def valid(document: dict[str, Any], name: str, body: Any) -> None:
    """``body`` is valid against a component of the document."""
    assert name in document["components"]["schemas"], sorted(document["components"]["schemas"])
    whole = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    jsonschema.Draft202012Validator(whole, format_checker=jsonschema.FormatChecker()).validate(body)


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, what) for path, item in document["paths"].items() for method, what in item.items()]


def test_it_is_openapi_3_1_with_every_address(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    assert {(method.upper(), path) for path, method, _ in operations(document)} == {
        ("GET", "/api/v1/workspaces/{slug}/runs"),
        ("POST", "/api/v1/workspaces/{slug}/runs"),
        ("GET", "/api/v1/runs/{run}"),
        ("GET", "/api/v1/runs/{run}/events"),
        ("GET", "/api/v1/runs/{run}/effects"),
        ("POST", "/api/v1/runs/{run}/signals"),
        ("GET", "/api/v1/effects/{effect}"),
        ("GET", "/api/v1/actions/{action}"),
        ("POST", "/api/v1/callbacks/{dependency}"),
    }


def test_every_operation_has_a_summary_a_token_and_its_problems(document: dict[str, Any]) -> None:
    for path, method, what in operations(document):
        assert what["summary"], path
        if "callbacks" in path:
            assert "security" not in what or what["security"] == [{}]
            assert {"204", "401", "409", "413"} <= set(what["responses"])
            continue
        assert {"token": []} in what["security"]
        for status in ("400", "401", "403", "404", "429", "503"):
            content = what["responses"][status]["content"]
            assert content["application/problem+json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
        if method == "post":
            assert {"409", "413", "415", "422"} <= set(what["responses"])
            key = next(p for p in what["parameters"] if p["name"] == "Idempotency-Key")
            assert key["required"] and key["in"] == "header"


def test_the_examples_are_valid(document: dict[str, Any]) -> None:
    for name in ("RunToStart", "SignalToSend", "Problem"):
        examples = document["components"]["schemas"][name]["examples"]
        assert examples
        for example in examples:
            valid(document, name, example)


def test_real_answers_are_valid(document: dict[str, Any], oncall: Caller) -> None:
    key = uuid4()
    accepted = oncall.post(RUNS, START, key).json()
    run = f"/api/v1/runs/{accepted['id']}"
    valid(document, "RunAccepted", accepted)
    valid(document, "RunWhole", oncall.get(run).json())
    valid(document, "Runs", oncall.get(RUNS).json())
    valid(document, "Events", oncall.get(f"{run}/events").json())
    valid(document, "Effects", oncall.get(f"{run}/effects").json())
    valid(document, "Actions", oncall.get(f"/api/v1/actions/{key}").json())
    signal = oncall.post(f"{run}/signals", {"name": "order.changed", "payload": {"amount": 1}})
    valid(document, "SignalRecorded", signal.json())
    valid(document, "Problem", oncall.get(f"/api/v1/runs/{uuid4()}").json())


def test_it_is_served(oncall: Caller) -> None:
    answer = oncall.get("/api/v1/schema/")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("application/vnd.oai.openapi+json")
    assert answer.json()["info"]["title"] == "Recourse"
