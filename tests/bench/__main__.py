"""``python -m tests.bench``: figures beside a peer in one run; never an assertion.

Writing transactions of a run with n effects in a row (transaction ids that PostgreSQL used), and effects per second
beside DBOS steps per second: the same PostgreSQL (fsync on), the same HTTP call, client and server, two processes
each, interleaved pairs. Admission, chained history and checkpoints are on.

``python -m tests.bench checkpoint``: a large state after a small change, in every tier, and a rotation of keys.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from console.stack import environment
from console.stack.ports import free_port
from console.stack.services import Services
from recovery.sandbox.client import SandboxClient
from tests.bench import checkpoint

N = 10
PROCESSES = 2


def main() -> None:
    asked = argparse.ArgumentParser(prog="make bench", description=__doc__)
    asked.add_argument(
        "what",
        nargs="?",
        choices=["effects", "checkpoint"],
        default="effects",
        help="effects beside a peer (unless given), or the checkpoint of a large state",
    )
    asked.add_argument("--pairs", type=int, default=5, help="interleaved pairs")
    asked.add_argument("--runs", type=int, default=40, help="runs of ten effects, each process and measurement")
    options = asked.parse_args()
    if options.what == "checkpoint":
        checkpoint.main()
        return
    with tempfile.TemporaryDirectory(prefix="rc-") as folder:
        services = Services(Path(folder), durable=True)
        port = free_port()
        os.environ.update(environment.build(services, address="http://testserver", sandbox=f"http://127.0.0.1:{port}"))
        with services:
            sandbox = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "recovery.sandbox",
                    "serve",
                    "--port",
                    str(port),
                    "--db",
                    f"{folder}/s.sqlite3",
                ],
                stdout=subprocess.DEVNULL,
            )
            try:
                _measure(services, options.pairs, options.runs)
            finally:
                sandbox.terminate()
                sandbox.wait()


def _measure(services: Services, pairs: int, runs: int) -> None:
    import django

    django.setup()
    from django.core.management import call_command

    from recovery.contract import registry
    from runs.models import Person, Workspace
    from tests.bench import machine

    call_command("migrate", interactive=False, verbosity=0)
    call_command("demo_people")
    registry.register_module(machine, "bench")
    workspace = Workspace.objects.get(slug="acme-pay")
    person = Person.objects.get(email="oncall-a@acme.example")
    with psycopg.connect(services.database_url, autocommit=True) as db:
        for n in (N, 50):
            used = _transactions(workspace, person, db, n)
            print(
                f"writing transactions of a run with {n} effects in a row: {used} besides the accept"
                f" ({used / n:.2f} per effect)"
            )
    _beside(services, workspace, person, pairs, runs)


def _accept(workspace: Any, person: Any, n: int) -> Any:
    from recovery.actions import runs as actions
    from runs.record import Act

    data = {"prefix": uuid4().hex[:12], "n": n}
    return actions.accept(workspace, "bench.in_a_row", data, actor=person, act=Act(uuid4(), "bench")).run


def _transactions(workspace: Any, person: Any, db: psycopg.Connection, n: int) -> int:
    from recovery.engine import workers
    from recovery.engine.advance import advance

    workers.me("advance")
    counts = []
    for _ in range(3):  # a heartbeat may fall into one of them: the smallest counts
        run = _accept(workspace, person, n)
        before = _xid(db)
        came = advance(workspace.pk, run)
        while came == "handed back":  # after 50 transitions a worker gives others a turn
            came = advance(workspace.pk, run)
        counts.append(_xid(db) - before)
        if came != "completed":
            raise SystemExit(f"the run came to {came}")
    return min(counts)


def _xid(db: psycopg.Connection) -> int:
    row = db.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
    assert row is not None
    return int(row[0])


def _beside(services: Services, workspace: Any, person: Any, pairs: int, runs: int) -> None:
    url = f"{os.environ['RECOURSE_SANDBOX_URL']}/mail/v1/messages"
    theirs_env = {
        **os.environ,
        "BENCH_URL": url,
        "BENCH_RUNS": str(runs),
        "BENCH_N": str(N),
        "BENCH_DBOS": services.database_url,
    }
    ratios, ours_all, theirs_all = [], [], []
    for pair in range(1, pairs + 1):
        theirs = _rate("tests.bench.theirs", [""] * PROCESSES, theirs_env, runs)
        shares = [
            "".join(f"{workspace.pk} {_accept(workspace, person, N)}\n" for _ in range(runs + 2)) + "go\n"
            for _ in range(PROCESSES)
        ]
        ours = _rate("tests.bench.ours", shares, dict(os.environ), runs)
        ours_all.append(ours)
        theirs_all.append(theirs)
        ratios.append(ours / theirs)
        print(
            f"pair {pair}: Recourse {ours:.0f} effects/s, DBOS {theirs:.0f} steps/s, ratio {ours / theirs:.2f}",
            flush=True,
        )
    print(
        f"medians of {pairs} pairs: Recourse {statistics.median(ours_all):.0f} effects/s,"
        f" DBOS {statistics.median(theirs_all):.0f} steps/s, ratio {statistics.median(ratios):.2f}"
        f" (from {min(ratios):.2f} to {max(ratios):.2f}); {PROCESSES} processes each, {N} in a row"
    )
    sent = SandboxClient(os.environ["RECOURSE_SANDBOX_URL"]).ledger()
    twice = sum(1 for line in sent if line["applied"] != 1)
    print(f"the sandbox's ledger: {len(sent)} intents, {twice} not applied exactly once")


def _rate(module: str, inputs: list[str], env: dict[str, str], runs: int) -> float:
    """Effects per second of all processes together: from the common start to the end of the slowest."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        for _ in inputs
    ]
    for process, text in zip(processes, inputs, strict=True):
        assert process.stdin is not None
        process.stdin.write(text)
        process.stdin.flush()
    for process in processes:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise SystemExit(f"{module} did not become ready")
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("begin\n")
        process.stdin.flush()
    took = []
    for process in processes:
        assert process.stdout is not None
        took.append(float(process.stdout.readline()))
    for process in processes:
        process.communicate("end\n")
    return len(inputs) * runs * N / max(took)


if __name__ == "__main__":
    main()
