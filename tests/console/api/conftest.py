"""People, tokens and a client of the API; the requests go through the whole middleware."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from console.api import limits
from console.api.auth import SCOPES, new_secret
from console.management.commands import demo_people
from runs import clock
from runs.models import ApiToken, Person, Workspace

ORDER: dict[str, Any] = {
    "order": "A-10427",
    "charge": "ch_3QK9",
    "amount": 8400,
    "currency": "EUR",
    "email": "customer@example.org",
    "provider": "cards-eu",
}
START: dict[str, Any] = {"type": "orders.cancel", "input": ORDER}
RUNS = "/api/v1/workspaces/acme-pay/runs"


@dataclass
class Caller:
    """A program with a token (empty: none)."""

    token: str
    client: Client

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(path, query, headers=self._headers())

    def post(self, path: str, body: Any, key: UUID | str | None = None, **headers: str) -> Any:
        """``body``: a value, or the raw bytes. ``key``: empty text leaves the header out."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = self._headers() | headers
        if key != "":
            sent["Idempotency-Key"] = str(key or uuid4())
        return self.client.post(path, raw, content_type="application/json", headers=sent)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


@dataclass
class Cast:
    """The people of the demonstration, and callers for them."""

    acme: Workspace
    other: Workspace

    def person(self, name: str) -> Person:
        return Person.objects.get(name=name)

    def token(self, name: str, *, workspace: Workspace | None = None, scopes: Any = SCOPES, days: float = 1) -> str:
        secret, digest = new_secret()
        ApiToken.objects.create(
            workspace=workspace or self.acme,
            person=self.person(name),
            label="test",
            digest=digest,
            scopes=sorted(scopes),
            expires_at=clock.now() + timedelta(days=days),
        )
        return secret

    def caller(self, name: str, **of: Any) -> Caller:
        return Caller(self.token(name, **of), Client(raise_request_exception=False))

    @property
    def nobody(self) -> Caller:
        return Caller("", Client(raise_request_exception=False))


@pytest.fixture
def cast(db: None, settings: Any) -> Cast:
    """acme-pay and other-pay with everybody in them; their passwords are hashed fast."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    demo_people.make("http://127.0.0.1:1", lambda email: f"password of {email}")
    return Cast(Workspace.objects.get(slug="acme-pay"), Workspace.objects.get(slug="other-pay"))


@pytest.fixture
def oncall(cast: Cast) -> Caller:
    """Oncall A's program, with every scope."""
    return cast.caller("Oncall A")


@pytest.fixture(autouse=True)
def untroubled() -> Iterator[None]:
    """Each test begins with full buckets."""
    limits.CALLERS.forget()
    yield


def problem(response: Any, status: int, code: str) -> dict[str, Any]:
    """The problem of ``response``, checked to be one (RFC 9457)."""
    assert response.status_code == status, response.content
    assert response["Content-Type"].startswith("application/problem+json")
    body: dict[str, Any] = response.json()
    assert body["status"] == status and body["code"] == code, body
    assert body["type"] == f"urn:recourse:problem:{code}"
    assert body["detail"] and "{" not in body["detail"]
    return body
