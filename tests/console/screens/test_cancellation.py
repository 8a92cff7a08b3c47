"""Cancelling a run: previewed, asked for, settled first; never harder than starting, never done twice."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid4

from runs.models import Run
from runs.states import RunState
from tests.console.screens.scene import Scene
from tests.console.screens.seen import text


def _press(scene: Scene, run: UUID, reason: str = "the customer kept it", letter: str = "a", action: str = "") -> Any:
    data = {"action": action or str(uuid4()), "reason": reason}
    return scene.client(letter, htmx=True).post(f"/runs/{run}/cancellation/", data)


def test_the_preview_says_what_will_and_will_not_happen(scene: Scene) -> None:
    """Walk d: what was sent is settled first and cannot be stopped. Looking asks for nothing."""
    effect = scene.unknown()
    tail = effect.run_id.hex[-8:]
    page = text(scene.client("a").get(f"/runs/{effect.run_id}/cancellation/"))
    assert f"Cancel run orders.cancel {tail[:4]}-{tail[4:]} Will happen No step starts any more." in page
    assert "Then Recourse finds out how 1 refund of EUR 84.00 ended. It only checks; it sends nothing again." in page
    assert (
        "Will not happen The refund already sent cannot be stopped. Cannot be reversed A cancelled run stays cancelled."
        in page
    )
    assert re.search(r"Based on Run version \d+, as of \d\d:\d\d:\d\d Reason", page)
    assert page.endswith("Cancel the run; settle 1 refund first Leave it running")
    assert scene.run_of(effect).cancel_asked_at is None


def test_what_was_not_sent_is_dropped_with_its_signatures(scene: Scene) -> None:
    """Nothing has left: nothing is settled first."""
    approval = scene.asked()
    page = text(scene.client("a").get(f"/runs/{approval.run_id}/cancellation/"))
    assert "Not sent and dropped: 1 refund of USD 1,250.00. The request for signatures ends" in page
    assert page.endswith("Cancel the run Leave it running")
    said = text(_press(scene, approval.run_id))
    assert re.fullmatch(r"Asked at \d\d:\d\d:\d\d\. Not cancelled yet: a worker ends it\. Event #\d+\.", said)
    scene.drain()
    page = text(scene.client("a").get(f"/runs/{approval.run_id}/"))
    assert re.search(r"State: Cancelled Cancelled at \d\d:\d\d:\d\d\. Nothing is left over\.", page)
    assert scene.applied(approval.effect) == 0


def test_asked_is_not_done_and_asking_again_does_nothing(scene: Scene) -> None:
    """The result says what is open; the reloaded preview and a second press say who asked, and when."""
    effect = scene.unknown()
    action = str(uuid4())
    said = text(_press(scene, effect.run_id, action=action))
    assert re.fullmatch(r"Asked at \d\d:\d\d:\d\d\. Not cancelled yet: 1 refund to settle\. Event #\d+\.", said)
    already = (
        r"Already asked at \d\d:\d\d:\d\d by you\. Nothing was done twice\. Not cancelled yet: 1 refund to settle\."
    )
    assert re.fullmatch(already, text(_press(scene, effect.run_id, action=action)))
    scene.drain()
    assert re.fullmatch(already, text(_press(scene, effect.run_id)))
    assert re.search(already, text(scene.client("a").get(f"/runs/{effect.run_id}/cancellation/")))
    page = text(scene.client("a").get(f"/runs/{effect.run_id}/"))
    assert "State: Cancelling Recourse's turn" in page
    assert "asked by Oncall A" in page and "Already asked; what was sent is settled first." in page


def test_a_reason_is_asked_for_and_what_was_typed_is_kept(scene: Scene) -> None:
    """White space is no reason; the field takes focus, nothing was asked."""
    effect = scene.unknown()
    answer = _press(scene, effect.run_id, reason="   ")
    assert answer.status_code == 422
    assert "Not recorded. Say why: the reason is kept with the decision." in text(answer)
    assert "autofocus" in answer.content.decode()
    assert scene.run_of(effect).state == RunState.WAITING


def test_an_ended_run_is_not_cancelled(scene: Scene) -> None:
    """Invariant 5; also when it ended while the preview was open."""
    run = scene.refund(1990, "EUR", "payments").run_id
    for answer in (scene.client("a").get(f"/runs/{run}/cancellation/"), _press(scene, run)):
        assert answer.status_code == 409
        assert re.search(
            r"Nothing was done\. The run ended at \d\d:\d\d:\d\d; an ended run stays ended\.", text(answer)
        )


def test_only_who_may(scene: Scene) -> None:
    """403 with who can, on the page and by hand; 404 for a foreign one; the refusal is kept."""
    run = scene.unknown().run_id
    line = "You can see this but not cancel the run. On-call can: Oncall A."
    for answer in (scene.client("b").get(f"/runs/{run}/cancellation/"), _press(scene, run, letter="b")):
        assert answer.status_code == 403 and line in text(answer)
    assert _press(scene, run, letter="e").status_code == 404
    assert scene.refusals() in (["not_allowed"], [])
    assert Run.objects.get(pk=run).cancel_asked_at is None


def test_an_id_that_was_used_for_another_run_is_refused(scene: Scene) -> None:
    """Invariant 15: the digest of an act covers what it is about."""
    first, second, action = scene.unknown().run_id, scene.notice().run_id, str(uuid4())
    assert _press(scene, first, action=action).status_code == 200
    answer = _press(scene, second, action=action)
    assert answer.status_code == 422 and "already used for other content" in text(answer)
    assert Run.objects.get(pk=second).cancel_asked_at is None


def test_the_slot_speaks_and_the_form_stays(scene: Scene) -> None:
    """News while somebody reads: the region above the form says so; the form is never refetched (D1)."""
    approval = scene.asked()
    page = scene.client("a").get(f"/runs/{approval.run_id}/cancellation/").content.decode()
    slot = re.search(r'id="slot"[^>]*hx-get="([^"]+)"', page)[1]
    htmx = scene.client("a", htmx=True)
    assert text(htmx.get(slot)) == ""
    _press(scene, approval.run_id)
    assert re.match(r"Changed at \d\d:\d\d:\d\d: Oncall A\. See what changed\.", text(htmx.get(slot)))
    assert "hx-morph-skip" in page
