"""Old checkpoints are moved beside the sweep, on a thread and a period of their own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from recovery.upkeep.archiving import Mover
from runs.checkpoints import archive
from runs.models import Checkpoint
from runs.states import RunState
from tests.recovery.engine.world import World
from tests.recovery.stage import later
from tests.runs.make import forget


def test_a_run_that_waits_for_long_goes_on_from_the_archive(w: World, settings: Any, tmp_path: Path) -> None:
    settings.RECOURSE_ARCHIVE_URL = (tmp_path / "archive").as_uri()
    run = w.accept("test.waiter", mode="event")
    w.drive()
    later(days=8)
    mover = Mover()
    mover.look()
    mover.join()
    assert mover.moved == 2
    assert not Checkpoint.objects.filter(run_id=run, address="").exists()
    forget(run)
    w.signal(run, "told", text="at last")
    w.drive()
    assert w.run(run).state == RunState.COMPLETED and w.heard(run) == ["at last"]


def test_a_slow_archive_holds_nobody_up(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """``look`` returns at once, and begins no second move while one is under way."""
    w.accept("test.waiter", mode="event")
    w.drive()
    later(days=8)
    begun, go = threading.Event(), threading.Event()

    def slow(address: str, blob: bytes) -> None:
        begun.set()
        go.wait(30)
        raise archive.Away("slow, and then not there")

    monkeypatch.setattr(archive, "put", slow)
    mover = Mover()
    mover.look()
    assert begun.wait(30)
    mover._next = 0.0
    thread = mover._thread
    mover.look()
    assert mover._thread is thread
    go.set()
    mover.join()
    assert mover.moved == 0 and not Checkpoint.objects.filter(sealed=None).exists()


def test_an_archive_that_is_away_stops_a_run_visibly(w: World, settings: Any, tmp_path: Path) -> None:
    """Not called damage, not quarantined: it waits and goes on when the archive answers."""
    settings.RECOURSE_ARCHIVE_URL = (tmp_path / "archive").as_uri()
    run = w.accept("test.waiter", mode="event")
    w.drive()
    later(days=8)
    mover = Mover()
    mover.look()
    mover.join()
    forget(run)
    w.signal(run, "told", text="at last")
    with pytest.MonkeyPatch.context() as m:

        def away(address: str) -> bytes:
            raise archive.Away("connection refused")

        m.setattr(archive, "get", away)
        assert w.advance(run) == "archive_away"
    row = w.run(run)
    assert (row.state, row.waiting_on, row.gate[0]["code"]) == (RunState.WAITING, "dependency", "archive_away")
    later(minutes=2)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
