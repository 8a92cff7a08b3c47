"""What the browser tests do outside the browser: start runs over the API, turn the sandbox's dials, move time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, Final
from uuid import uuid4

import httpx

from recovery.sandbox.client import SandboxClient
from runs.states import RUN_ENDED, RunState
from tests.stack import Stack

PATIENCE: Final = 30.0
"""Seconds that a slow machine may need for what takes a moment."""

OPEN: Final = tuple(str(state) for state in RunState if state not in RUN_ENDED)

Json = dict[str, Any]


def until[T](ask: Callable[[], T], what: str, *, seconds: float = PATIENCE) -> T:
    """Ask until the answer is true; the answer. Fails after ``seconds`` with the last answer."""
    end = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}; the last answer was {answer!r}"
        time.sleep(0.1)
    return answer


@dataclass
class World:
    """The stack, as a program and as the other side of the border see it. ``kept``: runs that outlast a test."""

    stack: Stack
    kept: set[str] = field(default_factory=set)

    @cached_property
    def sandbox(self) -> SandboxClient:
        return SandboxClient(self.stack.settings["RECOURSE_SANDBOX_URL"])

    @cached_property
    def api(self) -> httpx.Client:
        """A client with a token of Oncall A."""
        scopes = ("runs:read", "runs:write", "signals:write")
        made = self.stack.manage(
            "token", "--person", "oncall-a@acme.example", "--workspace", "acme-pay", "--scopes", *scopes
        )
        headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
        return httpx.Client(base_url=f"{self.stack.address}/api/v1/", headers=headers, trust_env=False, timeout=20)

    def close(self) -> None:
        self.api.close()

    # Runs

    def start(self, type: str, data: Json, **more: Any) -> str:
        """Start a run of Oncall A; its id."""
        body = {"type": type, "input": data, **more}
        answer = self.api.post("workspaces/acme-pay/runs", json=body, headers={"Idempotency-Key": str(uuid4())})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def cancel_order(self, charge: str, amount: int, currency: str, provider: str) -> str:
        """Start ``orders.cancel`` on ``charge``; ``amount`` in minor units."""
        data = {"order": f"A-{charge[3:]}", "charge": charge, "amount": amount, "currency": currency}
        data |= {"email": "customer@example.com", "provider": provider}
        return self.start(
            "orders.cancel", data, goal="order cancelled, refunded", principal="svc-orders for a customer"
        )

    def signal(self, run: str, name: str, payload: Json) -> None:
        """Tell the run that something happened."""
        body = {"name": name, "payload": payload}
        answer = self.api.post(f"runs/{run}/signals", json=body, headers={"Idempotency-Key": str(uuid4())})
        assert answer.status_code == 202, answer.text

    def run(self, run: str) -> Json:
        return self._get(f"runs/{run}")

    def effect(self, run: str, ordinal: int = 0) -> Json:
        """One effect of the run with everything said about it; empty while there is none."""
        items = self._get(f"runs/{run}/effects")["items"]
        return self._get(f"effects/{items[ordinal]['id']}") if len(items) > ordinal else {}

    def until_run(self, run: str, state: str, waiting_on: str = "", *, seconds: float = PATIENCE) -> Json:
        """The run once it is in ``state``, and waits on ``waiting_on`` where one is given."""

        def there() -> Json | None:
            row = self.run(run)
            return row if row["state"] == state and waiting_on in ("", row["waiting_on"]) else None

        return until(there, f"run {run} is {state} {waiting_on}", seconds=seconds) or {}

    def until_effect(self, run: str, state: str, **more: Any) -> Json:
        """The run's first effect once it is in ``state`` and its fields are as in ``more``."""

        def there() -> Json | None:
            row = self.effect(run)
            is_ = row and row["state"] == state and all(row[name] == value for name, value in more.items())
            return row if is_ else None

        return until(there, f"the effect of {run} is {state} {more or ''}") or {}

    def until_asked(self, run: str) -> Json:
        """The run's first effect once Recourse has asked a person about it."""

        def asked() -> Json | None:
            row = self.effect(run)
            return row if row and (row["decision"] or {}).get("verb") == "ask" else None

        return until(asked, f"a person is asked about {run}") or {}

    def approval(self, run: str, revision: int = 1) -> Json:
        """The request for signatures of ``revision``, once it is there."""

        def there() -> Json | None:
            asked = self.effect(run).get("approvals", ())
            return next((one for one in asked if one["revision"] == revision), None)

        return until(there, f"revision {revision} of the request of {run}") or {}

    def leave_nothing(self) -> None:
        """Settle and cancel what goes on, ``kept`` apart: the inbox is empty again, and the other side honest."""
        self.sandbox.reset()
        rows = self._get("workspaces/acme-pay/runs?state=" + ",".join(OPEN))["items"]
        if ids := [row["id"] for row in rows if row["id"] not in self.kept]:
            self._inside("tidy", *ids)

    def review_of(self, effect: str) -> str:
        """The id of the open item of the inbox about ``effect``, as a page to a phone would carry it."""
        return self._inside("review", effect)

    def propose(self, effect: str) -> str:
        """Have Oncall A say that ``effect`` happened, on a word alone; the id of the decision."""
        return self._inside("propose", effect)

    def _inside(self, name: str, *given: object) -> str:
        """What the function ``name`` of inside.py prints, run in the environment of the stack."""
        code = f"from tests.browser import inside; inside.{name}(*{given!r})"
        return self.stack.manage("shell", "--no-imports", "-c", code).stdout.strip()

    def _get(self, path: str) -> Json:
        answer = self.api.get(path)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    # The other side

    def ledger(self, provider: str, charge: str) -> list[Json]:
        """The ledger's lines of ``provider`` whose body speaks of ``charge``."""
        lines = [one for one in self.sandbox.ledger() if one["provider"] == provider]
        return [one for one in lines if any(charge in body for body in one["bodies"])]

    def applied(self, provider: str, charge: str) -> list[Json]:
        """What took effect on ``charge``: the bodies, one a time, parsed."""
        return [json.loads(one["bodies"][0]) for one in self.ledger(provider, charge) for _ in range(one["applied"])]

    # Time

    def shift(self, by: timedelta) -> None:
        """Move the record's clock."""
        self._inside("shift", by.total_seconds())

    @contextmanager
    def ago(self, by: timedelta) -> Iterator[None]:
        """The block happens ``by`` ago: afterwards the record's clock is right again and that time has passed."""
        self.shift(-by)
        try:
            yield
        finally:
            self.shift(by)
