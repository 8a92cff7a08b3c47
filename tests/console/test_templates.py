"""What may not stand in templates and code: inline script and style, evaluated attributes, trusted text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.template.loader import get_template

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
CODE = sorted(path for path in (ROOT / "console").rglob("*.py"))
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))

IN_TEMPLATES = {
    "inline style": r"<[^>]*\sstyle\s*=|<style\b",
    "event handler attribute": r"<[^>]*\son[a-z]+\s*=",
    "hx-on": r"hx-on\b",
    "js: value": r"""=\s*["']?\s*(?:js|javascript):""",
    "hx-vals from code": r"hx-(?:vals|headers)[^=]*=\s*[\"']js",
    "trigger filter": r"hx-trigger\s*=\s*[\"'][^\"']*\[",
    "inline script": r"<script(?![^>]*\ssrc=)[^>]*>",
    "trust in text": r"\|\s*safe(?:seq)?\b|\{%\s*autoescape\s+off",
}
IN_CODE = {"trust in text": r"\bmark_safe\b|\bSafeString\(\s*[^\"'\s)]|\.html_safe\b|autoescape\s*=\s*False"}
IN_SCRIPTS = {
    "evaluation": r"\beval\(|new Function|setTimeout\(\s*[\"']|setInterval\(\s*[\"']",
    "markup from text": r"\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write",
}


def _found(paths: list[Path], bans: dict[str, str]) -> list[str]:
    found = []
    for path in paths:
        text = path.read_text()
        for what, pattern in bans.items():
            for match in re.finditer(pattern, text, re.IGNORECASE):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{path.relative_to(ROOT)}:{line}: {what}")
    return found


def test_templates_hold_no_inline_script_style_or_trust() -> None:
    """The CSP would block the first two silently; the third is how a payload becomes script (trap 7)."""
    assert TEMPLATES and not _found(TEMPLATES, IN_TEMPLATES)


def test_console_code_never_trusts_text() -> None:
    """Markup is made by templates and format_html only."""
    assert CODE and not _found(CODE, IN_CODE)


def test_scripts_evaluate_nothing() -> None:
    """No text becomes code or markup in the browser."""
    assert SCRIPTS and not _found(SCRIPTS, IN_SCRIPTS)


@pytest.mark.parametrize(
    "bad",
    [
        '<p style="color:red">',
        '<a onclick="x()">',
        '<a hx-on:click="x()">',
        "<a hx-vals='js:{a:1}'>",
        '<a hx-trigger="click[ctrlKey]">',
        "<script>x()</script>",
        "{{ text|safe }}",
    ],
)
def test_the_bans_find_what_they_ban(bad: str, tmp_path: Path) -> None:
    """A ban that matches nothing holds nothing."""
    assert any(re.search(pattern, bad, re.IGNORECASE) for pattern in IN_TEMPLATES.values())


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: str(p.relative_to(ROOT / "templates")))
def test_every_template_compiles(path: Path) -> None:
    """A misspelt tag is found here and not at night."""
    get_template(str(path.relative_to(ROOT / "templates")))


def test_state_colours_stand_in_one_file() -> None:
    """Components use --tone; only states.css turns [data-state] into a colour."""
    for path in sorted((ROOT / "static" / "css").glob("*.css")):
        rules = re.findall(r"\[data-state=[^\]]+\]\s*\{[^}]*\}", path.read_text())
        assert not rules or path.name == "states.css", path.name


def test_every_stylesheet_is_brought_in() -> None:
    """app.css is the only one that pages name."""
    app = (ROOT / "static" / "css" / "app.css").read_text()
    others = {path.name for path in (ROOT / "static" / "css").glob("*.css")} - {"app.css"}
    assert set(re.findall(r'url\("([^"]+)"\)', app)) == others
