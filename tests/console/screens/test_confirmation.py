"""``/verdicts/{id}/confirmation/``: the second person, the first one taking it back, and everybody else."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from recovery.actions import verdicts
from runs.models import Effect, Verdict
from runs.states import EffectState, RunState, VerdictState
from tests.console.screens.posting import fields, press
from tests.console.screens.scene import Scene
from tests.console.screens.seen import text


@pytest.fixture
def proposed(scene: Scene) -> Verdict:
    """Oncall A said that a notice happened, on a word alone."""
    effect = scene.notice()
    verdicts.record(
        effect.pk,
        actor=scene.people["a"],
        act=scene.new_act(),
        says="happened",
        reason="the desk called me",
        evidence=[],
        version=effect.version,
        statement="It hangs on the board\nDesk D, 03:10",
    )
    return Verdict.objects.get(effect=effect)


def _address(verdict: Verdict) -> str:
    return f"/verdicts/{verdict.pk}/confirmation/"


def _press(client: Any, verdict: Verdict, decision: str, **typed: Any) -> Any:
    opened = client.get(_address(verdict))
    return press(client, opened, _address(verdict), decision=decision, reason="I saw it too", **typed)


def test_the_second_person_sees_what_it_rests_on_and_not_the_reason(scene: Scene, proposed: Verdict) -> None:
    """D10: a second opinion is an own one; the first reason is folded, the statement is open."""
    answer = scene.client("b").get(_address(proposed))
    page, raw = text(answer), answer.content.decode()
    assert "Confirm a decision" in page and re.search(r"the notice happened by Oncall A at [\d:]+", page)
    assert "It hangs on the board" in page and "State: A person's word" in page
    assert re.search(r"<details><summary>The reason Oncall A gave</summary>", raw)
    assert page.endswith("Record: the notice happened Do not record it: the outcome stays unknown Leave as it is")


def test_confirmed_it_settles_and_the_run_goes_on(scene: Scene, proposed: Verdict) -> None:
    """Two people on a word: the effect happened, the run completes and says by whom."""
    client = scene.client("b", htmx=True)
    page = text(_press(client, proposed, "confirm"))
    assert re.match(r"Recorded at [\d:]+: the notice happened, decided by Oncall A and you\. Event #\d+\.", page)
    scene.drain()
    effect = Effect.objects.get(pk=proposed.effect_id)
    assert effect.state == EffectState.SUCCEEDED
    assert scene.run_of(effect).state == RunState.COMPLETED
    assert re.search(
        r"1 of 1 effect settled: notice by Oncall A on a person's word of",
        text(client.get(f"/effects/{effect.pk}/after/")),
    )
    assert re.search(
        r"Recorded at [\d:]+ by Oncall A, confirmed by Approver B: the notice happened\.",
        text(client.get(f"/effects/{effect.pk}/")),
    )
    again = client.get(_address(proposed))
    assert again.status_code == 409 and "Already recorded" in text(again) and "by you" in text(again)


def test_refused_the_outcome_stays_unknown(scene: Scene, proposed: Verdict) -> None:
    """The second person may say no; a reason is kept."""
    client = scene.client("c", htmx=True)
    page = text(_press(client, proposed, "refuse"))
    assert "The outcome stays unknown." in page
    proposed.refresh_from_db()
    assert proposed.state == VerdictState.REFUSED and proposed.effect.state == EffectState.UNKNOWN
    assert "It happened..." in text(scene.client("a").get(f"/effects/{proposed.effect_id}/"))


def test_the_first_person_can_only_take_it_back(scene: Scene, proposed: Verdict) -> None:
    """D3: no button confirms one's own decision; by hand it is 403 and kept."""
    client = scene.client("a", htmx=True)
    opened = client.get(_address(proposed))
    page = text(opened)
    assert "Who can confirm it Approver B and Approver C" in page
    assert page.endswith("Take it back: the outcome stays unknown Leave as it is")
    by_hand = press(client, opened, _address(proposed), decision="confirm", reason="x")
    assert by_hand.status_code == 403 and "you decided this" in text(by_hand)
    assert scene.refusals() == ["same_person"]
    assert "Taken back at" in text(_press(client, proposed, "refuse"))


def test_reason_and_step_up_are_asked(scene: Scene, proposed: Verdict) -> None:
    """Heavy, like the first decision."""
    client = scene.client("b", htmx=True)
    opened = client.get(_address(proposed))
    bare = press(client, opened, _address(proposed), decision="confirm", step_up=False)
    assert bare.status_code == 422 and "Say why" in text(bare)
    asked = press(client, opened, _address(proposed), decision="confirm", reason="x", step_up=False)
    assert asked.status_code == 403 and "Confirm it is you" in text(asked)
    proposed.refresh_from_db()
    assert proposed.state == VerdictState.PROPOSED


def test_pressed_twice_it_counts_once(scene: Scene, proposed: Verdict) -> None:
    """Invariant 15."""
    client = scene.client("b", htmx=True)
    opened = client.get(_address(proposed))
    for said in ("Recorded at", "Already recorded at"):
        page = text(press(client, opened, _address(proposed), decision="confirm", reason="x"))
        assert page.startswith(said)


def test_another_decision_than_the_one_shown_is_not_confirmed(scene: Scene, proposed: Verdict) -> None:
    """Bound by digest: the form of another decision is stale, the reason is kept, no password is asked."""
    client = scene.client("b", htmx=True)
    opened = client.get(_address(proposed))
    answer = press(
        client, opened, _address(proposed), decision="confirm", reason="my words", digest="0" * 64, step_up=False
    )
    assert answer.status_code == 409 and "my words" in text(answer) and "Confirm it is you" not in text(answer)


def test_the_page_makes_few_queries(scene: Scene, proposed: Verdict) -> None:
    """At most twenty, as every page."""
    client = scene.client("b")
    client.get(_address(proposed))
    with CaptureQueriesContext(connection) as seen:
        assert client.get(_address(proposed)).status_code == 200
    assert len(seen) <= 20, "\n".join(one["sql"][:150] for one in seen)


def test_an_auditor_is_told_who_can(scene: Scene, proposed: Verdict) -> None:
    """Seen, not allowed."""
    answer = scene.client("d").get(_address(proposed))
    assert answer.status_code == 403 and "Approver B and Approver C" in text(answer)
    assert "digest" not in fields_or_none(answer, proposed)


def fields_or_none(answer: Any, verdict: Verdict) -> dict[str, list[str]]:
    """The form's fields, or none where there is no form."""
    try:
        return fields(answer, _address(verdict))
    except AssertionError:
        return {}
