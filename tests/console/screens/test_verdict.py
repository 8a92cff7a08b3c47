"""``/effects/{id}/verdict/``: what a person says happened; reason, evidence, still true, step-up, once."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest

from recovery.actions import verdicts
from runs.models import Effect, Evidence, Verdict
from runs.states import EffectState, RunState
from tests.console.screens.posting import act, fields, press
from tests.console.screens.scene import Scene
from tests.console.screens.seen import text

RECORDED = r"Recorded at \d\d:\d\d:\d\d: the refund happened\. Event #\d+\."


@pytest.fixture
def seen(scene: Scene) -> Effect:
    """An unknown refund that cards-eu shows, without our reference."""
    effect = scene.unknown()
    scene.pass_time(minutes=31)
    scene.sandbox.reset("cards-eu")
    scene.client("a").post(f"/effects/{effect.pk}/readback/", act())
    effect.refresh_from_db()
    assert effect.state == EffectState.UNKNOWN
    return effect


def _open(client: Any, effect: Effect, says: str = "happened") -> Any:
    return client.get(f"/effects/{effect.pk}/verdict/?says={says}")


def test_the_preview_says_what_will_happen_in_the_order_of_every_preview(scene: Scene, seen: Effect) -> None:
    """Walk a, 5: the lines, the ticked evidence, the button that names the consequence."""
    opened = _open(scene.client("a"), seen)
    page = text(opened)
    assert re.search(
        r"Record that this refund happened Will happen the refund becomes Happened, with re_\w+ as its result\. "
        r"The run goes on with: Tell the customer\. Will not happen nothing is sent to cards-eu\. "
        r"Cannot be reversed Later evidence against it opens a dispute\. Based on version \d+ of this effect",
        page,
    )
    assert page.endswith("Record: the refund happened Leave as it is")
    check = Evidence.objects.get(effect=seen, claim="happened")
    assert fields(opened, f"/effects/{seen.pk}/verdict/")["evidence"] == [str(check.pk)]
    assert Verdict.objects.count() == 0


def test_it_happened_is_recorded_and_the_run_comes_home(scene: Scene, seen: Effect) -> None:
    """Walk a, 7 and 8: recorded by one person on machine evidence; completed; one refund in the ledger."""
    client = scene.client("a", htmx=True)
    done = press(client, _open(client, seen), f"/effects/{seen.pk}/verdict/", reason="their record shows it")
    page = text(done)
    assert done.status_code == 200 and re.match(RECORDED, page), page
    assert re.search(r"Run orders\.cancel \w{4}-\w{4} goes on: Tell the customer\.", page)
    assert re.search(r"<h2[^>]*autofocus>Recorded at", done.content.decode())
    scene.drain()
    assert scene.run_of(seen).state == RunState.COMPLETED and scene.applied(seen) == 1
    after = text(client.get(f"/effects/{seen.pk}/after/"))
    assert re.fullmatch(
        r"Completed at [\d:]+\. 2 of 2 effects settled: refund by Oncall A on the readback of [\d:]+, "
        r"e-mail by its receipt\.",
        after,
    )


def test_recorded_before_says_so_and_does_nothing_twice(scene: Scene, seen: Effect) -> None:
    """Walk a, 8: the reloaded preview and the old form posted again say the same (invariant 15)."""
    client = scene.client("a")
    opened = _open(client, seen)
    address = f"/effects/{seen.pk}/verdict/"
    press(client, opened, address, reason="their record shows it")
    already = r"Already recorded at \d\d:\d\d:\d\d by you\. Nothing was done twice\."
    assert re.search(already, text(_open(client, seen)))
    again = press(client, opened, address, reason="their record shows it", step_up=False)
    assert again.status_code == 200 and re.search(already, text(again))
    other = press(client, opened, address, reason="their record shows it", action=str(uuid4()), step_up=False)
    assert other.status_code == 409 and re.search(already, text(other))
    assert Verdict.objects.count() == 1


def test_no_reason_is_refused_before_the_step_up_and_nothing_is_lost(scene: Scene, seen: Effect) -> None:
    """Walk a, 6: focus in the field, the box still ticked, no password asked."""
    client = scene.client("a", htmx=True)
    answer = press(client, _open(client, seen), f"/effects/{seen.pk}/verdict/", reason=" \n", step_up=False)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Not recorded. Say why: the reason is kept with the decision." in text(answer)
    assert re.search(r"<textarea[^>]*name=\"reason\"[^>]*autofocus", page) and "Confirm it is you" not in page
    assert re.search(r'name="evidence"[^>]*checked', page)


def test_no_evidence_is_refused(scene: Scene, seen: Effect) -> None:
    """A decision needs at least one ticked piece of evidence or somebody's word."""
    client = scene.client("a", htmx=True)
    answer = press(client, _open(client, seen), f"/effects/{seen.pk}/verdict/", reason="x", evidence=[])
    assert answer.status_code == 422
    assert "Not recorded. A decision needs at least one piece of evidence. Check with cards-eu or attach one." in text(
        answer
    )
    half = press(client, _open(client, seen), f"/effects/{seen.pk}/verdict/", reason="x", statement="it is there")
    assert half.status_code == 422 and "Say what was said, by whom and when." in text(half)
    assert Verdict.objects.count() == 0


def test_evidence_of_another_effect_is_no_evidence(scene: Scene, seen: Effect) -> None:
    """An id from elsewhere is not one of the choices."""
    client = scene.client("a", htmx=True)
    answer = press(client, _open(client, seen), f"/effects/{seen.pk}/verdict/", reason="x", evidence=[str(uuid4())])
    assert answer.status_code == 422 and Verdict.objects.count() == 0


def test_a_decision_asks_who_is_there(scene: Scene, seen: Effect) -> None:
    """Heavy: the password of now; the pressed decision goes on with all its fields."""
    client = scene.client("a", htmx=True)
    address = f"/effects/{seen.pk}/verdict/"
    asked = press(client, _open(client, seen), address, reason="their record shows it", step_up=False)
    assert asked.status_code == 403 and "Confirm it is you" in text(asked) and Verdict.objects.count() == 0
    assert "Record: the refund happened" in text(asked)
    done = press(client, asked, address)
    assert re.match(RECORDED, text(done))


def test_news_while_deciding_is_said_and_the_decision_refused(scene: Scene, seen: Effect) -> None:
    """Stale: the slot speaks, the POST is 409 without a password asked, the typed reason is kept."""
    client = scene.client("a", htmx=True)
    opened = _open(client, seen)
    address = f"/effects/{seen.pk}/verdict/"
    slot = re.search(r'hx-get="([^"]*part=slot[^"]*)"', opened.content.decode())[1].replace("&amp;", "&")  # type: ignore[index]
    assert client.get(slot).content == b""
    scene.client("a").post(f"/effects/{seen.pk}/readback/", act())
    said = text(client.get(slot))
    assert re.fullmatch(r"Changed at \d\d:\d\d:\d\d: cards-eu answered a check\. See what changed\.", said)
    answer = press(client, opened, address, reason="I looked at it", step_up=False)
    page = text(answer)
    assert answer.status_code == 409 and "Confirm it is you" not in page
    changed = r"Nothing was done\. The effect changed while you were reading \([\d:]+, you\)\. Read it again\."
    assert re.match(changed, page)
    assert "+ added Readback" in page and "I looked at it" in answer.content.decode()
    assert fields(answer, address)["version"] != fields(opened, address)["version"]
    assert scene.refusals() == ["stale_version"] and Verdict.objects.count() == 0


def test_did_not_happen_against_evidence_needs_a_second_person(scene: Scene, seen: Effect) -> None:
    """D3: it lets the run ask again, so the preview says what that costs and that one person is not enough."""
    page = text(_open(scene.client("a"), seen, "did_not_happen"))
    assert "first a second person is asked to confirm this (there is evidence against it)." in page
    assert (
        f"The run may ask again as a new request, with key refund:{seen.target}/2. "
        "If cards-eu did make the first one, EUR 84.00 is paid twice."
    ) in page
    assert page.endswith("Record: the refund did not happen Leave as it is")


def test_a_word_alone_waits_for_a_second_person(scene: Scene) -> None:
    """What was said, by whom and when is kept; the effect stays unknown; nothing goes on."""
    effect = scene.notice()
    client = scene.client("a", htmx=True)
    answer = press(
        client,
        _open(client, effect),
        f"/effects/{effect.pk}/verdict/",
        reason="the desk called",
        statement="It hangs on the board",
        said_by="Desk D",
        said_when="03:10",
    )
    page = text(answer)
    assert re.match(r"Recorded at [\d:]+: the notice happened\. Waiting for a second person to confirm\.", page)
    assert "Who can confirm it: Approver B and Approver C." in page
    effect.refresh_from_db()
    assert effect.state == EffectState.UNKNOWN
    word = Evidence.objects.get(effect=effect, kind="statement")
    assert word.raw == "It hangs on the board\nDesk D, 03:10" and word.person == scene.people["a"]
    again = text(client.get(f"/effects/{effect.pk}/"))
    assert "A second person confirms or refuses it; until then nobody knows." in again
    assert "It happened..." not in again


def test_whoever_lost_the_right_is_refused_by_hand(scene: Scene, seen: Effect) -> None:
    """The POST is judged anew: 403, kept as a refusal, nothing recorded."""
    opened = _open(scene.client("a"), seen)
    sent = {**fields(opened, f"/effects/{seen.pk}/verdict/"), "reason": "x"}
    answer = scene.client("d", htmx=True).post(f"/effects/{seen.pk}/verdict/", sent)
    assert answer.status_code == 403 and "You can see this but not" in text(answer)
    assert scene.refusals() == ["not_allowed"] and Verdict.objects.count() == 0


def test_settled_by_recourse_meanwhile_is_said(scene: Scene, seen: Effect) -> None:
    """Settled by somebody else: the preview and the POST name who and when."""
    opened = _open(scene.client("a"), seen)
    check = Evidence.objects.get(effect=seen, claim="happened")
    verdicts.record(
        seen.pk,
        actor=scene.people["a"],
        act=scene.new_act(),
        says="happened",
        reason="in another tab",
        evidence=[check.pk],
        version=seen.version,
    )
    answer = press(scene.client("a"), opened, f"/effects/{seen.pk}/verdict/", reason="x", step_up=False)
    assert answer.status_code == 409 and "Nothing was done twice." in text(answer)


def test_in_part_is_not_offered(scene: Scene, seen: Effect) -> None:
    """No operation has items: the choice is absent, by hand too."""
    assert scene.client("a").get(f"/effects/{seen.pk}/verdict/?says=in_part").status_code == 302
    assert scene.client("a").get(f"/effects/{seen.pk}/verdict/").status_code == 302


def test_a_version_that_no_record_can_have_is_no_version(scene: Scene, seen: Effect) -> None:
    """It would break the line that keeps the refusal."""
    client = scene.client("a")
    opened, address = _open(client, seen), f"/effects/{seen.pk}/verdict/"
    assert press(client, opened, address, reason="x", version="9" * 30).status_code == 422
    assert press(client, opened, address, reason="x", known="9" * 30).status_code == 422
    assert Verdict.objects.count() == 0
