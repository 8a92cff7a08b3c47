"""The console is an unreliable border too: an answer that does not come, live updates and a record that are away."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from console.stack import control
from tests.browser.people import People
from tests.browser.world import World, until

NO_ANSWER = "No answer yet. We do not know whether this was recorded."
SAFE = "Pressing again is safe: it counts once."
AWAY = "Recourse cannot reach its record. Nothing can be saved."
NOT_SAVED = "Not saved. Recourse cannot reach its record. What you typed is kept on this page."


@pytest.fixture
def notice(world: World) -> str:
    """A run whose notice nobody knows about, so that a person is asked."""
    world.sandbox.dial("notices", reply="drop", times=1)
    run = world.start("notices.send", {"to": "losses", "text": "Closed today"})
    world.until_asked(run)
    return run


def test_a_lost_answer_says_so_and_counts_once(world: World, people: People) -> None:
    """Section 0, lost reply, invariant 15: recorded but not heard; asked for; pressed again, and counted once."""
    run = world.cancel_order("ch_6LOST", 230_000, "EUR", "payments")
    world.approval(run)
    a = people("Oncall A")
    a.page.clock.install()
    a.enter(f"/runs/{run}/")
    a.follow("Cancel run...")
    a.reason.fill("The customer kept the order.")
    held: list[Route] = []

    def swallow(route: Route) -> None:
        if held:
            route.continue_()
            return
        route.fetch()  # the server records it; its answer never arrives
        held.append(route)

    a.page.route("**/cancellation/", swallow)
    a.stays()
    a.press("Cancel the run")
    until(lambda: (a.page.wait_for_timeout(50), held)[1], "the request was sent")
    a.sees_not(NO_ANSWER)
    a.page.clock.fast_forward(10_000)
    a.sees(NO_ANSWER)
    a.reads(SAFE)
    expect(a.reason).to_have_value("The customer kept the order.")
    a.judged()
    tab = a.page.context.new_page()
    tab.goto(f"{a.address}{a.link('Check').get_attribute('href')}")
    expect(tab.get_by_role("heading", name="It was recorded")).to_be_visible()
    expect(tab.get_by_role("main")).to_contain_text("the run was asked to be cancelled.")
    tab.close()
    # Pressing again gives up the first answer and sends the same action, which is recorded already.
    a.press("Cancel the run")
    a.focus_is_on("Already asked at {t} by you. Nothing was done twice.")
    a.sees_not(NO_ANSWER)
    a.stayed()
    for route in held:
        route.abort()
    events = world.api.get(f"runs/{run}/events").json()["items"]
    assert [one["kind"] for one in events].count("run.cancel_asked") == 1
    world.until_run(run, "cancelled")


def test_a_broken_connection_says_so_at_once(world: World, people: People, notice: str) -> None:
    """Section 0, lost reply: it never arrived; "Check" says so, and pressing again does it."""
    a = people("Oncall A", "/inbox/")
    a.page.route("**/reviews/*/claim/", lambda route: route.abort())
    a.press("Claim")
    a.sees(NO_ANSWER)
    a.page.unroute("**/reviews/*/claim/")
    a.follow("Check")
    expect(a.heading("Not recorded")).to_be_visible()
    a.sees("Nothing of yours is recorded under this id so far. Go back and press again: it counts once.")
    a.page.go_back()
    a.press("Claim")
    a.reads("Yours since {t}.")


def test_without_live_updates_pages_ask(world: World, people: People, notice: str) -> None:
    """Section 0, channel down: the status line says so, acts go on, pages ask every 15 s, then it is live again."""
    a, b = people("Oncall A", "/inbox/"), people("Approver B", "/inbox/")
    state = b.page.get_by_label("State of this page")
    for one in (a, b):
        expect(one.page.get_by_label("State of this page")).to_contain_text("Live")
        one.stays()
    with control.held(world.stack.data, "valkey"):
        stopped = re.compile(r"Live updates stopped at \d\d:\d\d:\d\d\. Checking every 15 s\.")
        expect(state).to_contain_text(stopped, timeout=25_000)
        b.judged()
        a.press("Claim")
        a.reads("Yours since {t}.")
        row = b.item("Post a notice to losses")
        expect(row).to_contain_text("Oncall A has had this since", timeout=25_000)
    expect(state).to_contain_text(re.compile(r"^\s*Live\s+as of"), timeout=30_000)
    b.stayed()
    a.press("Release")
    expect(row).to_contain_text("Unclaimed")
    a.stayed()
    b.stayed()


def test_what_was_typed_stays_while_the_record_is_away(world: World, people: People, notice: str) -> None:
    """Section 0, record away: 503, nothing is saved, the typed reason is kept, and pressing again works."""
    a = people("Oncall A", f"/runs/{notice}/")
    a.follow("Cancel run...")
    a.reason.fill("The notice is no longer wanted.")
    cancel = a.page.get_by_role("button", name=re.compile("^Cancel the run"))
    a.stays()
    with control.held(world.stack.data, "postgres"):
        answer = a.answer_to(cancel.click, "/cancellation/")
        assert answer.status == 503
        a.sees(NOT_SAVED)
        expect(a.reason).to_have_value("The notice is no longer wanted.")
        expect(a.page.get_by_label("State of this page")).to_contain_text(AWAY)
        a.judged()
        tab = a.page.context.new_page()
        gone = tab.goto(f"{a.address}/runs/{notice}/")
        assert gone is not None and gone.status == 503
        expect(tab.get_by_role("heading", name="Recourse cannot reach its record.")).to_be_visible()
        tab.close()
    until(lambda: a.page.request.get(f"{a.address}/healthz").ok, "everything is up again")
    cancel.click()
    a.reads("Asked at {t}. Not cancelled yet: 1 notice to settle. Event #{n}.")
    a.stayed()
