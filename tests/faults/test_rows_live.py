"""Faults of processes of the live stack: the web that dies around a commit, the broker that forgets, a polite end."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest

from console.stack import control
from recovery import failpoints
from recovery.sandbox.client import SandboxClient
from tests.chaos.outage import token
from tests.faults import scenes
from tests.faults.test_drills import drill
from tests.stack import Stack

PATIENCE = 90.0
"""Seconds for a stack on a busy machine to be there again."""


class Client:
    """A client that asks under one key until it is answered."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.mark = uuid4().hex[:12]
        self.headers = {"Authorization": f"Bearer {token(stack)}", "Idempotency-Key": str(uuid4())}
        self.body = {"type": "orders.cancel", "input": {**scenes.order("payments"), "charge": f"ch_{self.mark}"}}
        self.body["input"]["order"] = f"O-{self.mark}"  # type: ignore[index]

    def ask(self) -> httpx.Response:
        url = f"{self.stack.address}/api/v1/workspaces/acme-pay/runs"
        return httpx.post(url, json=self.body, headers=self.headers, timeout=10, trust_env=False)

    def until_answered(self) -> httpx.Response:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                answer = self.ask()
            except httpx.HTTPError:
                assert time.monotonic() < until, "the web did not come back"
                time.sleep(0.2)
                continue
            if answer.status_code < 500 or time.monotonic() > until:
                return answer

    def states(self) -> list[str]:
        """Of the runs about this order."""
        with psycopg.connect(self.stack.settings["DATABASE_URL"]) as connection:
            found = connection.execute("SELECT state FROM runs_run WHERE title LIKE %s", [f"%{self.mark}%"])
            return [state for (state,) in found.fetchall()]

    def completes(self) -> bool:
        until = time.monotonic() + PATIENCE
        while self.states() != ["completed"] and time.monotonic() < until:
            time.sleep(0.2)
        sandbox = SandboxClient(self.stack.settings["RECOURSE_SANDBOX_URL"])
        assert sandbox.applied(f"refund:ch_{self.mark}") <= 1
        return self.states() == ["completed"]


@pytest.fixture
def laid(stack: Stack) -> Iterator[Path]:
    """Where live processes look for what they are to do at a point."""
    folder = Path(stack.settings["RECOURSE_DRILLS"])
    folder.mkdir(exist_ok=True, mode=0o700)
    yield folder
    for file in folder.iterdir():
        file.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("row", "point", "known"), [(1, "accept.before_commit", []), (2, "accept.after_commit", ["accepted"])]
)
def test_row_01_and_02_the_web_dies_around_the_commit(
    stack: Stack, laid: Path, row: int, point: str, known: list[str]
) -> None:
    """No 2xx came either way. The same key again gives exactly one run, and it completes."""
    client = Client(stack)
    failpoints.arm_drill(laid, point, "kill")
    with pytest.raises(httpx.HTTPError):
        client.ask()
    assert not failpoints.disarm_drill(laid, point)
    assert (client.states() == []) is (known == [])
    assert client.until_answered().status_code == 202
    assert client.completes()


def test_row_06_the_broker_forgets_everything(stack: Stack) -> None:
    drill(stack, "broker_flushed")


def test_row_68_asked_to_end_in_the_middle_of_a_step(stack: Stack, laid: Path) -> None:
    """SIGTERM, as a deployment sends it: what was begun is ended or taken over, and happens once."""
    client = Client(stack)
    failpoints.arm_drill(laid, "advance.after_step", "sleep(3)")
    assert client.until_answered().status_code == 202
    until = time.monotonic() + PATIENCE
    while (laid / "advance.after_step").exists() and time.monotonic() < until:
        time.sleep(0.05)
    control.restart(stack.data, "advance", signal.SIGTERM)
    assert client.completes()


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_row_44_postgresql_is_killed_in_the_middle(stack: Stack) -> None:
    drill(stack, "postgres_restarted")
