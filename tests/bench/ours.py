"""One process that advances the runs whose ids stand on its standard input, when told to go."""

from __future__ import annotations

import sys
import time
from uuid import UUID

import django


def main() -> None:
    django.setup()
    from recovery.contract import registry
    from recovery.engine import workers
    from recovery.engine.advance import advance
    from tests.bench import machine

    registry.register_module(machine, "bench")
    workers.me("advance")
    runs = [line.split() for line in iter(sys.stdin.readline, "go\n")]
    for workspace, run in runs[:2]:
        advance(UUID(workspace), UUID(run))
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    for workspace, run in runs[2:]:
        came = advance(UUID(workspace), UUID(run))
        if came != "completed":
            raise SystemExit(f"run {run}: {came}")
    print(f"{time.monotonic() - began:.6f}", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
