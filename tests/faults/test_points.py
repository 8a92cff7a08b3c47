"""Each failpoint, each thing that may happen there, at real process borders; judged by the sandbox's own ledger.

Safety and liveness are two checks: nothing twice and nothing untrue, and it comes to the same end as undisturbed. Only
where neither a key nor a proof exists may it wait for a person instead, visibly.
"""

from __future__ import annotations

import json
import signal

import pytest

from recovery import failpoints
from runs.models import Run, Worker
from tests.faults import scenes
from tests.faults.conftest import Workers
from tests.faults.passes import PASSES
from tests.faults.scenes import SCENES
from tests.faults.worker import FAILED
from tests.recovery.engine.world import World

FIRST = {
    point: next(name for name in SCENES if point in PASSES[name]) for point in sorted(set().union(*PASSES.values()))
}
"""A scene for each point."""

UNDISTURBED = [name if name in FIRST.values() else pytest.param(name, marks=pytest.mark.exhaustive) for name in SCENES]
"""Scenes in which nobody is killed by ``make test`` are left to ``make test-all``."""

PRODUCT = [(name, point) for name in SCENES for point in sorted(PASSES[name])]


def test_every_point_is_passed_by_a_scene() -> None:
    """A sweep over points that nobody passes would prove nothing."""
    assert set(FIRST) == failpoints.POINTS
    assert len(failpoints.POINTS) >= 30


@pytest.mark.parametrize("name", UNDISTURBED)
def test_undisturbed(w: World, forks: Workers, name: str) -> None:
    """What the table says is passed is passed, and the scene comes to the end that the others are held against."""
    asked = SCENES[name].play(w, forks)
    assert forks.wait(forks.start(**asked)) == {"code": 0}
    assert set(json.loads(forks.log.read_text())) == PASSES[name]
    scenes.go_on(w, SCENES[name], asked)
    assert scenes.ends(w) == SCENES[name].end
    SCENES[name].also(w)


@pytest.mark.parametrize("point", FIRST)
def test_killed(w: World, forks: Workers, point: str) -> None:
    """Faults 1, 2, 5, 7, 10, 11: SIGKILL at each point, and somebody else goes on from the record."""
    scene = SCENES[FIRST[point]]
    asked = scene.play(w, forks)
    assert forks.kill(point=point, **asked), f"it did not come to {point}"
    scenes.go_on(w, scene, asked)
    _held_against(w, scene)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "point"), PRODUCT)
def test_killed_in_every_scene(w: World, forks: Workers, name: str, point: str) -> None:
    asked = SCENES[name].play(w, forks)
    assert forks.kill(point=point, **asked)
    scenes.go_on(w, SCENES[name], asked)
    _held_against(w, SCENES[name])


@pytest.mark.exhaustive
@pytest.mark.parametrize("action", ["raise", "do_then_raise"])
@pytest.mark.parametrize(("name", "point"), PRODUCT)
def test_broken_in_every_scene(w: World, forks: Workers, name: str, point: str, action: str) -> None:
    """Faults 7 and 8: an error of ours, or an answer that is lost. The process lives, and holds nothing for ever."""
    asked = SCENES[name].play(w, forks)
    came = forks.wait(forks.start(point=point, action=action, **asked))
    assert came in ({"code": 0}, {"code": FAILED})
    scenes.go_on(w, SCENES[name], asked)
    _held_against(w, SCENES[name])


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "point"), PRODUCT)
def test_stopped_past_its_lease_in_every_scene(w: World, forks: Workers, name: str, point: str) -> None:
    """Faults 24 and 25: others take over; what wakes up changes nothing that they settled (invariant 6)."""
    asked = SCENES[name].play(w, forks)
    stopped = forks.start(point=point, action="stop", **asked)
    assert forks.wait(stopped) == {"stopped": True}
    for row in Worker.objects.exclude(pk=w.me.id):
        w.silence(row.pk)
    scenes.go_on(w, SCENES[name], asked)
    _held_against(w, SCENES[name])
    before = {r.pk: (r.state, r.version) for r in Run.objects.all()}
    came = forks.go_on(stopped)
    assert came in ({"code": 0}, {"code": FAILED}), forks.log.read_text()
    scenes.finish(w)
    _held_against(w, SCENES[name])
    ended = {pk for pk, (state, _) in before.items() if Run(state=state).ended}
    after = {r.pk: (r.state, r.version) for r in Run.objects.filter(pk__in=ended)}
    assert after == {pk: before[pk] for pk in ended}


def _held_against(w: World, scene: scenes.Scene) -> None:
    """Never twice, never untrue; and the undisturbed end, or a person visibly asked where no machine can know."""
    scenes.judge_all(w)
    if not scene.asks:
        assert scenes.ends(w) in [scene.end, *([scene.or_else] if scene.or_else else [])]
        scene.also(w)


def test_a_kill_is_a_kill(w: World, forks: Workers) -> None:
    """The seam itself: the process dies by the signal, at the first hit and nowhere else."""
    asked = SCENES["order"].play(w, forks)
    assert forks.wait(forks.start(point="advance.leased", **asked)) == {"signal": int(signal.SIGKILL)}
    assert Run.objects.get().state == "running"
