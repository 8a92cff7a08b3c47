"""A person at a browser: signs in, finds things by role and name, and sees what changes without a reload."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from playwright.sync_api import Browser, BrowserContext, Locator, Page, Response, expect

from tests.browser import axe
from tests.stack import Stack

EMAILS: Final = {
    "Oncall A": "oncall-a@acme.example",
    "Approver B": "approver-b@acme.example",
    "Approver C": "approver-c@acme.example",
    "Auditor D": "auditor-d@acme.example",
    "Outsider E": "outsider-e@other.example",
}
SHAPES: Final = {
    "t": r"(?:\d{1,2} \w{3} (?:\d{4} )?)?\d\d:\d\d(?::\d\d)?",
    "n": r"\d+",
    "id": r"[0-9a-f]{4}-[0-9a-f]{4}",
    "re": r"re_[0-9a-f]{24}",
    "code": r"[0-9A-F]{4}-[0-9A-F]{4}",
    "span": r"\d+ (?:s|min|h|d)(?: \d+ (?:s|min|h))?",
}
"""What a text holds that is different each time: {t} a clock, {n} a number, {id} the end of an id, ..."""

STALE: Final = "Changed at {t}: what you see is no longer current. See what changed."


def shape(text: str, *, whole: bool = True) -> re.Pattern[str]:
    """A pattern for ``text``, its {t}, {n}, ... by shape, all the rest exactly; white space as a browser shows it."""
    parts = re.split(r"\{(\w+)\}", text)
    pattern = "".join(SHAPES[part] if n % 2 else _spaced(part) for n, part in enumerate(parts))
    return re.compile(rf"^\s*{pattern}\s*$" if whole else pattern)


def _spaced(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in text.split(" "))


@dataclass
class Somebody:
    """One person in one browser context."""

    name: str
    address: str
    password: str
    page: Page
    _here: int = 0

    # Coming in

    def open(self, path: str) -> Response:
        """Load a page; the answer to it."""
        answer = self.page.goto(f"{self.address}{path}")
        assert answer is not None
        return answer

    def sign_in(self) -> None:
        """Fill in and send the sign-in page that is open."""
        self.page.get_by_label("E-mail").fill(EMAILS[self.name])
        self.page.get_by_label("Password").fill(self.password)
        self.button("Sign in").click()
        expect(self.page.get_by_label("State of this page")).to_be_visible()

    def enter(self, path: str) -> None:
        """Open ``path`` as somebody who is not signed in yet."""
        self.open(path)
        self.sign_in()

    # Finding

    def heading(self, text: str, **more: Any) -> Locator:
        return self.page.get_by_role("heading", name=shape(text), **more)

    def button(self, text: str) -> Locator:
        return self.page.get_by_role("button", name=shape(text))

    def link(self, text: str) -> Locator:
        return self.page.get_by_role("link", name=shape(text))

    def region(self, text: str) -> Locator:
        return self.page.get_by_role("region", name=shape(text))

    def field(self, text: str) -> Locator:
        return self.page.get_by_label(text)

    @property
    def reason(self) -> Locator:
        return self.field("Reason (kept for good, shown to auditors)")

    def item(self, text: str) -> Locator:
        """The row of a list that holds a link of this name."""
        link = self.page.get_by_role("link", name=shape(text, whole=False))
        return self.page.get_by_role("listitem").filter(has=link)

    # Seeing

    def sees(self, text: str, *, within: Locator | None = None, seconds: float = 15) -> None:
        """``text`` stands on the page, as the whole text of some element."""
        found = (within or self.page.locator("body")).get_by_text(shape(text))
        expect(found.filter(visible=True).first).to_be_visible(timeout=seconds * 1000)

    def sees_not(self, text: str) -> None:
        """No visible element says ``text`` and nothing else."""
        expect(self.page.get_by_text(shape(text)).filter(visible=True)).to_have_count(0)

    def reads(self, text: str, *, seconds: float = 15) -> None:
        """``text`` stands somewhere in what the page shows, across elements."""
        body = self.page.get_by_role("main")
        expect(body).to_contain_text(shape(text, whole=False), use_inner_text=True, timeout=seconds * 1000)

    def focus_is_on(self, text: str, *, seconds: float = 15) -> None:
        """The heading ``text`` has the focus."""
        expect(self.heading(text)).to_be_focused(timeout=seconds * 1000)

    # Without a reload

    def stays(self) -> None:
        """Remember this very page; :meth:`stayed` finds out whether it was loaded again."""
        self._here += 1
        self.page.evaluate("n => { window.hereSince = n; }", self._here)

    def stayed(self) -> None:
        """Fails if the page was loaded again or left since :meth:`stays`."""
        assert self.page.evaluate("() => window.hereSince") == self._here, "the page was loaded again"

    # Acting

    def press(self, text: str) -> None:
        self.button(text).click()

    def follow(self, text: str) -> None:
        self.link(text).click()

    def answer_to(self, act: Callable[[], None], path: str) -> Response:
        """What the server answers to the POST at an address with ``path`` that ``act`` leads to."""
        with self.page.expect_response(lambda one: path in one.url and one.request.method == "POST") as waited:
            act()
        return waited.value

    def confirm_it_is_me(self, button: str) -> None:
        """Answer "Confirm it is you" by password; the pressed action goes on."""
        expect(self.heading("Confirm it is you")).to_be_visible()
        self.field("Password").fill(self.password)
        self.press(button)

    def judged(self) -> None:
        """axe finds nothing on the page as it is now."""
        axe.check(self.page)


@dataclass
class People:
    """Everybody of one test; their contexts end with it."""

    browser: Browser
    stack: Stack
    _contexts: list[BrowserContext] = field(default_factory=list)
    _wrong: list[str] = field(default_factory=list)

    def __call__(
        self,
        name: str,
        at: str = "",
        *,
        width: int = 1280,
        height: int = 800,
        theme: Literal["light", "dark"] = "light",
    ) -> Somebody:
        """``name`` at a browser of its own; signed in and on the page ``at``, if one is given."""
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            reduced_motion="reduce",
            has_touch=width < 640,
            is_mobile=width < 640,
            locale="en-GB",
        )
        context.set_default_timeout(15_000)
        self._contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self._wrong.append(f"{name}, {page.url}: {error}"))
        page.on("console", lambda said: self._heard(name, said.text))
        somebody = Somebody(name, self.stack.address, self.stack.accounts[EMAILS[name]], page)
        if at:
            somebody.enter(at)
        return somebody

    def _heard(self, name: str, text: str) -> None:
        if "Content Security Policy" in text or "is not defined" in text:
            self._wrong.append(f"{name}: {text}")

    def leave(self) -> None:
        """Close everything; fails if a script broke or something was against the page's policy."""
        for context in self._contexts:
            context.close()
        assert not self._wrong, "\n".join(self._wrong)
