"""Who may come in: default deny, tokens, sessions, and nothing of another workspace (invariant 14)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import URLPattern, get_resolver

from console.api import limits
from console.api.auth import digest_of
from console.api.base import Endpoint
from runs import clock
from runs.models import ApiToken, Run
from tests.console.api.conftest import RUNS, START, Caller, Cast, problem

OTHERS = "/api/v1/workspaces/other-pay/runs"


def routes() -> list[URLPattern]:
    """Every address below /api/v1/."""
    from console.api import urls

    found: list[URLPattern] = []
    pending = list(urls.urlpatterns)
    while pending:
        one = pending.pop()
        if isinstance(one, URLPattern):
            found.append(one)
        else:
            pending.extend(one.url_patterns)
    assert len(found) >= 9
    return found


@pytest.mark.parametrize("route", routes(), ids=lambda route: route.name)
def test_every_address_is_an_endpoint_of_ours_and_says_what_it_needs(route: URLPattern) -> None:
    """Trap 1: default deny; an address without needs answers nobody."""
    view: Any = route.callback.view_class  # type: ignore[attr-defined]
    assert issubclass(view, Endpoint)
    assert view.needs or route.name == "nowhere"
    assert set(view.needs) == {m.upper() for m in ("get", "post", "put", "patch", "delete") if hasattr(view, m)}


ADDRESSES = (
    RUNS,
    f"/api/v1/runs/{uuid4()}",
    f"/api/v1/runs/{uuid4()}/events",
    f"/api/v1/runs/{uuid4()}/effects",
    f"/api/v1/effects/{uuid4()}",
    f"/api/v1/actions/{uuid4()}",
    "/api/v1/schema/",
)


@pytest.mark.parametrize("path", ADDRESSES)
def test_nothing_is_answered_without_a_token(cast: Cast, path: str) -> None:
    answer = cast.nobody.get(path)
    problem(answer, 401, "unauthenticated")
    assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("token", ["rcs_unknown", "x", "rcs_" + "y" * 1000, "rcs_ü"])
def test_an_unknown_token_is_refused(cast: Cast, token: str) -> None:
    client = Client(raise_request_exception=False)
    problem(client.get(RUNS, headers={"Authorization": f"Bearer {token}"}), 401, "token_refused")
    problem(client.get(RUNS, headers={"Authorization": "Basic eDp5"}), 401, "token_refused")


def test_only_the_digest_of_a_token_is_kept(cast: Cast) -> None:
    """Trap 24."""
    secret = cast.token("Oncall A")
    row = ApiToken.objects.get()
    assert row.digest == digest_of(secret) and len(row.digest) == 64
    assert secret not in str(ApiToken.objects.values().get())


def test_a_token_ends_by_the_records_clock(oncall: Caller) -> None:
    assert oncall.get(RUNS).status_code == 200
    clock.shift(timedelta(days=1))
    problem(oncall.get(RUNS), 401, "token_refused")


def test_a_token_ends_with_its_persons_account(oncall: Caller, cast: Cast) -> None:
    """Trap 25: asked anew at each request."""
    person = cast.person("Oncall A")
    person.is_active = False
    person.save()
    problem(oncall.get(RUNS), 401, "token_refused")


@pytest.mark.parametrize(("scope", "may_read", "may_start"), [("runs:read", 1, 0), ("runs:write", 0, 1)])
def test_a_token_does_what_its_scope_says(cast: Cast, scope: str, may_read: bool, may_start: bool) -> None:
    caller = cast.caller("Oncall A", scopes=[scope])
    read, start = caller.get(RUNS), caller.post(RUNS, START)
    assert read.status_code == 200 if may_read else problem(read, 403, "scope_missing")
    assert start.status_code == 202 if may_start else problem(start, 403, "scope_missing")
    signal = caller.post(f"/api/v1/runs/{uuid4()}/signals", {"name": "x"})
    assert problem(signal, 403, "scope_missing")["facts"]["scope"] == "signals:write"


def test_a_scope_gives_no_right_that_its_person_lacks(cast: Cast) -> None:
    problem(cast.caller("Auditor D").post(RUNS, START), 403, "not_allowed")
    assert not Run.objects.exists()


def test_the_neighbours_things_are_missing_in_the_same_words(oncall: Caller, cast: Cast) -> None:
    """Invariant 14: foreign and missing are the same answer."""
    there = cast.caller("Outsider E", workspace=cast.other)
    run = there.post(OTHERS, START).json()["id"]
    assert there.get(f"/api/v1/runs/{run}").status_code == 200

    def without_path(body: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in body.items() if name not in ("instance", "request_id")}

    for path in (
        "/api/v1/runs/{}",
        "/api/v1/runs/{}/events",
        "/api/v1/runs/{}/effects",
        "/api/v1/effects/{}",
    ):
        foreign = problem(oncall.get(path.format(run)), 404, "not_found")
        missing = problem(oncall.get(path.format(uuid4())), 404, "not_found")
        assert without_path(foreign) == without_path(missing)
    problem(oncall.get(OTHERS), 404, "not_found")
    problem(oncall.get("/api/v1/workspaces/none/runs"), 404, "not_found")
    problem(oncall.post(OTHERS, START), 404, "not_found")
    problem(oncall.post(f"/api/v1/runs/{run}/signals", {"name": "order.changed"}), 404, "not_found")
    assert oncall.get(RUNS).json()["items"] == []
    assert oncall.get(RUNS, q=run).json()["items"] == []


def test_a_token_reaches_its_workspace_only_even_if_its_person_sees_two(cast: Cast) -> None:
    from runs import access

    person = cast.person("Oncall A")
    access.grant(person, cast.other, ["on-call"])
    run = cast.caller("Outsider E", workspace=cast.other).post(OTHERS, START).json()["id"]
    problem(cast.caller("Oncall A").get(f"/api/v1/runs/{run}"), 404, "not_found")
    assert cast.caller("Oncall A", workspace=cast.other).get(f"/api/v1/runs/{run}").status_code == 200


def test_a_session_reads_and_changes_only_with_its_csrf_token(cast: Cast) -> None:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(cast.person("Oncall A"), backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(RUNS).status_code == 200
    problem(client.get(OTHERS), 404, "not_found")
    answer = client.post(RUNS, START, content_type="application/json", headers={"Idempotency-Key": str(uuid4())})
    problem(answer, 403, "csrf")
    assert not Run.objects.exists()


def test_methods_and_addresses_that_do_not_exist_are_problems_too(oncall: Caller) -> None:
    answer = oncall.client.delete(RUNS, headers=oncall._headers())
    assert problem(answer, 405, "method_not_allowed")["facts"]["allowed"] == ["GET", "POST"]
    assert answer["Allow"] == "GET, POST"
    problem(oncall.get("/api/v1/nothing/here"), 404, "not_found")
    problem(oncall.get(f"{RUNS}/"), 404, "not_found")


def test_using_a_token_is_noted_at_most_once_a_minute(oncall: Caller) -> None:
    oncall.get(RUNS)
    first = ApiToken.objects.get().last_used_at
    oncall.get(RUNS)
    assert first is not None and ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=first - timedelta(minutes=2))
    oncall.get(RUNS)
    again = ApiToken.objects.get().last_used_at
    assert again is not None and again > first - timedelta(minutes=1)


def test_a_caller_that_asks_too_much_is_told_when_to_come_back(oncall: Caller, monkeypatch: Any) -> None:
    """Trap 29; another caller is not affected."""
    monkeypatch.setattr(limits, "CALLERS", limits.Buckets(rate=0.5, burst=2))
    assert [oncall.get(RUNS).status_code for _ in range(3)] == [200, 200, 429]
    answer = oncall.get(RUNS)
    problem(answer, 429, "throttled")
    assert 1 <= int(answer["Retry-After"]) <= 2


def test_a_bucket_fills_again_and_forgets_the_oldest() -> None:
    buckets = limits.Buckets(rate=10, burst=1, most=2)
    assert buckets.take("a", 0.0) == 0.0
    assert buckets.take("a", 0.0) == pytest.approx(0.1)
    assert buckets.take("a", 0.11) == 0.0
    buckets.take("b", 0.2)
    buckets.take("c", 0.2)
    assert buckets.take("a", 0.2) == 0.0, "forgotten, so it begins anew"


def test_the_api_hangs_under_its_version() -> None:
    assert get_resolver().resolve(RUNS).view_name == "api:workspace-runs"
