"""What cannot be seen, or turns the direction, is named on every page (trap 7)."""

from __future__ import annotations

import pytest
from django.http import HttpRequest, HttpResponse, JsonResponse

from console.middleware import NothingHidden

ODD = "\x00\x07\x1b\x7f\x85\u061c\u200e\u200f\u202a\u202e\u2066\u2069"


def _page(answer: HttpResponse) -> HttpResponse:
    return NothingHidden(lambda request: answer)(HttpRequest())


@pytest.mark.parametrize("char", ODD)
def test_it_is_named(char: str) -> None:
    page = _page(HttpResponse(f"<h1>Post a notice to {char}gnp</h1>"))
    assert page.content.decode() == f"<h1>Post a notice to [U+{ord(char):04X}]gnp</h1>"


def test_words_of_every_language_and_the_ends_of_lines_stay() -> None:
    words = "简体中文 é ä e\u0301 \u00a0 👩\u200d💻 – …\t\r\n"
    assert _page(HttpResponse(words)).content.decode() == words


def test_only_pages_are_changed() -> None:
    """A program gets the value itself."""
    assert _page(JsonResponse({"a": "x"}, json_dumps_params={"ensure_ascii": False})).content == b'{"a": "x"}'
    raw = HttpResponse("\u202e", content_type="application/json")
    assert _page(raw).content.decode() == "\u202e"
