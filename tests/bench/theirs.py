"""One process that runs DBOS workflows of n steps, each the same HTTP call by the same client, when told to go."""

from __future__ import annotations

import json
import os
import sys
import time
import uuid

from dbos import DBOS, DBOSConfig

from recovery.ports.base import AnswerKind, Prepared
from recovery.ports.http import HttpPort

PORT = HttpPort(method="POST", path="/v1/messages", body=lambda p: p)


@DBOS.step()
def send(url: str, key: str, body: str) -> dict[str, str]:
    answer = PORT.send(
        Prepared("POST", url, body.encode(), "sandbox-mail"), key=key, attempt_id=key, token=1, timeout_s=10
    )
    if answer.kind is not AnswerKind.ANSWERED or answer.status != 201:
        raise RuntimeError(f"{answer.kind} {answer.status}")
    return {"body": answer.body.decode()}


@DBOS.workflow()
def in_a_row(url: str, prefix: str, n: int) -> int:
    for i in range(n):
        body = {"data": {"order": f"{prefix}-{i}"}, "template": "done", "to": "bench@acme.example"}
        send(url, f"{prefix}-{i}", json.dumps(body, separators=(",", ":")))
    return n


def main() -> None:
    url, runs, n = os.environ["BENCH_URL"], int(os.environ["BENCH_RUNS"]), int(os.environ["BENCH_N"])
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": os.environ["BENCH_DBOS"],
        "console_log_level": "ERROR",
        "executor_id": str(os.getpid()),
    }
    DBOS(config=config)
    DBOS.launch()
    for _ in range(2):
        in_a_row(url, uuid.uuid4().hex, n)
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    for _ in range(runs):
        in_a_row(url, uuid.uuid4().hex, n)
    print(f"{time.monotonic() - began:.6f}", flush=True)
    sys.stdin.readline()
    DBOS.destroy()


if __name__ == "__main__":
    main()
