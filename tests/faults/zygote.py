"""A process that forks workers on demand and sees how they end: ``python -m tests.faults.zygote``.

It speaks one JSON object a line. Everything is imported once; a worker is a fork of it, a real process with
its own connections, killed or stopped for real. The zygote waits for its children, so that a dead one is gone
and not a zombie.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import Any

import django


def main() -> None:
    django.setup()
    from tests.faults import worker

    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(_answer(asked, worker)), flush=True)


def _answer(asked: dict[str, Any], worker: Any) -> dict[str, Any]:
    if asked["do"] == "fork":
        pid = os.fork()
        if pid:
            return {"pid": pid}
        sys.stdin.close()
        worker.run(asked)
        os._exit(0)
    if asked["do"] == "wait":
        _, status = os.waitpid(asked["pid"], os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return {"stopped": True}
        if os.WIFSIGNALED(status):
            return {"signal": os.WTERMSIG(status)}
        return {"code": os.WEXITSTATUS(status)}
    assert asked["do"] == "signal"
    with contextlib.suppress(ProcessLookupError):
        os.kill(asked["pid"], signal.Signals(asked["signal"]))
    return {}


if __name__ == "__main__":
    main()
