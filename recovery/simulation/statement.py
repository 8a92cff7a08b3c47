"""The writer's one statement, seen from outside: who may write is kept here once more, and connections break here.

Two ways a connection breaks at a commit: before the statement reached the record, and after it was carried out. Whoever
called cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import orjson
from django.db import OperationalError, connection

Run = Callable[[str, bytes | None], Any]


class Broken(OperationalError):
    """The simulated connection broke."""


class Statement:
    """In the place of the record's own call of its function.

    ``breaks(payload)``: ``before``, ``after`` or nothing. ``early(payload)`` is called first, ``done(payload, answer)``
    once it is through.
    """

    def __init__(
        self,
        real: Run,
        *,
        breaks: Callable[[dict[str, Any]], str],
        early: Callable[[dict[str, Any]], None],
        done: Callable[[dict[str, Any], dict[str, Any]], None],
    ) -> None:
        self._real = real
        self._breaks = breaks
        self._early = early
        self._done = done

    def __call__(self, text: str, blob: bytes | None) -> Any:
        """Carry the statement out, or break before or after it."""
        payload: dict[str, Any] = orjson.loads(text)
        self._early(payload)
        fate = self._breaks(payload)
        if fate == "before":
            raise Broken("the connection was lost before the statement")
        answer = self._real(text, blob)
        self._done(payload, orjson.loads(answer) if isinstance(answer, str) else answer)
        if fate == "after" and not connection.in_atomic_block:
            raise Broken("the connection was lost after the statement")
        return answer


class Holders:
    """Who holds each run by the leases that were given: an independent memory of the fencing tokens."""

    def __init__(self) -> None:
        self.tokens: dict[UUID, int] = {}
        self.held: dict[UUID, bool] = {}

    def wrong(self, payload: dict[str, Any], answer: dict[str, Any]) -> str:
        """What is wrong about a commit that went through, or an empty text (invariant 6)."""
        if payload["run"] is None or "refused" in answer or answer.get("replayed"):
            return ""
        run = UUID(payload["run"])
        if "lease" in payload:
            before, token = self.tokens.get(run, 0), int(answer["row"]["token"])
            self.tokens[run], self.held[run] = token, True
            return f"token {token} was given after {before}" if token <= before else ""
        said = ""
        if "token" in payload:
            given, token = self.tokens.get(run, 0), int(payload["token"])
            if token != given or not self.held.get(run, False):
                said = f"token {token} wrote while {given if self.held.get(run) else 'nobody'} held the run"
        if not answer["row"].get("lease_owner"):
            self.held[run] = False
        return said


def changes_in(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """All changes of a commit."""
    return [change for entry in payload["entries"] for change in entry["changes"]]


def effects_in(payload: dict[str, Any]) -> set[UUID]:
    """The effects that a commit changes."""
    found = set()
    for change in changes_in(payload):
        row = change.get("row") or {}
        if change["t"] == "effect":
            found.add(UUID(change.get("id") or row["id"]))
        elif row.get("effect_id"):
            found.add(UUID(row["effect_id"]))
    return found


def attempts_in(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of attempts that a commit makes."""
    made = [one for one in changes_in(payload) if one["t"] == "attempt" and one.get("op") == "new"]
    return [change["row"] for change in made]
