"""The inbox: what needs a person, who has it, and what changes without the list moving under a hand."""

from __future__ import annotations

import re
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from recovery.actions import verdicts
from runs import access
from runs.models import Event, Review, Workspace
from runs.states import EventKind
from tests.console.screens.scene import Scene
from tests.console.screens.seen import act, text

INBOX = "/w/acme-pay/inbox/"


def _review(scene: Scene, run: UUID) -> Review:
    return Review.objects.get(run_id=run, state="open")


def _notice(scene: Scene) -> Review:
    """An unknown notice that a person has to settle."""
    return _review(scene, scene.notice().run_id)


def _pressed(scene: Scene, letter: str, review: Review, what: str = "claim", **more: str):
    data = {"action": str(uuid4()), **more}
    return scene.client(letter, htmx=True).post(f"/reviews/{review.pk}/{what}/", data)


def test_an_empty_inbox_says_so_and_what_is_being_checked(scene: Scene) -> None:
    """ "Nothing needs you." is said only when nothing does; what Recourse checks is its own turn (D6)."""
    assert "Nothing needs you." in text(scene.client("a").get(INBOX))
    effect = scene.unknown()
    page = text(scene.client("a").get(INBOX))
    assert "Nothing needs you. 1 is being checked by Recourse; the next becomes yours at" in page
    checking = text(scene.client("a").get(INBOX + "?view=checking"))
    assert "Being checked 1 (Recourse's turn)" in checking and effect.describe in checking


def test_a_row_says_due_kind_stake_why_and_owner(scene: Scene) -> None:
    """Everything that is needed to choose, in reading order; the title leads to the subject."""
    effect = scene.unknown()
    scene.pass_time(minutes=11)
    response = scene.client("a").get(INBOX)
    row = re.search(r"Due in .*? Claim", text(response))[0]
    assert re.match(
        rf"Due in \d+ min due \d\d:\d\d State: Outcome unknown {effect.describe} "
        r"EUR 84\.00 out, cannot be reversed\. No answer from cards-eu since \d\d:\d\d:\d\d\. Unclaimed Claim",
        row,
    ), row
    assert f'href="/effects/{effect.pk}/"' in response.content.decode()
    assert "<title>(1) Inbox - Recourse</title>" in response.content.decode()


def test_what_is_due_first_comes_first(scene: Scene) -> None:
    """Among equals by due time; tests/runs/test_queries.py holds the whole order."""
    asked = scene.asked()
    notice = scene.notice()
    titles = re.findall(r'data-open href="([^"]+)"', scene.client("a").get(INBOX).content.decode())
    assert titles == [f"/effects/{notice.pk}/", f"/approvals/{asked.pk}/"]


def test_a_signer_reads_that_they_can_sign(scene: Scene) -> None:
    """The hint is for the reader; the signing itself decides."""
    scene.asked()
    assert "0 of 2 signed. You can sign." in text(scene.client("b").get(INBOX))
    assert "You can sign." not in text(scene.client("a").get(INBOX))


def test_the_shown_order_of_who_and_filters_is_in_the_address(scene: Scene) -> None:
    """Mine, unclaimed, everyone; kind and dependency; a filtered empty list says what it leaves out."""
    review = _notice(scene)
    scene.asked()
    a = scene.client("a")
    assert "Nothing matches Mine. 2 without it." in text(a.get(INBOX + "?view=mine"))
    _pressed(scene, "a", review)
    assert "Mine 1" in text(a.get(INBOX + "?view=mine"))
    assert text(a.get(INBOX + "?kind=signatures_needed")).count("due ") == 1
    empty = text(a.get(INBOX + "?view=mine&kind=signatures_needed&dependency=mail"))
    assert "Nothing matches Mine, Signatures needed, mail. 2 without it. Clear filter" in empty


# Claim and release


def test_claim_and_release_in_place(scene: Scene) -> None:
    """A claim is a notice: "Yours since"; then a Release; others see who has it, and may act."""
    review = _notice(scene)
    said = text(_pressed(scene, "a", review))
    assert re.fullmatch(r"Yours since \d\d:\d\d:\d\d\. Release", said)
    assert Review.objects.get(pk=review.pk).claimed_by == scene.people["a"]
    assert re.search(r"Oncall A has had this since \d\d:\d\d:\d\d", text(scene.client("b").get(INBOX)))
    assert text(_pressed(scene, "a", review, "release")) == "Given back. Unclaimed Claim"


def test_the_same_press_twice_counts_once(scene: Scene) -> None:
    """Invariant 15: one action id, one event."""
    review, action = _notice(scene), str(uuid4())
    for _again in range(2):
        assert scene.client("a", htmx=True).post(f"/reviews/{review.pk}/claim/", {"action": action}).status_code == 200
    assert Event.objects.filter(run=review.run, kind=EventKind.REVIEW_CLAIMED).count() == 1


def test_taking_over_is_done_knowingly(scene: Scene) -> None:
    """409 with who has it and since when; the second press says that it takes over."""
    access.grant(scene.people["b"], scene.here, ["on-call"])
    review = _notice(scene)
    _pressed(scene, "b", review)
    refused = _pressed(scene, "a", review)
    assert refused.status_code == 409
    assert re.search(r"Approver B claimed this at \d\d:\d\d:\d\d\. Take it over\? Take it over", text(refused))
    assert "Yours since" in text(_pressed(scene, "a", review, take_over="true"))


def test_without_javascript_a_claim_leads_back_to_the_page(scene: Scene) -> None:
    """Post, redirect, get; another host is never followed."""
    review, a = _notice(scene), scene.client("a")
    back = {"action": str(uuid4()), "next": f"/effects/{review.effect_id}/"}
    assert a.post(f"/reviews/{review.pk}/claim/", back)["Location"] == f"/effects/{review.effect_id}/"
    away = {"action": str(uuid4()), "next": "https://evil.example/"}
    assert a.post(f"/reviews/{review.pk}/release/", away)["Location"] == INBOX


def test_who_may_not_claim_sees_who_can_and_no_button(scene: Scene) -> None:
    """The control is absent, the line stands in its place; a POST by hand is refused and kept."""
    review = _notice(scene)
    page = text(scene.client("d").get(INBOX))
    assert "You can see this but not claim it. On-call can: Oncall A." in page and "Unclaimed Claim" not in page
    refused = _pressed(scene, "d", review)
    assert refused.status_code == 403
    assert "You can see this but not claim it. On-call can: Oncall A." in text(refused)
    assert scene.refusals() == ["not_allowed"]


@pytest.mark.parametrize("path", ["/inbox/{}/", "/reviews/{}/row/"])
def test_foreign_and_missing_are_the_same(scene: Scene, path: str) -> None:
    """Invariant 14."""
    review = _notice(scene)
    for id in (review.pk, uuid4()):
        answer = scene.client("e").get(path.format(id))
        assert answer.status_code == 404 and "Nothing here that you can see." in answer.content.decode()
    assert scene.client("e").get(INBOX).status_code == 404
    assert _pressed(scene, "e", review).status_code == 404


# Live


def _news(scene: Scene, page: str) -> str:
    """The address that the page listens at."""
    return re.search(r'hx-get="(/w/acme-pay/inbox/news/[^"]*)"', page)[1].replace("&amp;", "&")


def test_arrivals_changes_and_departures_collect_in_a_bar(scene: Scene) -> None:
    """ "2 new, 1 changed, 1 gone": counted against what the page shows, which stays as it is."""
    first, second = _notice(scene), _notice(scene)
    a = scene.client("a", htmx=True)
    address = _news(scene, scene.client("a").get(INBOX).content.decode())
    assert text(a.get(address)).startswith("Mine 0")
    _notice(scene)
    _notice(scene)
    access.grant(scene.people["b"], scene.here, ["on-call"])
    _pressed(scene, "b", first)
    Review.objects.filter(pk=second.pk).update(state="closed", closed_at=second.opened_at)
    heard = a.get(address)
    assert text(heard).startswith("2 new, 1 changed, 1 gone - show Mine 0 Unclaimed 2 Everyone 3")
    assert "<title>(3) Inbox - Recourse</title>" in heard.content.decode()
    assert "Inbox: 2 new, 3 need a person." in heard["HX-Trigger"]
    assert text(a.get(INBOX + "count/")).startswith("3")


def test_a_departed_row_stays_greyed_with_its_new_state(scene: Scene) -> None:
    """The row refetches itself; the list never does."""
    effect = scene.unknown()
    scene.pass_time(minutes=11)
    review = _review(scene, effect.run_id)
    scene.sandbox.reset("cards-eu")
    verdicts.record(
        effect.pk, actor=scene.people["a"], act=act(), says="did_not_happen", reason="asked the bank",
        evidence=[], version=type(effect).objects.get(pk=effect.pk).version, statement="the bank says no",
    )  # fmt: skip
    verdict = type(effect).objects.get(pk=effect.pk).verdicts.get()
    access.grant(scene.people["b"], scene.here, ["on-call", "approver"])
    verdicts.confirm(
        verdict.pk, actor=scene.people["b"], act=act(), confirm=True, reason="heard it too", digest=verdict.digest
    )
    row = scene.client("a", htmx=True).get(f"/reviews/{review.pk}/row/")
    assert "row-gone" in row.content.decode()
    assert re.match(r"Gone \d\d:\d\d:\d\d State: Did not happen Refund", text(row))
    assert "Claim" not in text(row)


def test_the_page_costs_the_same_however_much_it_shows(scene: Scene) -> None:
    """No query a row."""
    _notice(scene)
    counts = []
    for _more in range(2):
        client = scene.client("b")
        with CaptureQueriesContext(connection) as seen:
            assert client.get(INBOX).status_code == 200
        counts.append(len(seen))
        for _row in range(5):
            _notice(scene)
        scene.asked()
        scene.asked()
    assert counts[1] - counts[0] <= 3 and counts[1] <= 20, counts  # signatures, groups and the right to sign


# Addresses without a workspace


def test_addresses_without_a_workspace_lead_to_the_last_used_one(scene: Scene) -> None:
    """The query is kept; a workspace one sees no more is not led to."""
    other = Workspace.objects.get(slug="other-pay")
    access.grant(scene.people["a"], other, ["on-call"])
    a = scene.client("a")
    assert a.get("/")["Location"] == INBOX
    assert a.get("/w/other-pay/runs/").status_code == 200
    assert a.get("/inbox/?view=mine")["Location"] == "/w/other-pay/inbox/?view=mine"
    assert a.get("/runs/")["Location"] == "/w/other-pay/runs/"
    access.grant(scene.people["a"], other, [])
    assert a.get("/")["Location"] == INBOX
    access.grant(scene.people["a"], scene.here, [])
    nowhere = a.get("/")
    assert nowhere.status_code == 403 and "You are signed in and belong to no workspace." in text(nowhere)


def test_an_item_leads_to_its_subject(scene: Scene) -> None:
    """The address that a page at night carries."""
    approval, notice = scene.asked(), scene.notice()
    a = scene.client("a")
    item = _review(scene, approval.run_id)
    assert a.get(f"/inbox/{item.pk}/")["Location"] == f"/approvals/{approval.pk}/"
    item = _review(scene, notice.run_id)
    assert a.get(f"/inbox/{item.pk}/")["Location"] == f"/effects/{notice.pk}/"


@pytest.mark.parametrize(
    "query",
    ["?dependency=%00", "?view=mine&dependency=a%00b", "news/?as_of=2026-12-01", "news/?as_of=2026-12-01T10:00:00"],
)
def test_an_address_that_makes_no_sense_is_read_as_if_it_were_not_there(scene: Scene, query: str) -> None:
    """PostgreSQL takes no NUL, and a time without offset compares with nothing."""
    scene.notice()
    assert scene.client("a").get(INBOX + query).status_code == 200
