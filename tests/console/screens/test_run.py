"""A run's page: why it stands still, what ends that, who can, what happens next; its history as it is."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from demo.contracts import CancelOrder
from recovery.actions import effects, verdicts
from runs.models import Checkpoint, Effect, Run
from tests.console.screens.scene import Scene
from tests.console.screens.seen import act, text

ORDER = {
    "order": "A-1",
    "charge": "ch_1",
    "amount": 100,
    "currency": "EUR",
    "email": "c@example.com",
    "provider": "payments",
}


def _page(scene: Scene, run: UUID, letter: str = "a", query: str = "") -> str:
    response = scene.client(letter).get(f"/runs/{run}/{query}")
    assert response.status_code == 200
    return text(response)


def _settled(scene: Scene) -> Effect:
    """A refund that was answered; the e-mail after it too."""
    return scene.refund(1990, "EUR", "payments")


def test_an_unknown_outcome_in_one_look(scene: Scene) -> None:
    """Pill, whose turn, the four lines of the gate, the next step, the way to settle it."""
    effect = scene.unknown()
    scene.pass_time(minutes=11)
    page = _page(scene, effect.run_id)
    assert re.search(r"State: Waiting: outcome unknown Needs a person for \d+ s Waiting for proof whether", page)
    assert re.search(
        r"Ends when .*? Who can you If nobody acts Nothing is sent again\. .*? The run expires .*?\. "
        r"Next legal step: Tell the customer, once the refund is settled\. "
        r"Settle the unknown refund Cancel run\.\.\. Look again now",
        page,
    ), page
    assert (
        f"Goal {scene.run_of(effect).goal}" in page
        or "Authority svc-orders for a customer, started by Oncall A" in page
    )
    assert re.search(r"Checkpoint #\d+ \d\d:\d\d:\d\d, verified", page)


def test_recourses_own_turn_needs_nobody(scene: Scene) -> None:
    """Before the limit it is Recourse that checks (D6)."""
    page = _page(scene, scene.unknown().run_id)
    assert "Recourse's turn" in page and "Who can Nobody needs to; Recourse does it." in page


def test_signatures_name_who_can_sign_and_how_many_are_left(scene: Scene) -> None:
    """The requester is not among them (R4)."""
    page = _page(scene, scene.asked().run_id)
    assert "State: Waiting: 2 signatures Needs a person" in page
    assert "Who can Approver B, Approver C in payments-approvers" in page
    assert "Who can you, Approver C in payments-approvers" in _page(scene, scene.asked().run_id, "b")
    assert "See the refund to sign" in page


def test_a_completed_run_says_on_what_each_effect_rests(scene: Scene) -> None:
    """Invariant 7; an ended run has no action."""
    page = _page(scene, _settled(scene).run_id)
    assert re.search(
        r"State: Completed Completed at \d\d:\d\d:\d\d\. 2 of 2 effects settled: refund by its receipt, "
        r"e-mail by its receipt\. Ended \d\d:\d\d:\d\d\. An ended run stays ended\.",
        page,
    ), page
    assert "Cancel run" not in page and "Look again" not in page and "Waiting for" not in page


def test_a_decision_is_named_with_what_it_rests_on(scene: Scene) -> None:
    """ "refund by Oncall A on the readback of ..." """
    effect = scene.unknown()
    scene.pass_time(minutes=11)
    scene.sandbox.reset("cards-eu")
    effects.check(effect.pk, actor=scene.people["a"], act=act())
    effect = Effect.objects.get(pk=effect.pk)
    evidence = effect.evidence.filter(strength="agrees").values_list("pk", flat=True)
    verdicts.record(
        effect.pk, actor=scene.people["a"], act=act(), says="happened", reason="seen", evidence=list(evidence),
        version=effect.version,
    )  # fmt: skip
    scene.drain()
    page = _page(scene, effect.run_id)
    assert re.search(
        r"2 of 2 effects settled: refund by Oncall A on the readback of \d\d:\d\d:\d\d, e-mail by its receipt\.", page
    ), page
    assert "Decided: it happened Oncall A seen" in page


def test_a_broken_step_leaves_its_traceback_as_evidence(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quarantined: what broke stands on the page, and a person can only cancel it for now."""

    def broken(self: Any, run: Any) -> None:
        raise KeyError("<b>no such charge</b>")

    monkeypatch.setattr(CancelOrder, "begin", broken)
    run = scene.start("orders.cancel", ORDER)
    response = scene.client("a").get(f"/runs/{run}/")
    page = text(response)
    assert "State: Quarantined Needs a person" in page
    assert (
        "Waiting for a person to look at what stopped it: the step begin broke Ends when a person cancels the run"
        in page
    )
    assert "What the step left behind Traceback (most recent call last)" in page and "<b>no such charge" in page
    assert b"<b>no such charge" not in response.content
    assert "Look again now" not in page and "Unclaimed Claim" in page
    assert "The step begin broke." in text(scene.client("a").get("/w/acme-pay/inbox/"))


# Timeline


def test_the_timeline_nests_folds_and_says_silence(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries under their effect, the same again folded, and what was not heard as a row."""
    monkeypatch.setattr("console.screens.timeline.SILENCE", timedelta(hours=2))
    effect = scene.unknown()
    for _check in range(3):
        scene.pass_time(minutes=3)
    page = _page(scene, effect.run_id)
    assert re.search(
        rf"Accepted: orders\.cancel v1, for svc-orders for a customer Oncall A {effect.describe} cards-eu "
        r"\d\d:\d\d:\d\d Try 1: sent \d\d:\d\d:\d\d Try 1: the connection closed without an answer "
        r"State: Outcome unknown",
        page,
    ), page
    assert re.search(r"Checked with cards-eu: no answer the same \d more times", page), page
    scene.pass_time(hours=3)
    assert "3 h: nothing heard" in _page(scene, effect.run_id)


def test_long_histories_come_in_pages(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier and later by key, jumps to the first unknown and the last decision."""
    monkeypatch.setattr("console.screens.run.PER_PAGE", 4)
    effect = scene.unknown()
    for _check in range(4):
        scene.pass_time(minutes=3)
    client = scene.client("a")
    body = client.get(f"/runs/{effect.run_id}/").content.decode()
    assert "Accepted:" not in text(client.get(f"/runs/{effect.run_id}/"))
    earlier = re.search(r'href="(/runs/[^"]*before=\d+)#parts"', body)[1]
    assert "Later events" in text(client.get(earlier))
    jump = re.search(r'href="(/runs/[^"]*\?after=\d+)#event-\d+">First unknown', body)[1]
    assert "the connection closed" in text(client.get(jump))


# Tabs


def test_the_tabs_show_effects_checkpoints_and_history(scene: Scene) -> None:
    """Counts on the tabs; only those that exist now."""
    effect = _settled(scene)
    run = scene.run_of(effect)
    page = _page(scene, run.pk)
    assert f"Timeline Effects 2 Checkpoints {run.checkpoint_seq} History {run.head_seq}" in page
    shown = _page(scene, run.pk, query="?tab=effects")
    assert re.search(
        rf"{effect.describe} payments\.refund, payments State: Happened \S+ EUR 19\.90 out {effect.sent_key}", shown
    )
    history = _page(scene, run.pk, query="?tab=history")
    assert re.search(
        r"#1 \S+ \S+ run\.accepted Oncall A on behalf of svc-orders for a customer run: - → to Accepted", history
    )
    assert "run: Running → to Completed" in history


def test_checkpoints_are_verified_as_they_are_read(scene: Scene) -> None:
    """A damaged copy is named, not hidden."""
    effect = _settled(scene)
    assert "damaged" not in _page(scene, effect.run_id, query="?tab=checkpoints")
    first = Checkpoint.objects.filter(run=effect.run_id).order_by("seq")[0]
    Checkpoint.objects.filter(pk=first.pk).update(sealed=bytes(first.sealed)[:-1] + b"x")
    page = _page(scene, effect.run_id, query="?tab=checkpoints")
    assert page.count("damaged: the bytes do not match") == 1
    assert re.search(r"#1 \S+ when the run was accepted \d+\W+bytes damaged", page), page


def test_a_checkpoint_in_the_archive_is_not_called_damaged(scene: Scene) -> None:
    effect = _settled(scene)
    Checkpoint.objects.filter(run=effect.run_id).update(sealed=None, address="w/r/1-d")
    page = _page(scene, effect.run_id, query="?tab=checkpoints")
    assert "in the archive, verified when it is read" in page and "damaged" not in page
    assert re.search(r"Checkpoint #\d+ \d\d:\d\d:\d\d, in the archive", page)


def test_the_chain_is_verified_on_request(scene: Scene) -> None:
    """Reads only; a changed line is named with what is still good."""
    effect = _settled(scene)
    run, htmx = scene.run_of(effect), scene.client("a", htmx=True)
    said = text(htmx.get(f"/runs/{run.pk}/chain/"))
    assert said == f"{run.head_seq} events, no gaps. Each matches its hash and names the one before."
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE runs_event DISABLE TRIGGER USER")
        cursor.execute(
            "UPDATE runs_event SET text = replace(text, 'svc-orders', 'svc-others') WHERE run_id = %s AND seq = 1",
            [run.pk],
        )
        cursor.execute("ALTER TABLE runs_event ENABLE TRIGGER USER")
    bad = text(htmx.get(f"/runs/{run.pk}/chain/"))
    assert (
        bad.startswith("The chain does not hold: #1 does not match its hash.")
        and "Nothing after it can be relied on." in bad
    )


# Look again


def test_look_again_is_asked_and_not_yet_done(scene: Scene) -> None:
    """Light: no preview, no reason; asked twice with one id it counts once; the next press has a new id."""
    effect = scene.unknown()
    action, htmx = str(uuid4()), scene.client("a", htmx=True)
    first = htmx.post(f"/runs/{effect.run_id}/look/", {"action": action})
    said = text(first)
    assert re.match(r"Asked at \d\d:\d\d:\d\d\. Not looked at yet: a worker takes it now\. Event #(\d+)\.", said)
    assert action not in first.content.decode() and 'hx-target="#look"' in first.content.decode()
    again = text(htmx.post(f"/runs/{effect.run_id}/look/", {"action": action}))
    assert again.split(" Look")[0] == said.split(" Look")[0]
    plain = scene.client("a").post(f"/runs/{effect.run_id}/look/", {"action": str(uuid4())})
    assert "Asked at" in text(plain) and f'href="/runs/{effect.run_id}/"' in plain.content.decode()


def test_look_again_is_refused_where_it_cannot_be(scene: Scene) -> None:
    """Ended: 409 in place. Seen but not allowed: 403 with who can. Foreign: 404."""
    ended, open_ = _settled(scene).run_id, scene.unknown().run_id

    def press(letter: str, run: UUID) -> Any:
        return scene.client(letter, htmx=True).post(f"/runs/{run}/look/", {"action": str(uuid4())})

    late = press("a", ended)
    assert late.status_code == 409
    assert re.match(r"Nothing was done\. The run ended at \d\d:\d\d:\d\d; an ended run stays ended\.", text(late))
    foreign, absent = press("d", open_), press("e", open_)
    assert foreign.status_code == 403 and "On-call can: Oncall A." in text(foreign)
    assert absent.status_code == 404


# Who sees what


def test_a_reader_without_the_right_sees_the_line_and_no_control(scene: Scene) -> None:
    """Absent, not disabled."""
    page = _page(scene, scene.unknown().run_id, "d")
    assert "You can see this but not cancel it. On-call can: Oncall A." in page
    assert "Cancel run" not in page and "Look again" not in page


@pytest.mark.parametrize("path", ["", "parts/", "newer/", "changed/", "chain/", "cancellation/", "?tab=history"])
def test_foreign_and_missing_are_the_same(scene: Scene, path: str) -> None:
    """Invariant 14."""
    run = scene.notice().run_id
    answers = [scene.client("e").get(f"/runs/{id}/{path}") for id in (run, uuid4())]
    assert [a.status_code for a in answers] == [404, 404]
    strip = [re.sub(rb"[0-9a-f]{12}", b"", a.content) for a in answers]
    assert strip[0] == strip[1]


# Live


def test_what_may_change_in_place_is_told_by_part(scene: Scene) -> None:
    """Pill, gate, facts and counts morph; the state is announced once it differs; no form is touched."""
    effect = scene.unknown()
    htmx = scene.client("a", htmx=True)
    same = htmx.get(f"/runs/{effect.run_id}/parts/", {"tab": "timeline", "seen": "waiting unknown", "last": 999})
    assert "HX-Trigger" not in same and "<form" not in same.content.decode()
    assert re.findall(r'hx-target="(#[\w-]+)"', same.content.decode()) == [
        "#seen", "#run-head", "#run-gate", "#run-acts", "#run-facts", "#run-tabs", "#newer",
    ]  # fmt: skip
    other = htmx.get(f"/runs/{effect.run_id}/parts/", {"tab": "effects", "seen": "running ", "last": 2})
    assert "Run state: waiting: outcome unknown. Waiting for 1 effect." in other["HX-Trigger"]
    assert 'hx-target="#run-effects"' in other.content.decode()


def test_newer_events_wait_until_they_are_asked_for(scene: Scene) -> None:
    """ "3 newer events - show"; the rows come after those that the page has."""
    effect = scene.unknown()
    last = scene.run_of(effect).head_seq
    scene.pass_time(minutes=3)
    n = scene.run_of(effect).head_seq - last
    htmx = scene.client("a", htmx=True)
    parts = htmx.get(f"/runs/{effect.run_id}/parts/", {"tab": "timeline", "seen": "waiting unknown", "last": last})
    assert f"{n} newer event" in text(parts)
    rows = htmx.get(f"/runs/{effect.run_id}/newer/", {"last": last})
    assert "Checked with cards-eu: no answer" in text(rows) and "Accepted" not in text(rows)
    assert f'name="last" value="{last + n}"' in rows.content.decode()


@pytest.mark.parametrize("tab", ["timeline", "effects", "checkpoints", "history"])
def test_the_page_costs_the_same_however_much_it_holds(scene: Scene, tab: str) -> None:
    """At most 20 queries a page, none a row."""
    few, many = scene.asked().run_id, _settled(scene).run_id
    unknown = scene.unknown().run_id
    for _check in range(3):
        scene.pass_time(minutes=4)
    for run in (few, many, unknown):
        for letter in "abd":
            client = scene.client(letter)
            client.get("/w/acme-pay/runs/")  # the session remembers the workspace once
            with CaptureQueriesContext(connection) as seen:
                assert client.get(f"/runs/{run}/?tab={tab}").status_code == 200
            assert len(seen) <= 20, (letter, len(seen), [q["sql"][:120] for q in seen])
    assert Run.objects.count() == 3


def test_a_run_that_waits_for_a_computation_says_so(scene: Scene) -> None:
    """It has no effect in flight, and still says what it waits for and what ends that."""
    effect = scene.unknown()
    Effect.objects.filter(pk=effect.pk).update(state="cancelled", settled_at=effect.requested_at)
    Run.objects.filter(pk=effect.run_id).update(waiting_on="in_flight", gate=[])
    page = _page(scene, effect.run_id)
    assert "the answer of a computation" in page and "Ends when it is recorded" in page
