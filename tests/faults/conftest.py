"""Workers as real processes, and the world they work in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from console.stack.services import Services
from recovery.contract import registry
from tests.databases import FreshDatabase
from tests.faults.deeds import know_only
from tests.recovery.engine.fixtures import w
from tests.recovery.engine.world import World
from tests.recovery.upkeep.backups import Backups
from tests.recovery.upkeep.test_notify import Hears, _Handler

__all__ = ["w"]


@dataclass
class Workers:
    """Forks of one warm process. ``log``: where each writes what it passed."""

    process: subprocess.Popen[str]
    folder: Path
    hears: Hears
    fresh: FreshDatabase
    services: Services
    monkeypatch: pytest.MonkeyPatch
    alive: set[int] = field(default_factory=set)

    def _ask(self, **asked: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert isinstance(answer, dict)
        return answer

    def backups(self, w: World) -> Backups:
        """The record can be backed up and put back; only the tests' own operations are declared, whose sandbox tells
        the time that the record's clock has.
        """
        self.monkeypatch.setattr(registry, "effects", registry.effects)
        know_only("test.")
        outside = self.folder / "outside" / "record.json"
        self.monkeypatch.setattr(settings, "RECOURSE_OUTSIDE", outside)
        return Backups(w, self.fresh, self.services, outside)

    @property
    def log(self) -> Path:
        return self.folder / "worker.log"

    def start(self, what: str = "work", **asked: Any) -> int:
        """A worker at work; with ``point``, ``nth`` and ``action`` something happens to it."""
        given = {"action": "kill", "nth": 1, **asked}
        pid = self._ask(do="fork", what=what, database=self.fresh.name, log=str(self.log), **given)["pid"]
        self.alive.add(pid)
        return int(pid)

    def wait(self, pid: int) -> dict[str, Any]:
        """How it ended: its code or signal, or that it is stopped."""
        came = self._ask(do="wait", pid=pid)
        if "stopped" not in came:
            self.alive.discard(pid)
        assert came.get("code") != 3, self.log.read_text()
        return came

    def go_on(self, pid: int) -> dict[str, Any]:
        """Wake a stopped worker and wait for its end."""
        self._ask(do="signal", pid=pid, signal=int(signal.SIGCONT))
        return self.wait(pid)

    def kill(self, **asked: Any) -> bool:
        """A worker that dies by SIGKILL at its point; False if it ended before it came there."""
        came = self.wait(self.start(**asked))
        return came == {"signal": int(signal.SIGKILL)}

    def end_all(self) -> None:
        for pid in list(self.alive):
            self._ask(do="signal", pid=pid, signal=int(signal.SIGKILL))
            self.wait(pid)


@pytest.fixture(scope="session")
def zygote(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """One process with everything imported, from which workers are forked."""
    del django_db_setup
    errors = tmp_path_factory.mktemp("zygote") / "errors"
    with errors.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "console.settings"},
            cwd=Path(__file__).parents[2],
        )
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline(), errors.read_text()
    yield process
    process.stdin.close()
    process.wait(timeout=10)
    process.stdout.close()


@pytest.fixture(scope="session")
def hears() -> Iterator[Hears]:
    """Somebody who hears webhooks."""
    with Hears(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def forks(
    zygote: subprocess.Popen[str],
    hears: Hears,
    fresh_db: FreshDatabase,
    services: Services,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Workers]:
    """Workers on this test's database."""
    hears.heard = []
    workers = Workers(zygote, tmp_path, hears, fresh_db, services, monkeypatch)
    yield workers
    workers.end_all()
