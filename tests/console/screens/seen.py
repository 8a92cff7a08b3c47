"""What a reader sees of an answer: its words in reading order, without markup; and an act by nobody's form."""

from __future__ import annotations

import html
import re
from typing import Any
from uuid import uuid4

from runs.record import Act


def text(response: Any) -> str:
    """The words of the page's main part, or of the part that htmx got; folds and hidden words included."""
    body = response.content.decode()
    main = re.search(r"<main.*</main>", body, re.S)
    body = main[0] if main else body
    body = re.sub(r"<(svg|title|template)\b.*?</\1>", "", body, flags=re.S)
    return (
        " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())
        .replace(" .", ".")
        .replace(" ,", ",")
        .replace(" :", ":")
    )


def act() -> Act:
    """A new action id, for what a test does without a page."""
    return Act.over(uuid4(), "test", {})
