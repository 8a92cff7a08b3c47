"""``/effects/{id}/readback/``: asking the dependency now reads only, and what it says is shown at once."""

from __future__ import annotations

import re

from runs.models import Evidence
from runs.states import EffectState
from tests.console.screens.posting import act
from tests.console.screens.scene import Scene
from tests.console.screens.seen import text


def test_an_answer_is_compared_fact_by_fact(scene: Scene) -> None:
    """Walk a, 3 and 4: the focused heading, three facts of three, and that this is no proof."""
    effect = scene.unknown()
    scene.pass_time(minutes=31)
    scene.sandbox.reset("cards-eu")
    answer = scene.client("a", htmx=True).post(f"/effects/{effect.pk}/readback/", act())
    page = text(answer)
    assert answer.status_code == 200
    assert re.match(rf"cards-eu answered at \d\d:\d\d:\d\d: 1 refund on charge {effect.target} ", page)
    assert (
        "Agrees in 3 of 3 facts that can be compared. This is not proof: cards-eu does not return our reference. "
        "A person decides."
    ) in page
    assert re.search(r"<h2[^>]*autofocus>cards-eu answered", answer.content.decode())
    assert "amount EUR 84.00 8400 EUR 8400 EUR = same" in page
    assert "? cannot be compared" in page and "others like it - - none" in page
    effect.refresh_from_db()
    assert effect.state == EffectState.UNKNOWN and scene.applied(effect) == 1


def test_no_answer_is_said_and_changes_nothing(scene: Scene) -> None:
    """A check without an answer is no evidence that a decision could rest on."""
    effect = scene.unknown()
    scene.pass_time(minutes=31)
    effect.refresh_from_db()
    page = text(scene.client("a", htmx=True).post(f"/effects/{effect.pk}/readback/", act()))
    assert re.match(r"cards-eu did not answer at \d\d:\d\d:\d\d: it said 503\. Nothing changed\.", page)
    version = effect.version
    effect.refresh_from_db()
    assert effect.version == version


def test_pressing_twice_asks_once(scene: Scene) -> None:
    """Invariant 15: the same action id shows the first answer again."""
    effect = scene.unknown()
    scene.sandbox.reset("cards-eu")
    client, pressed = scene.client("a", htmx=True), act()
    first, again = (text(client.post(f"/effects/{effect.pk}/readback/", pressed)) for _ in range(2))
    heading = re.compile(r"cards-eu answered at \d\d:\d\d:\d\d")
    assert heading.match(first)[0] == heading.match(again)[0]  # type: ignore[index]
    assert Evidence.objects.filter(effect=effect, claim="happened").count() == 1


def test_proof_by_our_reference_settles_without_a_decision(scene: Scene) -> None:
    """The authority's own record with our key: no person is needed, and the run goes on."""
    scene.sandbox.dial("payments", reply="drop", times=6, readback="down")
    effect = scene.refund(1000, "EUR", "payments")
    scene.sandbox.reset("payments")
    page = text(scene.client("a", htmx=True).post(f"/effects/{effect.pk}/readback/", act()))
    assert re.search(r"Settled by payments's own record at \d\d:\d\d:\d\d\. No decision needed\.", page)
    assert "goes on: Tell the customer." in page
    scene.drain()
    assert re.match(
        r"Completed at \d\d:\d\d:\d\d\. 2 of 2 effects settled: refund by payments's own record of [\d:]+, "
        r"e-mail by its receipt\.",
        text(scene.client("a", htmx=True).get(f"/effects/{effect.pk}/after/")),
    )


def test_without_javascript_the_page_comes_back_with_the_answer(scene: Scene) -> None:
    """The same form posted plainly: a whole page, the answer on it."""
    effect = scene.unknown()
    scene.sandbox.reset("cards-eu")
    answer = scene.client("a").post(f"/effects/{effect.pk}/readback/", act())
    assert answer.status_code == 200 and "<html" in answer.content.decode()
    assert "cards-eu answered at" in text(answer)


def test_an_auditor_may_not_ask(scene: Scene) -> None:
    """Reading the authority is an action of on-call; the refusal names who can."""
    effect = scene.unknown()
    answer = scene.client("d", htmx=True).post(f"/effects/{effect.pk}/readback/", act())
    assert answer.status_code == 403 and "Oncall A" in text(answer)
    assert not Evidence.objects.filter(effect=effect).exclude(person=None).exists()
