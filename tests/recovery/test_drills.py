"""Beginning a drill and keeping its verdict: the plain path, then without the right, forbidden, repeated."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from recovery import failpoints
from recovery.actions import drills
from recovery.drills.catalogue import DRILLS
from recovery.engine.refusals import DrillRunning, DrillsForbidden, UnknownDrill
from runs import access, clock
from runs.errors import LostRace, NotAllowed
from runs.history import chain
from runs.models import Drill, Event, Person, Workspace
from runs.states import DrillState, EventKind
from tests.recovery.stage import Stage, act, stage

VERDICT = {"counts": {"completed": 6}, "wrong": [], "bit": True}


@pytest.fixture
def s(db: None) -> Stage:
    return stage()


@pytest.fixture
def author(s: Stage) -> Person:
    someone = Person.objects.create_user("author@acme-pay.example", "Author")
    access.grant(someone, s.here, ["author"])
    return someone


def lines(s: Stage) -> list[Event]:
    kinds = [EventKind.DRILL_STARTED, EventKind.DRILL_ENDED]
    return list(Event.objects.filter(workspace=s.here, run=None, kind__in=kinds).order_by("seq"))


def test_a_drill_begins_and_ends_with_its_verdict(s: Stage, author: Person) -> None:
    """Invariant 9: one line for each of the two changes, in the workspace's own chain."""
    begun = drills.begin(s.here, "worker_killed", actor=author, act=act("drills"))
    row = Drill.objects.get()
    assert (str(row.pk), row.state, row.ended_at) == (begun.facts["drill"], DrillState.RUNNING, None)
    drills.end(row.pk, passed=True, verdict=VERDICT, actor=author, act=act("drills"))
    row.refresh_from_db()
    assert (row.state, row.verdict, row.started_by) == (DrillState.PASSED, VERDICT, author)
    assert row.ended_at is not None and row.ended_at > row.started_at
    started, ended = lines(s)
    moves = [(m["from"], m["to"]) for line in (started, ended) for m in line.body["moves"]]
    assert moves == [("", "running"), ("running", "passed")]
    assert ended.data["counts"] == {"completed": 6} and ended.actor == author
    assert chain.verify_workspace(Workspace.objects.get(pk=s.here.pk)).ok


def test_only_who_may_rehearse(s: Stage) -> None:
    with pytest.raises(NotAllowed):
        drills.begin(s.here, "worker_killed", actor=s.oncall_a, act=act("drills"))
    assert not Drill.objects.exists()


@pytest.mark.parametrize("environment", ["PRODUCTION", "STAGING"])
def test_never_beside_a_workspace_that_is_no_sandbox(s: Stage, author: Person, environment: str) -> None:
    """A worker that a drill kills works for everybody; whatever forbids it is named."""
    Workspace.objects.filter(pk=s.there.pk).update(environment=environment)
    with pytest.raises(DrillsForbidden) as refused:
        drills.begin(s.here, "worker_killed", actor=author, act=act("drills"))
    assert refused.value.facts["names"] == f"other-pay ({environment})"
    assert not Drill.objects.exists() and s.refusals()[-1]["code"] == "drills_forbidden"


def test_a_drill_that_does_not_exist_is_refused_with_those_that_do(s: Stage, author: Person) -> None:
    with pytest.raises(UnknownDrill) as refused:
        drills.begin(s.here, "earthquake", actor=author, act=act("drills"))
    assert refused.value.facts["known"] == sorted(DRILLS)


def test_one_at_a_time_and_an_abandoned_one_bars_nobody(s: Stage, author: Person) -> None:
    drills.begin(s.here, "worker_killed", actor=author, act=act("drills"))
    with pytest.raises(DrillRunning) as refused:
        drills.begin(s.here, "reply_lost", actor=author, act=act("drills"))
    assert refused.value.facts["name"] == "worker_killed"
    clock.shift(drills.LONGEST + timedelta(seconds=1))
    drills.begin(s.here, "reply_lost", actor=author, act=act("drills"))
    states = dict(Drill.objects.values_list("name", "state"))
    assert states == {"worker_killed": DrillState.FAILED, "reply_lost": DrillState.RUNNING}
    assert Drill.objects.get(name="worker_killed").verdict == {"abandoned": True}


def test_the_same_act_twice_is_one_drill(s: Stage, author: Person) -> None:
    """Invariant 15."""
    how = act("drills")
    first = drills.begin(s.here, "worker_killed", actor=author, act=how)
    again = drills.begin(s.here, "worker_killed", actor=author, act=how)
    assert again.replayed and again.facts == first.facts and Drill.objects.count() == 1


def test_a_verdict_is_kept_once(s: Stage, author: Person) -> None:
    drills.begin(s.here, "worker_killed", actor=author, act=act("drills"))
    row = Drill.objects.get()
    drills.end(row.pk, passed=False, verdict=VERDICT, actor=author, act=act("drills"))
    with pytest.raises(LostRace):
        drills.end(row.pk, passed=True, verdict=VERDICT, actor=author, act=act("drills"))
    row.refresh_from_db()
    assert row.state == DrillState.FAILED


def test_what_a_drill_lays_is_done_once_by_whoever_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failpoints, "_drills", tmp_path)
    failpoints.hit("send.after")
    failpoints.arm_drill(tmp_path, "send.after", "raise")
    failpoints.hit("send.before")
    with pytest.raises(failpoints.Failpoint):
        failpoints.hit("send.after")
    failpoints.hit("send.after")
    assert not failpoints.disarm_drill(tmp_path, "send.after"), "somebody passed by"
    failpoints.arm_drill(tmp_path, "send.after", "kill")
    assert failpoints.disarm_drill(tmp_path, "send.after"), "nobody did"
    failpoints.hit("send.after")


@pytest.mark.parametrize(
    ("point", "action"), [("nowhere", "kill"), ("send.after", "explode"), ("send.after", "stop(x)")]
)
def test_what_cannot_be_laid_is_refused(tmp_path: Path, point: str, action: str) -> None:
    with pytest.raises(ValueError, match="no failpoint|no action|no number"):
        failpoints.arm_drill(tmp_path, point, action)
    assert list(tmp_path.iterdir()) == []
