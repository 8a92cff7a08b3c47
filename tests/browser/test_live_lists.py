"""Lists while they are read: a row changes in place, the list never moves by itself. And the clocks on them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from playwright.sync_api import expect

from console import when
from tests.browser.people import People
from tests.browser.world import World


def test_what_comes_and_goes_is_said_and_moves_nothing(world: World, people: People) -> None:
    """Section 0, live updates: arrivals and departures are a bar; a departed row stays, with its new state."""
    a = people("Oncall A", "/inbox/")
    a.sees("Nothing needs you.")
    a.stays()
    world.sandbox.dial("notices", reply="drop", times=1)
    run = world.start("notices.send", {"to": "live", "text": "Closed today"})
    world.until_asked(run)
    show = a.link("1 new - show")
    expect(show).to_be_visible()
    a.sees("Nothing needs you.")
    expect(a.page).to_have_title("(1) Inbox - Recourse")
    expect(a.page.get_by_role("status")).to_have_text("Inbox: 1 new, 1 needs a person.")
    a.stayed()
    a.judged()
    show.click()
    row = a.item("Post a notice to live")
    expect(row).to_contain_text("Unclaimed")
    a.stays()
    world.leave_nothing()
    expect(row).to_contain_text("Gone")
    expect(row).to_contain_text("Happened")
    expect(a.link("1 gone - show")).to_be_visible()
    a.stayed()
    a.judged()


def test_runs_arrive_in_the_bar_and_change_in_their_rows(world: World, people: People) -> None:
    """Section 0, live updates: a row of the list of runs follows its run; newer runs wait to be shown."""
    world.sandbox.dial("payments", reply="slow", delay=3, match="ch_5ROW")
    run = world.cancel_order("ch_5ROW", 700, "EUR", "payments")
    world.until_effect(run, "in_flight")
    d = people("Auditor D", "/w/acme-pay/runs/")
    row = d.page.get_by_role("row").filter(has=d.link("Cancel order A-5ROW"))
    expect(row).to_contain_text("Running")
    d.stays()
    expect(row).to_contain_text("Completed")
    world.until_run(world.cancel_order("ch_5NEW", 700, "EUR", "payments"), "completed")
    expect(d.link("1 new - show")).to_be_visible()
    expect(d.link("Cancel order A-5NEW")).to_have_count(0)
    d.stayed()
    d.judged()


def test_clocks_on_the_page_speak_as_the_server_does(people: People) -> None:
    """console/when.py and static/js/clocks.js write the same span and phrase for the same time."""
    e = people("Outsider E", "/inbox/")
    lengths = (0, 1, 59, 60, 61, 119, 120, 3599, 3600, 3660, 7199, 86_399, 86_400, 172_799, 172_800, 180_000, 900_000)
    for seconds in lengths:
        assert e.page.evaluate("n => recourse.span(n)", seconds) == when.span(seconds)
        for kind in when.KINDS:
            for ahead in (seconds, -seconds):
                now = datetime.now(UTC)
                said = when.phrase(kind, now + timedelta(seconds=ahead), now)
                assert e.page.evaluate("([k, n]) => recourse.phrase(k, n)", [kind, ahead]) == said
