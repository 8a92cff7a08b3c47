"""What every port is: a room that carries prepared bytes out and says what came of it.

A port knows nothing of effects, budgets or approvals. It sends once, never again by itself, and never raises
for what the network or the other side did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

from pydantic import BaseModel


class AnswerKind(StrEnum):
    """How a send ended."""

    ANSWERED = "answered"  # a whole answer was read
    NOT_SENT = "not_sent"  # no byte of the request left
    LOST = "lost"  # the request may have left; no whole answer


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request fixed before anything is signed or sent; ``body`` is what the other side will receive, byte
    for byte.

    ``credential`` is an alias; the secret behind it is looked up at the send.
    """

    method: str
    url: str
    body: bytes
    credential: str

    def as_json(self) -> dict[str, str]:
        """As an effect's ``request`` column keeps it (the body has a column of its own)."""
        return {"method": self.method, "url": self.url, "credential": self.credential}

    @classmethod
    def from_stored(cls, request: Mapping[str, Any], body: str) -> Prepared:
        """Back from the effect's columns."""
        return cls(request["method"], request["url"], body.encode(), request["credential"])


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Times are the worker's clock and for reading only; order and limits use the database's.

    ``error``: a stable word when not answered (``timeout``, ``connect_refused``, ``reset``, ...).
    ``headers``: names in lower case. ``elapsed_ms``: by a monotonic clock.
    """

    kind: AnswerKind
    sent_at: datetime
    ended_at: datetime
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    error: str | None = None
    elapsed_ms: float = 0.0


@runtime_checkable
class Port(Protocol):
    """How an effect reaches the world."""

    def prepare(self, params: BaseModel, base_url: str, credential: str) -> Prepared:
        """The request for ``params``; pure. Raises CanonicalError for a body that cannot be canonical
        JSON."""

    def send(
        self,
        prepared: Prepared,
        *,
        key: str,
        attempt_id: UUID | str,
        token: int,
        timeout_s: float,
        authorization: str | None = None,
    ) -> Answer:
        """Send once. Never raises for what the network or the other side did."""

    def read(self, url: str, *, timeout_s: float, authorization: str | None = None) -> Answer:
        """Ask without changing anything. Never raises for what the network or the other side did."""

    def declared(self) -> dict[str, Any]:
        """The port's declarative part, for the contract's digest."""
