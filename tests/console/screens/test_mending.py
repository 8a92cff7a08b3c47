"""Pages and lists of a run that has something mended, and of the run that mends: each state can be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from recovery.actions import compensations as actions
from recovery.contract import registry
from runs.models import Effect, Plan, Run
from runs.states import PlanState, RunState
from tests.console.screens.scene import Scene
from tests.console.screens.seen import act, text
from tests.recovery.engine import compensable
from tests.recovery.engine.registered import registered


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    with registered():
        registry.register_module(compensable, "tests")
        yield


def pages(scene: Scene, run: UUID) -> str:
    """The run's page as on-call and as an auditor see it, its effects' pages, the lists; nothing breaks."""
    seen = ""
    for letter in ("a", "d"):
        client = scene.client(letter)
        slug = Run.objects.get(pk=run).workspace.slug
        for path in (f"/runs/{run}/", f"/w/{slug}/runs/", f"/w/{slug}/inbox/"):
            response = client.get(path)
            assert response.status_code == 200, path
            seen += text(response)
        for effect in Effect.objects.filter(run_id=run):
            assert client.get(f"/effects/{effect.pk}/").status_code == 200
    return seen


def trip(scene: Scene, *names: str, mode: str = "mend") -> UUID:
    what = [(name, f"ch_{n}") for n, name in enumerate(names, 1)]
    run = scene.start("trip.book", {"what": what, "mode": mode})
    scene.drain()
    return run


def carrying(run: UUID) -> UUID:
    id = Plan.objects.get(run_id=run).mending_run_id
    assert id is not None
    return id


def test_while_it_mends_and_afterwards(scene: Scene) -> None:
    scene.sandbox.dial("payments", readback="down")
    run = trip(scene, "flight", "hotel")
    assert Run.objects.get(pk=run).state == RunState.COMPENSATING
    page = pages(scene, run)
    assert "Being mended" in page and "its plan to mend what happened: 2 in all" in page
    assert "Planned" in pages(scene, carrying(run)) or "planned" in pages(scene, carrying(run))
    scene.sandbox.dial("payments", readback="ok")
    scene.pass_time(minutes=2)
    scene.drain()
    assert Run.objects.get(pk=run).state == RunState.COMPENSATED
    assert "Mended" in pages(scene, run) and "mended since" in pages(scene, run)
    assert "Mend: Test trip.book" in pages(scene, carrying(run))


def test_what_did_not_work_is_in_the_inbox(scene: Scene) -> None:
    """The row says how much is mended and leads to the run."""
    scene.sandbox.dial("payments", reply="reject", match="un-ch_1", times=9)
    run = trip(scene, "flight", "flight")
    page = pages(scene, run)
    assert "Mended in part" in page and "1 of 2 mended; what is left needs a person" in page
    plan = Plan.objects.get(run_id=run)
    assert plan.state == PlanState.INCOMPLETE
    given = {"reason": "r", "digest": plan.digest}
    actions.accept_rest(plan.pk, actor=scene.people["a"], act=act(), **given)
    assert "wants to leave what stays as it is; another person must confirm" in pages(scene, run)
    actions.confirm_rest(plan.pk, actor=scene.people["b"], act=act(), confirm=True, **given)
    scene.drain()
    assert Run.objects.get(pk=run).state == RunState.COMPLETED_UNRESOLVED
    pages(scene, run)
    pages(scene, carrying(run))


def test_who_signs_sees_what_it_mends(scene: Scene) -> None:
    run = trip(scene, "charge")
    approval = Effect.objects.get(run=carrying(run)).approvals.get()
    page = text(scene.client("b").get(f"/approvals/{approval.pk}/"))
    assert "Give back EUR 84.00 for un-ch_1" in page and "mends Charge ch_1" in page
    assert "Waiting: 2 signatures" in pages(scene, carrying(run))


def test_the_demonstrations_mail_is_corrected(scene: Scene) -> None:
    """The refund cannot be taken back; what the customer was told can be corrected."""
    effect = scene.refund(1990, "EUR", "payments")
    run = effect.run_id
    done = actions.propose(run, actor=scene.people["a"], act=act(), reason="wrong order")
    plan = Plan.objects.get(pk=done.facts["plan"])
    assert [(i["says"], i["left_out"] and i["left_out"]["code"]) for i in plan.items] == [
        (f"Correct what {Effect.objects.get(operation='mail.send').params['to']} was told about order "
         f"{Effect.objects.get(operation='mail.send').params['order']}", None),
        ("", "irreversible"),
    ]  # fmt: skip
    actions.start(plan.pk, actor=scene.people["a"], act=act(), reason="wrong order", digest=plan.digest)
    scene.drain()
    plan.refresh_from_db()
    assert plan.state == PlanState.COMPENSATED
    assert sorted(line["code"] for line in plan.stays) == ["irreversible", "residual"]
    pages(scene, run)
    pages(scene, carrying(run))
