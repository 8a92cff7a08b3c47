"""An outcome that nothing can show: one person says what happened, another confirms it, the run goes on."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.people import People, Somebody
from tests.browser.world import World

RECORD = "Record: the notice happened"


@pytest.mark.parametrize("width", [1280, 360])
def test_a_persons_word_needs_a_second_person(world: World, people: People, width: int) -> None:
    """Done-when 2, invariant 4 and D3: neither key nor readback; the proposer cannot confirm."""
    to = f"desk-{width}@acme.example"
    world.sandbox.dial("notices", reply="drop", times=1)
    run = world.start("notices.send", {"to": to, "text": "Order A-10427 waits for its refund"})
    effect = world.until_asked(run)
    a = people("Oncall A", "/inbox/", width=width)

    row = a.item(f"Post a notice to {to}")
    expect(row).to_contain_text("1 notice, cannot be reversed.")
    expect(row).to_contain_text("notices offers no way to check.")
    row.get_by_role("link").click()
    expect(a.heading(f"Post a notice to {to}: nobody knows whether it happened", level=1)).to_be_visible()
    a.sees("notices offers no way to check. Sent once; only a callback or a person can settle it.")
    a.sees("Sending again is refused while the outcome is unknown.")
    expect(a.page.get_by_role("button", name=re.compile("check", re.I))).to_have_count(0)
    a.judged()
    _says(a)
    # The page of who proposed it stays open: what the second person does shows there.
    a.open(f"/effects/{effect['id']}/")
    a.stays()
    proposed = world.effect(run)["verdicts"][0]
    _cannot_confirm(people, a, proposed)

    b = people("Approver B", "/inbox/", width=width)
    _confirms(b, to)
    settled = "Recorded at {t} by Oncall A, confirmed by Approver B: the notice happened."
    a.sees(settled)
    expect(a.heading(f"Post a notice to {to}: it happened", level=1)).to_be_visible()
    a.stayed()
    assert world.until_run(run, "completed")["effects"] == {"succeeded": 1}
    (line,) = [one for one in world.sandbox.ledger() if any(to in body for body in one["bodies"])]
    assert line["applied"] == 1
    b.follow("Back to inbox")
    b.sees("Nothing needs you.")


def _says(a: Somebody) -> None:
    """Not without evidence; then a word with its source and time, which is a proposal."""
    a.follow("It happened...")
    expect(a.heading("Record that this notice happened", level=2)).to_be_visible()
    a.reads("first a second person is asked to confirm this (it rests on a person's word alone).")
    a.reads("Until then the outcome stays unknown and nothing goes on.")
    a.reason.fill("The desk has it in front of them.")
    a.press(RECORD)
    a.sees("Not recorded. A decision needs at least one piece of evidence: say who told you what, and when.")
    expect(a.reason).to_have_value("The desk has it in front of them.")
    a.judged()
    a.field("What was said").fill("It hangs on the board, posted a minute after we sent it.")
    a.field("By whom").fill("Desk F")
    a.field("When").fill("today, by telephone")
    a.stays()
    a.press(RECORD)
    a.confirm_it_is_me(RECORD)
    a.focus_is_on("Recorded at {t}: the notice happened. Waiting for a second person to confirm. Event #{n}.")
    a.sees("Until then nobody knows: nothing is sent, and the run waits.")
    a.sees("Who can confirm it: Approver B and Approver C.")
    a.stayed()
    a.judged()


def _cannot_confirm(people: People, a: Somebody, proposed: dict[str, str]) -> None:
    """Whoever proposed it can only take it back; a POST by hand is refused."""
    page = a.page.context.new_page()
    page.goto(f"{a.address}/verdicts/{proposed['id']}/confirmation/")
    expect(page.get_by_role("heading", name="Take back a decision")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Record"))).to_have_count(0)
    token = page.locator("input[name=csrfmiddlewaretoken]").first.input_value()
    action = page.locator("input[name=action]").first.input_value()
    by_hand = page.request.post(
        page.url,
        form={
            "csrfmiddlewaretoken": token,
            "action": action,
            "digest": proposed["digest"],
            "decision": "confirm",
            "reason": "I am quite sure.",
        },
        headers={"Referer": page.url},
    )
    assert by_hand.status == 403
    assert "Not confirmed. The second person must be another person: you decided this." in by_hand.text()
    page.close()


def _confirms(b: Somebody, to: str) -> None:
    row = b.item(f"Post a notice to {to}").filter(has_text="Confirm a decision")
    expect(row).to_contain_text("Oncall A decided: it happened. Another person must confirm.")
    row.get_by_role("link").click()
    b.follow("Confirm a decision...")
    expect(b.heading("Confirm a decision", level=2)).to_be_visible()
    b.reads("the notice happened")
    expect(b.page.get_by_role("blockquote")).to_contain_text("It hangs on the board, posted a minute after we sent it.")
    b.judged()
    b.stays()
    b.reason.fill("I rang the desk myself.")
    b.press(RECORD)
    b.confirm_it_is_me(RECORD)
    b.focus_is_on("Recorded at {t}: the notice happened, decided by Oncall A and you. Event #{n}.")
    b.sees("Completed at {t}. 1 of 1 effect settled: notice by Oncall A on a person's word of {t}.")
    b.stayed()
    b.judged()
