"""``/effects/{id}/``: the unknown outcome laid side by side, the same effect told plainly in other states."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.screens import comparing
from runs.models import Evidence
from runs.states import EffectState
from tests.console.screens.posting import act
from tests.console.screens.scene import Scene
from tests.console.screens.seen import text

MOST_QUERIES = 20


def test_nobody_knows_and_the_page_says_whose_turn_it_is(scene: Scene) -> None:
    """Walk a, 2 and 3: title, state, turn, gate, what was sent and heard, the checks without an answer."""
    effect = scene.unknown()
    scene.pass_time(minutes=31)
    page = text(scene.client("a").get(f"/effects/{effect.pk}/"))
    assert f"Refund EUR 84.00 on charge {effect.target}: nobody knows whether it happened" in page
    assert "State: Outcome unknown Needs a person" in page
    assert re.search(r"If nobody acts Nothing is sent again\. .*The run expires \d+ \w+ \d\d:\d\d\.", page)
    assert re.search(r"sent \d\d:\d\d:\d\d, try 1 of 1, \d+ bytes heard nothing", page)
    assert re.search(r"1 check, no answer, last \d\d:\d\d:\d\d", page)
    assert "Reads only. Changes nothing at cards-eu." in page
    assert "Sending again is refused while the outcome is unknown." in page


def test_nothing_on_the_page_sends_again(scene: Scene) -> None:
    """No retry, no undo, no button named after a dialog: sending again is no choice here (leave out 1)."""
    effect = scene.unknown()
    scene.pass_time(minutes=31)
    page = scene.client("a").get(f"/effects/{effect.pk}/").content.decode()
    for word in ("Retry", "Undo", "Roll back", "Resend", "Send again<", "Submit", ">OK<", ">Cancel<", ">Confirm<"):
        assert word not in page
    assert set(re.findall(r'action="(/effects/[^"]+)"', page)) == {f"/effects/{effect.pk}/readback/"}


def test_without_any_way_to_check_the_page_says_so(scene: Scene) -> None:
    """Neither key nor readback: no check is offered, only a callback or a person settles it."""
    effect = scene.notice()
    page = text(scene.client("a").get(f"/effects/{effect.pk}/"))
    assert "notices offers no way to check. Sent once; only a callback or a person can settle it." in page
    assert "Check with" not in page
    assert "It happened... It did not happen..." in page


def test_a_settled_effect_is_told_plainly(scene: Scene) -> None:
    """The same page without a decision: what was meant, sent, heard, and by what it was settled."""
    effect = scene.refund(1000, "EUR", "payments")
    assert effect.state == EffectState.SUCCEEDED
    page = text(scene.client("d").get(f"/effects/{effect.pk}/"))
    assert f"Refund EUR 10.00 on charge {effect.target}: it happened" in page
    assert "Settled by the answer of payments." in page
    assert "It happened..." not in page and "Decide" not in page
    assert "State: Proves it by our reference" in page


def test_whoever_may_not_decide_is_told_who_can(scene: Scene) -> None:
    """Seen but not allowed: the control is absent, the names are in its place."""
    effect = scene.unknown()
    scene.pass_time(minutes=31)
    page = text(scene.client("d").get(f"/effects/{effect.pk}/"))
    assert "You can see this but not decide it. On-call can: Oncall A." in page
    assert "It happened..." not in page and "Check with" not in page.replace("Check with a", "")
    answer = scene.client("d").get(f"/effects/{effect.pk}/verdict/?says=happened")
    assert answer.status_code == 403 and "You can see this but not" in text(answer)


@pytest.mark.parametrize(
    "address",
    [
        "/effects/{effect}/",
        "/effects/{effect}/?part=facts",
        "/effects/{effect}/after/",
        "/effects/{effect}/verdict/?says=happened",
        "/verdicts/{verdict}/confirmation/",
        "/approvals/{approval}/",
        "/approvals/{approval}/?part=slot&seen=pending",
        "/approvals/{approval}/withdrawal/",
        "/approvals/{approval}/renewal/",
    ],
)
def test_foreign_and_missing_are_the_same_404(scene: Scene, address: str, everything: dict[str, Any]) -> None:
    """Invariant 14, for each address: same status, same words."""
    outsider = scene.client("e")
    foreign = outsider.get(address.format(**everything))
    missing = outsider.get(address.format(**dict.fromkeys(everything, uuid4())))
    assert (foreign.status_code, missing.status_code) == (404, 404)
    words = [re.sub(r"[0-9a-f-]{12,}", "", one.content.decode()) for one in (foreign, missing)]
    assert words[0] == words[1] and "Nothing here that you can see." in words[0]


@pytest.mark.parametrize(
    "address",
    [
        "/effects/{effect}/readback/",
        "/effects/{effect}/verdict/",
        "/verdicts/{verdict}/confirmation/",
        "/approvals/{approval}/decision/",
        "/approvals/{approval}/withdrawal/",
        "/approvals/{approval}/renewal/",
    ],
)
def test_nobody_posts_across_workspaces(scene: Scene, address: str, everything: dict[str, Any]) -> None:
    """Invariant 14: also by hand, also with every field; nothing is written, not even a refusal."""
    given = {**act(), "says": "happened", "reason": "x", "decision": "sign", "digest": "0" * 64, "version": 1}
    answer = scene.client("e").post(address.format(**everything), given)
    assert answer.status_code == 404 and scene.refusals() == []


@pytest.fixture
def everything(scene: Scene) -> dict[str, Any]:
    """One of each thing that an address names."""
    from recovery.actions import verdicts
    from runs.models import Verdict

    effect = scene.notice()
    verdicts.record(
        effect.pk,
        actor=scene.people["a"],
        act=scene.new_act(),
        says="happened",
        reason="they said so",
        evidence=[],
        version=effect.version,
        statement="it is on the board",
    )
    verdict = Verdict.objects.get(effect=effect)
    return {"effect": effect.pk, "verdict": verdict.pk, "approval": scene.asked().pk}


def test_a_page_makes_few_queries(scene: Scene) -> None:
    """However many checks and attempts there are."""
    effect = scene.unknown()
    scene.pass_time(minutes=31)
    scene.sandbox.reset("cards-eu")
    client = scene.client("a")
    for _ in range(3):
        client.post(f"/effects/{effect.pk}/readback/", act())
    for address in (f"/effects/{effect.pk}/", f"/effects/{effect.pk}/verdict/?says=happened"):
        with CaptureQueriesContext(
            connection,
        ) as seen:
            assert client.get(address).status_code == 200
        assert len(seen) <= MOST_QUERIES, [one["sql"][:90] for one in seen]


def test_parts_hold_no_button_and_no_form(scene: Scene) -> None:
    """What fetches itself again must never move or change what a hand is on."""
    effect = scene.unknown()
    scene.pass_time(minutes=31)
    client = scene.client("a", htmx=True)
    for part in ("head", "facts", "evidence"):
        page = client.get(f"/effects/{effect.pk}/?part={part}").content.decode()
        assert "<html" not in page and "<form" not in page
        assert not re.search(r"<button(?![^>]*data-copy)", page)


@pytest.mark.parametrize("theirs", ["[oops", "9999-12-31T23:59:59-23:59", "2026-12-01", "1e+308"])
def test_their_own_words_never_break_the_page(theirs: str) -> None:
    """What a dependency wrote is shown as it is when it reads as nothing we know."""
    names = ("amount", "made at", "our reference")
    sent = "2026-12-01T10:00:00+00:00"
    facts = [{"name": name, "meant": None, "sent": sent, "theirs": theirs, "same": None} for name in names]
    assert [row.theirs for row in comparing.compared(Evidence(facts=facts))] == [theirs] * 3
