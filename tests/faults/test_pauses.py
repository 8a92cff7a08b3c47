"""A worker that is stopped and comes back: its token is old, and nothing it brings changes a state (faults 24, 25)."""

from __future__ import annotations

import pytest

from runs.models import Evidence, Worker
from runs.states import EventKind, RunState
from tests.faults import scenes
from tests.faults.conftest import Workers
from tests.faults.test_kills import DONE
from tests.recovery.engine.world import World


@pytest.mark.parametrize("point", ["advance.before_commit", "send.before", "send.after", "advance.before_outcome"])
def test_stopped_taken_over_and_continued(w: World, forks: Workers, point: str) -> None:
    """Invariant 6: the other worker finishes; the one that wakes up commits nothing and sends nothing new."""
    run = scenes.start(w, "order")
    w.sandbox.dial("payments", reply="ok")
    paused = forks.start(point=point, action="stop")
    assert forks.wait(paused) == {"stopped": True}
    for row in Worker.objects.exclude(pk=w.me.id):
        w.silence(row.pk)
    scenes.finish(w)
    assert scenes.end_of(w, run) == DONE
    before, token = len(w.events(run)), w.run(run).token
    assert forks.go_on(paused) == {"code": 0}
    new = w.events(run)[before:]
    told = {EventKind.EVIDENCE_RECEIVED, EventKind.EFFECT_CHECKED, EventKind.RUN_STALE_REFUSED}
    assert {e.kind for e in new} <= told
    assert all(e.body["moves"] == [] or e.kind == EventKind.EVIDENCE_RECEIVED for e in new)
    w.drive()
    assert scenes.end_of(w, run) == DONE
    assert (w.run(run).state, w.run(run).token) == (RunState.COMPLETED, token)
    if point != "advance.before_commit":
        assert Evidence.objects.filter(run_id=run, kind="answer").exists()
