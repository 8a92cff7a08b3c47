"""An item about a dependency has no run: it is shown, claimed and released like any other."""

from __future__ import annotations

import re
from uuid import uuid4

from recovery.actions import dependencies
from recovery.traffic import breaker
from runs.models import Dependency, Effect, Review
from runs.record import Act
from tests.console.screens.scene import Scene
from tests.console.screens.seen import text

INBOX = "/w/acme-pay/inbox/"


def test_a_held_dependency_with_work_is_one_item_that_can_be_claimed(scene: Scene) -> None:
    effect = scene.unknown()
    one = Dependency.objects.get(pk=Effect.objects.get(pk=effect.pk).dependency_id)
    dependencies.hold(one.pk, actor=scene.people["a"], act=Act(uuid4(), "hold"), reason="outage")
    assert breaker.tell_who_waits() == 0, "told once"
    page = text(scene.client("a").get(INBOX))
    assert re.search(rf"Nothing is sent {one.name} A person holds {one.name}; nothing is sent there\.", page), page
    review = Review.objects.get(kind="not_sending")
    for what, expected in (("claim", scene.people["a"].pk), ("release", None)):
        answer = scene.client("a", htmx=True).post(f"/reviews/{review.pk}/{what}/", {"action": str(uuid4())})
        assert answer.status_code == 200
        review.refresh_from_db()
        assert review.claimed_by_id == expected
