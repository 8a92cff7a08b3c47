"""Cancelling a run while its refund is on the way: it is settled first, and what happened stays."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.people import People
from tests.browser.world import World


def test_cancelled_with_an_effect_in_flight(world: World, people: People) -> None:
    """Walk (d) 1 to 3: asked for is not done; the answer settles the refund, then the run is cancelled."""
    charge = "ch_9INF"
    a = people("Oncall A", "/runs/")
    world.sandbox.dial("payments", reply="slow", delay=8, match=charge)
    run = world.cancel_order(charge, 6000, "USD", "payments")
    world.until_effect(run, "in_flight")
    a.open(f"/runs/{run}/")
    a.reads("payments's turn")
    a.reads("payments to answer: Refund USD 60.00 on charge ch_9INF")
    a.follow("Cancel run...")
    expect(
        a.page.get_by_role("heading", name=re.compile(r"^Cancel run orders\.cancel [0-9a-f]{4}-[0-9a-f]{4}$"))
    ).to_be_visible()
    a.stays()
    a.reads("Then Recourse finds out how 1 refund of USD 60.00 ended.")
    a.reads("The refund already sent cannot be stopped.")
    expect(a.link("Leave it running")).to_be_visible()
    a.press("Cancel the run; settle 1 refund first")
    a.sees("Not recorded. Say why: the reason is kept with the decision.")
    a.reason.fill("The customer kept the order after all.")
    a.press("Cancel the run; settle 1 refund first")
    a.focus_is_on("Asked at {t}. Not cancelled yet: 1 refund to settle. Event #{n}.")
    a.reads("Cancelling")
    a.judged()
    again = a.page.get_by_role("link", name="Cancel run...")
    expect(again).to_have_attribute("aria-disabled", "true")
    tab = a.page.context.new_page()
    tab.goto(f"{a.address}/runs/{run}/cancellation/")
    expect(
        tab.get_by_role("heading", name=re.compile(r"^Already asked at .+ by you\. Nothing was done twice\.$"))
    ).to_be_visible()
    tab.close()
    a.reads("Cancelled at {t}. Stays: 1 refund of USD 60.00.")
    a.stayed()
    a.judged()
    assert world.run(run)["state"] == "cancelled"
    assert len(world.applied("payments", charge)) == 1
