"""A refund whose answer was lost: a tired person finds out, decides on evidence, and the run goes on."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Literal

import pytest
from playwright.sync_api import Request, expect

from tests.browser.people import People, Somebody
from tests.browser.world import World

RECORD = "Record: the refund happened"
ALREADY = "Already recorded at {t} by you. Nothing was done twice."


@pytest.mark.parametrize(
    ("charge", "width", "height", "theme"),
    [("ch_3QK9", 1280, 800, "light"), ("ch_3QKA", 360, 740, "dark")],
    ids=["desk", "phone"],
)
def test_paged_at_night(
    world: World, people: People, charge: str, width: int, height: int, theme: Literal["light", "dark"]
) -> None:
    """Done-when 2, walk (a): cards-eu knows no keys and gives no reference; its readback is down, then up."""
    world.sandbox.dial("cards-eu", reply="drop", times=1, match=charge, readback="down")
    with world.ago(timedelta(minutes=31)):
        run = world.cancel_order(charge, 8400, "EUR", "cards-eu")
        world.until_effect(run, "unknown")
    effect = world.until_asked(run)
    a = people("Oncall A", width=width, height=height, theme=theme)

    _comes_in_by_the_page(world, a, effect["id"])
    title = f"Refund EUR 84.00 on charge {charge}"
    _finds_it_in_the_inbox(a, title)
    _reads_the_three_columns(a, title, charge)
    _checks(world, a, charge)
    world.sandbox.dial("mail", reply="slow", delay=2, times=1)
    sent = _decides(a)

    # Nothing is left to do, and doing it again does nothing.
    a.follow("Back to inbox")
    a.sees("Nothing needs you.")
    a.judged()
    a.page.go_back()
    if width >= 900:  # there the decision stood beside the effect; a phone went to a page of its own
        a.sees("Recorded at {t} by Oncall A: the refund happened.")
        a.open(f"/effects/{effect['id']}/verdict/?says=happened")
    expect(a.heading(ALREADY)).to_be_visible()
    a.judged()
    again = a.page.request.post(sent.url, data=sent.post_data, headers=_as_sent(sent))
    assert again.ok and re.search(r"Already recorded at .{5,30} by you\. Nothing was done twice\.", again.text())
    assert world.applied("cards-eu", charge) == [{"amount": 8400, "charge": charge, "currency": "EUR"}]


def _comes_in_by_the_page(world: World, a: Somebody, effect: str) -> None:
    """The address that a page to the phone carries says nothing, and leads there after signing in."""
    a.open(f"/inbox/{world.review_of(effect)}/")
    expect(a.heading("Sign in")).to_be_visible()
    a.sees("You will go on to the page you opened.")
    a.judged()
    a.sign_in()
    expect(a.page).to_have_url(re.compile(f"/effects/{effect}/$"))


def _finds_it_in_the_inbox(a: Somebody, title: str) -> None:
    a.page.get_by_role("navigation").get_by_role("link", name=re.compile("^Inbox")).filter(visible=True).click()
    expect(a.page).to_have_title("(1) Inbox - Recourse")
    row = a.item(title)
    expect(row).to_contain_text("EUR 84.00 out, cannot be reversed.")
    expect(row).to_contain_text(re.compile(r"No answer from cards-eu since .*\d\d:\d\d:\d\d\."))
    expect(row).to_contain_text(re.compile(r"(Due in|Late by) \d+"))
    expect(row).to_contain_text("Outcome unknown")
    expect(row).to_contain_text("Unclaimed")
    a.judged()
    a.page.get_by_role("link", name=re.compile(re.escape(title))).click()


def _reads_the_three_columns(a: Somebody, title: str, charge: str) -> None:
    expect(a.heading(f"{title}: nobody knows whether it happened", level=1)).to_be_visible()
    a.reads("Outcome unknown Needs a person for 3{n} min")
    a.reads("If nobody acts Nothing is sent again. Recourse checks at {t}. The run expires {t}.")
    assert a.page.get_by_role("button", name=re.compile("retry", re.I)).count() == 0
    meant, sent, says = (
        a.region("What we meant"),
        a.region("What we sent and heard"),
        a.region("What cards-eu says now"),
    )
    expect(meant).to_contain_text("cards.refund, EUR 84.00 out")
    expect(meant).to_contain_text(f"key refund:{charge}")
    expect(sent).to_contain_text(re.compile(r"sent .*\d\d:\d\d:\d\d, try 1 of 1, \d+ bytes"))
    expect(sent).to_contain_text("heard nothing")
    expect(says).to_contain_text(re.compile(r"\d+ checks?, no answer, last .*\d\d:\d\d:\d\d"))
    expect(says).to_contain_text("Promise v1: no keys, lag 30 s, ends 31 Dec 2035")
    a.judged()
    a.stays()
    a.press("Claim")
    a.reads("Yours since {t}.")
    expect(a.button("Release")).to_be_visible()


def _checks(world: World, a: Somebody, charge: str) -> None:
    """Down first: nothing changes and it is said. Then it answers, and the page compares fact by fact."""
    check = a.button("Check with cards-eu now")
    expect(check).to_have_accessible_description("Reads only. Changes nothing at cards-eu.")
    check.click()
    a.focus_is_on("cards-eu did not answer at {t}: it said 503. Nothing changed.")
    world.sandbox.dial("cards-eu", readback="ok")
    check.click()
    a.focus_is_on(f"cards-eu answered at {{t}}: 1 refund on charge {charge}")
    for_it = "Agrees in 3 of 3 facts that can be compared. This is not proof: cards-eu does not return our reference. "
    a.sees(f"{for_it}A person decides.")
    facts = a.page.get_by_role("table", name="What we meant, what we sent and what they have, fact by fact")
    for name, said in {
        "amount": "8400 EUR = same",
        "charge": f"{charge} = same",
        "made at": "after sending",
        "our reference": "not given ? cannot be compared",
        "others like it": "none",
    }.items():
        row = facts.get_by_role("row").filter(has=a.page.get_by_role("rowheader", name=name))
        expect(row).to_contain_text(re.compile(r"\s*".join(map(re.escape, said.split()))))
    a.stayed()
    a.judged()


def _decides(a: Somebody) -> Request:
    """The decision, recorded once; the request that recorded it."""
    a.follow("It happened...")
    expect(a.heading("Record that this refund happened", level=2)).to_be_visible()
    a.stays()
    a.reads("the refund becomes Happened, with {re} as its result. The run goes on with: Tell the customer.")
    a.reads("nothing is sent to cards-eu.")
    a.reads("Later evidence against it opens a dispute.")
    ticked = a.page.get_by_role("checkbox", name=re.compile(r"^Readback .*\d\d:\d\d:\d\d: Agrees, not proof$"))
    expect(ticked).to_be_checked()
    a.judged()
    a.press(RECORD)
    a.sees("Not recorded. Say why: the reason is kept with the decision.")
    expect(a.reason).to_be_focused()
    expect(ticked).to_be_checked()
    a.judged()

    a.reason.fill("Their list shows this refund, made right after we sent it.")
    a.press(RECORD)
    expect(a.heading("Confirm it is you")).to_be_visible()
    a.judged()
    with a.page.expect_request(lambda one: "/verdict/" in one.url and one.method == "POST") as sent:
        a.confirm_it_is_me(RECORD)
    a.focus_is_on("Recorded at {t}: the refund happened. Event #{n}.")
    a.sees("Run orders.cancel {id} goes on: Tell the customer.")
    a.sees(
        "Completed at {t}. 2 of 2 effects settled: refund by Oncall A on the readback of {t}, e-mail by its receipt."
    )
    a.stayed()
    a.judged()
    return sent.value


def _as_sent(request: Request) -> dict[str, str]:
    kept = ("content-type", "hx-request", "x-csrftoken", "referer", "origin")
    return {name: value for name, value in request.headers.items() if name in kept}


def test_their_own_record_settles_it(world: World, people: People) -> None:
    """Walk 1.4: payments returns our reference, so a check settles the refund and nobody has to decide.

    A day has passed: the window of the key is closed, so Recourse sends nothing by itself either.
    """
    charge = "ch_4PAY"
    world.sandbox.dial("payments", reply="drop", match=charge, readback="down")
    with world.ago(timedelta(hours=25)):
        run = world.cancel_order(charge, 8400, "EUR", "payments")
        world.until_effect(run, "unknown")
    effect = world.until_asked(run)
    a = people("Oncall A", "/inbox/")
    a.page.get_by_role("link", name=re.compile(charge)).click()
    other = a.page.context.new_page()
    other.goto(f"{a.address}/runs/{run}/")
    beside = Somebody(a.name, a.address, a.password, other)
    beside.reads("Waiting: outcome unknown")
    beside.stays()
    a.reads("The same-key window closed at {t}. Recourse will never send this again by itself.")
    a.stays()
    a.press("Check with payments now")
    a.focus_is_on("payments did not answer at {t}: it said 503. Nothing changed.")
    world.sandbox.reset("payments")
    a.press("Check with payments now")
    a.focus_is_on(f"payments answered at {{t}}: 1 refund on charge {charge}")
    settled = "Settled by payments's own record at {t}. No decision needed."
    a.sees(settled)
    expect(a.heading(f"Refund EUR 84.00 on charge {charge}: it happened", level=1)).to_be_visible()
    a.sees("Completed at {t}. 2 of 2 effects settled: refund by payments's own record of {t}, e-mail by its receipt.")
    a.stayed()
    a.judged()
    # Buttons never change under a hand: what is no longer of use is said above them, and refused.
    a.sees("Changed at {t}: it was settled. See what changed.")
    a.follow("It happened...")
    a.sees("Nothing was done. The outcome was settled at {t}; there is nothing to decide.")
    a.stayed()
    # The page of the run, open in another tab, has followed by itself.
    beside.reads(
        "Completed at {t}. 2 of 2 effects settled: refund by the own record of payments, e-mail by its receipt."
    )
    beside.stayed()
    assert world.applied("payments", charge) == [{"amount": 8400, "charge": charge, "currency": "EUR"}]
    assert effect["key"] == f"refund:{charge}"
