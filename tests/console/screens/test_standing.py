"""Runs that stand, wait for a run of their own, or were ended by people: every page of theirs opens and says so."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from recovery.actions import break_glass, ends, pauses
from runs import access
from runs.models import Approval, Run
from runs.record import Act
from runs.states import RunState, Scope
from tests.console.screens.scene import Scene
from tests.console.screens.seen import text
from tests.recovery.engine.registered import registered
from tests.recovery.stage import SAW


@pytest.fixture(autouse=True)
def _run_types() -> Iterator[None]:
    with registered():
        yield


def by(route: str) -> Act:
    return Act.over(uuid4(), route, {})


def pages(scene: Scene, run: UUID) -> str:
    """The run's page as read; every tab, the list, the API and the inbox open too."""
    client = scene.client("a")
    for tab in ("timeline", "effects", "checkpoints", "history", "facts"):
        assert client.get(f"/runs/{run}/?tab={tab}").status_code == 200, tab
    state = Run.objects.get(pk=run).state
    for address in (f"/w/acme-pay/runs/?state={state}", "/w/acme-pay/inbox/"):
        assert client.get(address).status_code == 200, address
    response = client.get(f"/runs/{run}/")
    assert response.status_code == 200
    return text(response)


def nested(scene: Scene, depth: int) -> UUID:
    return scene.start("test.nested", {"amount": depth})


def pause(scene: Scene, run: UUID) -> None:
    pauses.pause(run, actor=scene.people["a"], act=by("pause"), reason="an outage", scope=Scope.CHILDREN)


def test_paused_and_pausing(scene: Scene) -> None:
    run = nested(scene, 0)
    pause(scene, run)
    page = pages(scene, run)
    assert "State: Pausing" in page and "what is in flight to settle" in page
    scene.drain()
    assert Run.objects.get(pk=run).state == RunState.PAUSED
    page = pages(scene, run)
    assert "State: Paused" in page and "a person lets it go on, or cancels it" in page
    pauses.resume(run, actor=scene.people["a"], act=by("resume"), reason="over")
    scene.drain()
    assert "Let go on" in pages(scene, run)


def test_waiting_for_a_child(scene: Scene) -> None:
    """The child is named, also that it stands still."""
    run = nested(scene, 1)
    page = pages(scene, run)
    assert "Waiting for the run it started: Test test.nested" in page
    child = Run.objects.get(parent_id=run).pk
    pause(scene, child)
    scene.drain()
    assert "which stands still: Test test.nested" in pages(scene, run)
    assert "State: Paused" in pages(scene, child)


def test_ended_by_force(scene: Scene) -> None:
    """The effect that stays open can still be seen; the inbox asks for the second person."""
    effect = scene.unknown()
    access.grant(scene.people["b"], scene.here, ["approver", "administrator"])
    ends.abort(effect.run_id, actor=scene.people["b"], act=by("abort"), reason="it must stop")
    assert "Ended by force" in pages(scene, effect.run_id)
    assert scene.client("a").get(f"/effects/{effect.pk}/").status_code == 200
    inbox = text(scene.client("a").get("/w/acme-pay/inbox/"))
    assert "Approver B ended it by force; a second person has to confirm that." in inbox


def test_closed_by_two(scene: Scene) -> None:
    effect = scene.unknown()
    run = Run.objects.get(pk=effect.run_id)
    done = ends.close_unresolved(
        run.pk, actor=scene.people["a"], act=by("close"), reason="nobody can tell", version=run.version
    )
    assert "Proposed to end it" in pages(scene, run.pk)
    ends.confirm_close(
        run.pk,
        actor=scene.people["b"],
        act=by("confirm"),
        confirm=True,
        reason="seen",
        digest=done.facts["digest"],
    )
    assert "A second person confirmed how it ended" in pages(scene, run.pk)


def test_sent_without_signatures(scene: Scene) -> None:
    effect = scene.refund(120_500, "USD", "payments")
    approval = Approval.objects.get(effect_id=effect.pk)
    access.grant(scene.people["b"], scene.here, ["approver", "administrator"])
    break_glass.override(
        approval.pk,
        actor=scene.people["b"],
        act=by("override"),
        reason="nobody is awake",
        digest=approval.digest,
        saw=SAW,
    )
    scene.drain()
    assert "Sent without signatures, by break-glass" in pages(scene, effect.run_id)
    assert scene.client("a").get(f"/approvals/{approval.pk}/").status_code == 200
