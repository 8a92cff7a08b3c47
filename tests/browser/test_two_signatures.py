"""A refund above the limit: two other people sign exactly the bytes that are sent, or nothing is sent."""

from __future__ import annotations

import re
import signal
from datetime import timedelta

from playwright.sync_api import Locator, expect

from console.stack import control
from tests.browser.people import STALE, People, Somebody
from tests.browser.world import World

OLD, NEW = "USD 1,250.00", "USD 1,205.00"
LABEL = "Sign: send {amount}"


def _label(amount: str) -> str:
    return LABEL.format(amount=amount)


def _digest(one: Somebody) -> Locator:
    """The hidden field that says what is signed; it has no role."""
    return one.page.locator("input[name=digest]")


def _check_code(one: Somebody) -> str:
    line = one.page.get_by_text(re.compile(r"Check code [0-9A-F]{4}-[0-9A-F]{4}")).first
    return line.inner_text().split()[-1]


def _bytes(one: Somebody) -> str:
    return one.page.get_by_role("region", name="Bytes that will be sent").inner_text()


def test_one_stale_then_signed_and_sent(world: World, people: People) -> None:
    """Done-when 3, walk (b), R2 to R4: what is signed is what was read, what is sent is what was signed."""
    charge = "ch_8LM2"
    run = world.cancel_order(charge, 125_000, "USD", "payments")
    first = world.approval(run)
    b = people("Approver B", f"/approvals/{first['id']}/")
    old_code = _reads_the_first(b, charge)
    _is_stale(world, b, run)
    second = world.approval(run, revision=2)
    code = _signs_the_second(b, second["id"], old_code)

    a = people("Oncall A", f"/approvals/{second['id']}/")
    _cannot_sign(a, second)

    c = people("Approver C", f"/approvals/{second['id']}/", width=360, height=740, theme="dark")
    shown = _signs_last(c, code)

    _is_told(b)
    b.follow("Withdraw...")
    b.sees("Too late to withdraw: it was sent at {t}. What can be done now: plan a compensation.")
    a.sees("Used {t}")
    # The bytes shown are the bytes that the sandbox received, and they took effect once.
    (line,) = world.ledger("payments", charge)
    assert (line["applied"], line["bodies"]) == (1, [shown])
    assert world.applied("payments", charge) == [{"amount": 120_500, "charge": charge, "currency": "USD"}]
    world.until_run(run, "completed")


def _reads_the_first(b: Somebody, charge: str) -> str:
    expect(b.heading(f"Sign: refund {OLD} on charge {charge}", level=1)).to_be_visible()
    b.sees("0 of 2 signatures")
    b.reads("Sign by {t}")
    b.sees("You can sign")
    b.reads("Cannot be reversed: money leaves the account.")
    expect(b.button(_label(OLD))).to_be_visible()
    expect(b.button("Reject: do not send it")).to_be_visible()
    b.judged()
    return _check_code(b)


def _is_stale(world: World, b: Somebody, run: str) -> None:
    """The request changes under the page: only the slot speaks, the button keeps label and digest, and is refused."""
    b.stays()
    b.reason.fill("The order is cancelled; the amount is as agreed.")
    digest = _digest(b).input_value()
    b.button(_label(OLD)).focus()
    world.signal(run, "order.changed", {"amount": 120_500})
    b.sees(STALE)
    expect(b.button(_label(OLD))).to_be_focused()
    expect(_digest(b)).to_have_value(digest)
    expect(b.button(_label(NEW))).to_have_count(0)
    b.judged()
    answer = b.answer_to(lambda: b.press(_label(OLD)), "/decision/")
    assert answer.status == 409
    b.focus_is_on(
        "Not signed. Revision 2 replaced this while you were reading ({t}, run orders.cancel {id} on order.changed). "
        "Nothing was sent. Your reason is kept."
    )
    expect(b.heading("Confirm it is you")).to_have_count(0)
    _shows_the_difference(b, "What changed")
    b.stayed()
    b.judged()
    b.follow("Read revision 2")


def _shows_the_difference(one: Somebody, caption: str) -> None:
    table = one.page.get_by_role("table", name=caption)
    row = table.get_by_role("row").filter(has=one.page.get_by_role("rowheader", name="amount"))
    expect(row).to_contain_text("changed")
    expect(row).to_contain_text(re.compile(r"125000\s+120500\s+\(USD 1,250\.00 -> USD 1,205\.00\)"))


def _signs_the_second(b: Somebody, id: str, old_code: str) -> str:
    expect(b.page).to_have_url(re.compile(id))
    _shows_the_difference(b, "Changed since you last looked")
    code = _check_code(b)
    assert code != old_code
    expect(b.reason).to_have_value("The order is cancelled; the amount is as agreed.")
    b.judged()
    b.stays()
    b.press(_label(NEW))
    b.confirm_it_is_me(_label(NEW))
    b.focus_is_on(
        "Signed at {t}. 1 of 2. One more signature is needed by {t}. You can withdraw yours until it is sent."
    )
    b.sees("1 of 2 signatures")
    b.stayed()
    b.judged()
    return code


def _cannot_sign(a: Somebody, approval: dict[str, str]) -> None:
    """R4: who started the run does not sign; neither is there a button, nor does a POST by hand help."""
    a.sees("You cannot sign: you started this run. Approver C can.")
    expect(a.page.get_by_role("button", name=re.compile("sign", re.I))).to_have_count(0)
    a.judged()
    cookies = a.page.context.cookies()
    assert any(one["name"] == "recourse_csrf" for one in cookies)
    token = a.page.evaluate("() => JSON.parse(document.body.getAttribute('hx-headers:inherited'))['X-CSRFToken']")
    by_hand = a.page.request.post(
        f"{a.address}/approvals/{approval['id']}/decision/",
        form={
            "csrfmiddlewaretoken": token,
            "action": "01a22f00-0000-7000-8000-000000000001",
            "digest": approval["digest"],
            "decision": "sign",
            "reason": "It is only my own run.",
        },
        headers={"Referer": a.page.url},
    )
    assert by_hand.status == 403
    assert "You cannot sign: you started this run." in by_hand.text()


def _signs_last(c: Somebody, code: str) -> str:
    """The second signature sends it; the page shows each step. The bytes as they stood there to be signed."""
    c.reads("Approver B signed revision 2 at {t}")
    assert _check_code(c) == code
    reason = c.page.get_by_text("The order is cancelled; the amount is as agreed.")
    expect(reason).to_be_hidden()
    expect(c.page.get_by_text("Reason (folded until you decide)")).to_be_visible()
    shown = _bytes(c)
    c.judged()
    c.reason.fill("Compared with the order: 1,205.00.")
    c.stays()
    c.press(_label(NEW))
    c.confirm_it_is_me(_label(NEW))
    c.focus_is_on("Signed at {t}. 2 of 2. Sending now.")
    c.sees("Sent {t}, try 1")
    c.reads("Happened at {t}: {re}")
    c.sees("Used. This request cannot be used again.")
    c.stayed()
    expect(reason).to_be_hidden()  # a fold is the reader's: it is not opened under their eyes
    c.page.get_by_text("Reason", exact=True).first.click()
    expect(reason).to_be_visible()
    c.judged()
    return shown


def _is_told(b: Somebody) -> None:
    """The page of who signed first shows it too, without a reload."""
    expect(b.heading("Used {t}")).to_be_visible()
    b.stayed()


def test_what_was_not_signed_in_time_is_not_sent(world: World, people: People) -> None:
    """Done-when 3, R6: at the end of the time to sign the page says so, its button is refused, nothing is sent."""
    charge = "ch_8EXP"
    with world.ago(timedelta(hours=8, seconds=20)):
        run = world.cancel_order(charge, 125_000, "USD", "payments")
        asked = world.approval(run)
        b = people("Approver B", f"/approvals/{asked['id']}/")
        b.stays()
        b.reason.fill("Seen and agreed.")
        digest = _digest(b).input_value()
    b.sees("Expired at {t}. Signing is no longer possible.")
    expect(b.button(_label(OLD))).to_be_visible()
    expect(_digest(b)).to_have_value(digest)
    answer = b.answer_to(lambda: b.press(_label(OLD)), "/decision/")
    assert answer.status == 409
    b.focus_is_on("Not sent. The signatures ran out at {t}. Ask again.")
    b.sees("Seen and agreed.")
    b.stayed()
    b.judged()
    b.open(f"/approvals/{asked['id']}/")
    expect(b.heading("Expired {t}, not sent.")).to_be_visible()
    expect(b.page.get_by_role("button", name=re.compile("^Sign"))).to_have_count(0)
    b.judged()
    assert world.ledger("payments", charge) == []

    # Whoever may start it asks again: the same bytes, new signatures.
    a = people("Oncall A", f"/approvals/{asked['id']}/")
    a.follow("Ask again")
    expect(a.page.get_by_role("heading", name=re.compile("^Ask again"))).to_be_visible()
    a.judged()


def test_what_was_signed_and_not_sent_in_time_is_not_sent(world: World, people: People) -> None:
    """Done-when 3, R6: signatures are good for an hour; the senders were away so long, and nothing goes out."""
    charge = "ch_8LATE"
    with control.held(world.stack.data, "dispatch", signal.SIGTERM):
        with world.ago(timedelta(hours=1, seconds=20)):
            run = world.cancel_order(charge, 125_000, "USD", "payments")
            asked = world.approval(run)
            for name in ("Approver B", "Approver C"):
                last = people(name, f"/approvals/{asked['id']}/")
                last.stays()
                last.reason.fill("Seen and agreed.")
                last.press(_label(OLD))
                last.confirm_it_is_me(_label(OLD))
                last.reads("Signed at {t}.")
            last.focus_is_on("Signed at {t}. 2 of 2. Sending now.")
            expect(last.heading("Signed, not used yet. It must be sent by {t}.")).to_be_visible()
        expect(last.heading("Expired {t}, not sent.")).to_be_visible()
        last.stayed()
        last.judged()
    world.until_effect(run, "awaiting_approval")
    sent = world.cancel_order("ch_8SENT", 100, "USD", "payments")
    world.until_run(sent, "completed")  # the senders are back and at work
    assert world.effect(run)["attempts"] == 0
    assert world.ledger("payments", charge) == []
