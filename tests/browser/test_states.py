"""Each list and page in every state it can be in: empty, filtered, not there, by keyboard, narrow, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from tests.browser import axe
from tests.browser.people import People, Somebody
from tests.browser.world import World


@dataclass
class Scene:
    """Things in acme-pay that wait for a person, and one that is done. Ids."""

    unknown: str
    proposed: str
    verdict: str
    waiting: str
    approval: str
    done: str
    effect: str


@pytest.fixture(scope="module")
def scene(_world: World) -> Iterator[Scene]:
    """An unknown notice, one that waits for a second person, a refund that waits for signatures, a completed run."""
    world = _world
    world.sandbox.dial("notices", reply="drop", times=2)
    unknown, proposed = (world.start("notices.send", {"to": f"board-{n}", "text": "Closed today"}) for n in (1, 2))
    waiting = world.cancel_order("ch_7WAIT", 230_000, "EUR", "payments")
    done = world.cancel_order("ch_7DONE", 1990, "EUR", "payments")
    effect = world.until_asked(unknown)["id"]
    verdict = world.propose(world.until_asked(proposed)["id"])
    approval = world.approval(waiting)["id"]
    world.until_run(done, "completed")
    world.kept |= {unknown, proposed, waiting}
    yield Scene(unknown, proposed, verdict, waiting, approval, done, effect)
    world.kept.clear()
    world.leave_nothing()


def test_empty_says_what_would_fill_it(people: People) -> None:
    """Section 0, panel states: truly empty."""
    e = people("Outsider E", "/inbox/")
    e.sees("Nothing needs you.")
    expect(e.page).to_have_title("Inbox - Recourse")
    e.judged()
    e.page.get_by_role("link", name=re.compile("^Runs")).filter(visible=True).click()
    e.sees("No runs yet. They start over the API.")
    e.judged()


def test_filtered_says_what_is_without_it(scene: Scene, people: People) -> None:
    """Section 0, panel states: filtered to nothing is not empty."""
    a = people("Oncall A", "/w/acme-pay/inbox/?kind=quarantined")
    a.sees("Nothing matches Quarantined. 4 without it.")
    a.judged()
    a.page.get_by_role("main").get_by_role("link", name="Clear filter").last.click()
    expect(a.item("Post a notice to board-1")).to_be_visible()
    a.open("/w/acme-pay/runs/?state=failed")
    a.reads("Nothing matches Failed. {n} without it.")
    a.judged()
    a.page.get_by_role("main").get_by_role("link", name="Clear filter").last.click()
    expect(a.link("Cancel order A-7DONE")).to_be_visible()


def test_foreign_and_missing_are_the_same(scene: Scene, people: People) -> None:
    """Invariant 14: for Outsider E what is not theirs and what is not there answer alike."""
    e = people("Outsider E", "/inbox/")

    def answer(path: str) -> tuple[int, str]:
        status = e.open(path).status
        said = e.page.get_by_role("main").inner_text()
        return status, re.sub(r"Request \S+", "", said).strip()

    there = {
        "runs": scene.unknown,
        "effects": scene.effect,
        "approvals": scene.approval,
    }
    for noun, id in there.items():
        assert answer(f"/{noun}/{id}/") == answer(f"/{noun}/{uuid4()}/")
    assert answer(f"/verdicts/{scene.verdict}/confirmation/") == answer(f"/verdicts/{uuid4()}/confirmation/")
    assert answer("/w/acme-pay/inbox/") == answer("/w/no-such/inbox/")
    status, said = answer(f"/runs/{scene.unknown}/")
    assert (status, said.splitlines()[0]) == (404, "Nothing here that you can see.")
    axe.check(e.page)
    axe.fits(e.page)


def test_auditor_sees_and_cannot_act(scene: Scene, people: People) -> None:
    """Section 0, panel states: what is not allowed says who can, in place of the control."""
    d = people("Auditor D", f"/effects/{scene.effect}/")
    d.sees("You can see this but not decide it. On-call can: Oncall A.")
    expect(d.page.get_by_role("button", name="Claim")).to_have_count(0)
    d.judged()
    answer = d.open(f"/effects/{scene.effect}/verdict/?says=happened")
    assert answer.status == 403
    expect(d.page.get_by_role("heading", name=re.compile("^You can see this but not"))).to_be_visible()
    d.judged()
    answer = d.open(f"/runs/{scene.waiting}/cancellation/")
    assert answer.status == 403
    d.open(f"/approvals/{scene.approval}/")
    d.reads("You can see this but not sign it. Approvers can: Approver B and Approver C.")
    expect(d.page.get_by_role("button", name=re.compile("^(Sign|Reject)"))).to_have_count(0)


def test_keys_move_and_open_and_decide_nothing(scene: Scene, people: People) -> None:
    """Section 0, keyboard: j k move, enter opens, c claims, ? lists, g r goes; dead inside fields."""
    a = people("Oncall A", "/inbox/")
    titles = [one.inner_text() for one in a.page.get_by_role("listitem").get_by_role("link").all()]
    assert len(titles) == 4
    focused = a.page.locator(":focus")
    for key, at in (("j", 0), ("j", 1), ("j", 2), ("j", 3), ("j", 3), ("k", 2), ("k", 1), ("k", 0)):
        a.page.keyboard.press(key)
        expect(focused).to_have_text(titles[at])
    keys = a.heading("Keys")
    expect(keys).to_be_hidden()
    a.page.keyboard.press("?")
    expect(keys).to_be_visible()
    a.judged()
    a.page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    a.page.keyboard.press("k")
    a.page.keyboard.press("c")
    a.reads("Yours since {t}.")
    a.press("Release")
    a.reads("Given back. Unclaimed")
    a.page.keyboard.press("k")
    a.page.keyboard.press("Enter")
    expect(a.page.get_by_role("heading", level=1)).to_contain_text(titles[0].removeprefix("Sign: "))
    a.page.keyboard.press("g")
    a.page.keyboard.press("r")
    expect(a.page).to_have_url(re.compile("/w/acme-pay/runs/$"))
    a.page.keyboard.press("j")
    expect(focused).to_have_attribute("href", re.compile("^/runs/"))
    search = a.page.get_by_role("searchbox")
    search.focus()
    a.page.keyboard.type("jkc?")
    expect(search).to_have_value("jkc?")
    expect(keys).to_be_hidden()


def test_single_keys_can_be_switched_off(scene: Scene, people: People) -> None:
    """WCAG 2.2, 2.1.4: after switching them off a key does nothing."""
    a = people("Oncall A", "/account/")
    axe.fits(a.page)
    a.judged()
    a.field("Single-key shortcuts").uncheck()
    a.press("Save these settings")
    a.sees("Saved.")
    a.page.keyboard.press("?")
    expect(a.heading("Keys")).to_be_hidden()


def test_every_page_is_clean_and_fits(scene: Scene, people: People) -> None:
    """Section 0 and 3: no sideways scroll from 320 px on, no axe violation, light and dark."""
    a = people("Oncall A", "/inbox/", theme="dark")
    b = people("Approver B", "/inbox/")
    everywhere = (
        "/w/acme-pay/inbox/",
        "/w/acme-pay/inbox/?view=mine",
        "/w/acme-pay/inbox/?view=checking",
        "/w/acme-pay/runs/",
        f"/runs/{scene.unknown}/",
        f"/runs/{scene.waiting}/",
        f"/runs/{scene.done}/",
        f"/runs/{scene.done}/?tab=effects",
        f"/runs/{scene.done}/?tab=checkpoints",
        f"/runs/{scene.done}/?tab=history",
        f"/runs/{scene.unknown}/cancellation/",
        f"/effects/{scene.effect}/",
        f"/effects/{scene.effect}/verdict/?says=happened",
        f"/effects/{scene.effect}/verdict/?says=did_not_happen",
        f"/verdicts/{scene.verdict}/confirmation/",
        f"/approvals/{scene.approval}/",
        f"/actions/{uuid4()}/",
    )
    for path in everywhere:
        _judge(a, path)
    _judge(b, f"/verdicts/{scene.verdict}/confirmation/")
    _judge(b, f"/approvals/{scene.approval}/")


def _judge(one: Somebody, path: str) -> None:
    one.open(path)
    axe.fits(one.page)
    one.judged()
    size = one.page.viewport_size
    assert size is not None
    one.page.set_viewport_size({"width": 320, "height": 740})
    axe.check(one.page, themes=("light",))
    one.page.set_viewport_size(size)


def test_on_a_phone_the_first_act_is_above_the_bottom_bar(world: World, people: People) -> None:
    """Section 0 (TRIED): at 360 x 640 title, gate and first act of an unknown refund stand above the bottom bar."""
    world.sandbox.dial("cards-eu", reply="drop", times=1, match="ch_7FOLD")
    run = world.cancel_order("ch_7FOLD", 8400, "EUR", "cards-eu")
    effect = world.until_asked(run)["id"]
    a = people("Oncall A", f"/effects/{effect}/", width=360, height=640)
    bar = a.page.get_by_role("navigation", name="Lists, at the bottom").bounding_box()
    check = a.button("Check with cards-eu now").bounding_box()
    assert bar is not None and check is not None
    assert check["y"] + check["height"] <= bar["y"]
