"""Each screen is judged by axe in light and dark, and must not scroll sideways from 320 px on."""

import json
from typing import Final

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

_RUN: Final = """async () => (await axe.run(document, {
    resultTypes: ["violations"], preload: false, rules: {"target-size": {enabled: true}}
})).violations.map(v => [v.id, v.help, v.nodes.map(n => [n.target.join(" "), n.html.slice(0, 200), n.failureSummary])])
"""
_TOO_WIDE: Final = """() => {
  const root = document.documentElement, wide = root.clientWidth;
  if (root.scrollWidth <= wide) return [];
  const out = [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > wide + 0.5);
  return [root.scrollWidth + " > " + wide, ...out.slice(0, 5).map(e => e.outerHTML.slice(0, 160))];
}"""


def check(page: Page, *, themes: tuple[str, ...] = ("light", "dark")) -> None:
    """No violation of any rule, experimental ones apart, in either theme, as the page is now."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    was = "dark" if page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches") else "light"
    for theme in sorted(themes, key=lambda one: one != was):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        violations = page.evaluate(_RUN)
        assert not violations, f"{page.url}, {theme}:\n{json.dumps(violations, indent=1)}"
    page.emulate_media(color_scheme=was)  # type: ignore[arg-type]


def fits(page: Page, *, widths: tuple[int, ...] = (320, 640, 900, 1280)) -> None:
    """Nothing sticks out to the right at any of these widths."""
    before = page.viewport_size
    assert before is not None
    for width in widths:
        page.set_viewport_size({"width": width, "height": before["height"]})
        too_wide = page.evaluate(_TOO_WIDE)
        assert not too_wide, f"{page.url} at {width} px: {too_wide}"
    page.set_viewport_size(before)
