"""PostgreSQL stopped for a while under load and started again: nothing accepted is lost, everything goes on."""

from __future__ import annotations

import random
import threading
import time
from uuid import UUID, uuid4

import httpx

from console.stack import control
from recovery.drills import judge as oracle
from recovery.sandbox.client import SandboxClient
from tests.chaos import load
from tests.stack import Stack


class Client(threading.Thread):
    """Posts runs until told to stop; keeps what was answered 202 and counts what was not."""

    def __init__(self, address: str, token: str, seed: int, *, pause: float = 0.0) -> None:
        super().__init__(daemon=True)
        self.pause = pause
        self.address, self.token, self.rng = address, token, random.Random(seed)
        self.accepted: list[UUID] = []
        self.refused = 0
        self.stopping = threading.Event()

    def run(self) -> None:
        with httpx.Client(base_url=self.address, timeout=10, trust_env=False) as http:
            while not self.stopping.is_set():
                type, data = load.some(self.rng)
                key = str(uuid4())
                for _ in range(100):
                    # The same key until an answer comes: a lost answer must not make two runs.
                    if self._post(http, key, type, data) or self.stopping.is_set():
                        break
                    time.sleep(0.3)
                self.stopping.wait(self.pause)

    def _post(self, http: httpx.Client, key: str, type: str, data: object) -> bool:
        headers = {"Authorization": f"Bearer {self.token}", "Idempotency-Key": key}
        try:
            answer = http.post("/api/v1/workspaces/acme-pay/runs", json={"type": type, "input": data}, headers=headers)
        except httpx.HTTPError:
            self.refused += 1
            return False
        if answer.status_code != 202:
            self.refused += 1
            return False
        self.accepted.append(UUID(answer.json()["id"]))
        return True


def run(stack: Stack, *, seconds: float, seed: int) -> oracle.Verdict:
    """Stop PostgreSQL for ``seconds`` in the middle of ``3 x seconds`` of load; print and judge."""
    sandbox = SandboxClient(stack.settings["RECOURSE_SANDBOX_URL"])
    secret = token(stack)
    clients = [Client(stack.address, secret, seed + n) for n in range(2)]
    for client in clients:
        client.start()
    time.sleep(seconds)
    before = sum(len(c.accepted) for c in clients)
    with control.held(stack.data, "postgres"):
        print(f"PostgreSQL is stopped; {before} runs were accepted by then", flush=True)
        time.sleep(seconds)
        during = sum(len(c.accepted) for c in clients) - before
    began = time.monotonic()
    healthy = _until(lambda: _healthy(stack), began)
    accepting = _until(lambda: sum(len(c.accepted) for c in clients) > before + during, began)
    time.sleep(seconds)
    for client in clients:
        client.stopping.set()
    for client in clients:
        client.join(timeout=20)
    ids = [id for client in clients for id in client.accepted]
    quiet = oracle.wait_until_settled(ids, 180)
    verdict = oracle.judge(ids, sandbox)
    refused = sum(c.refused for c in clients)
    print(f"PostgreSQL was away for {seconds:.0f} s: {during} runs accepted meanwhile, {refused} requests not accepted")
    print(f"healthy again after {healthy:.1f} s, accepting again after {accepting:.1f} s")
    print(f"everything had ended or asked a person {quiet:.0f} s after the load ended")
    return verdict


def token(stack: Stack) -> str:
    """A token of Oncall A's that may start runs."""
    made = stack.manage(
        *("token", "--person", "oncall-a@acme.example", "--workspace", "acme-pay"),
        *("--scopes", "runs:write,runs:read", "--days", "1"),
    )
    return next(word for word in made.stdout.split() if word.startswith("rcs_"))


def _healthy(stack: Stack) -> bool:
    try:
        return httpx.get(f"{stack.address}/healthz", timeout=5, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _until(true: object, began: float) -> float:
    while not true():  # type: ignore[operator]
        if time.monotonic() - began > 120:
            return float("inf")
        time.sleep(0.2)
    return time.monotonic() - began
