"""Keyset pages: a cursor says after (or before) which row; a page costs the same wherever it is."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from runs.errors import RunsError

MOST_ROWS: Final = 200
"""Rows of one page, at most."""

MOST_COUNTED: Final = 10_000
"""Counting stops here: counting everything takes as long as the workspace is big."""

_FORWARD, _BACK = "n", "p"


class BadCursor(RunsError):
    """The cursor was not made by this list."""

    code = "bad_cursor"
    status = 400


@dataclass(frozen=True, slots=True)
class Page[T]:
    """Rows in the list's order; ``next`` and ``previous`` are cursors, None where nothing is."""

    items: list[T]
    next: str | None = None
    previous: str | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows match, counted at ``at``; ``capped``: more than ``n``, which is then MOST_COUNTED."""

    n: int
    capped: bool
    at: datetime

    @classmethod
    def of(cls, found: int, at: datetime) -> Count:
        """From a count that was itself stopped at MOST_COUNTED + 1."""
        return cls(min(found, MOST_COUNTED), found > MOST_COUNTED, at)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The key a page begins at. ``back``: the page is before it. ``kept``: what all pages share."""

    key: tuple[Any, ...]
    back: bool = False
    kept: str = ""


def clamp(limit: int) -> int:
    """A page size between 1 and MOST_ROWS."""
    return max(1, min(limit, MOST_ROWS))


def moment(text: str) -> datetime:
    """An instant from ISO 8601 text with its offset, in UTC. Raises ValueError for anything else."""
    read = datetime.fromisoformat(text)
    if read.tzinfo is None:
        raise ValueError("an instant needs its offset")
    if not 1900 <= read.year < 9000:
        # Its ends cannot be said in every zone.
        raise ValueError("beyond the calendar")
    return read.astimezone(UTC)


def encode(name: str, cursor: Cursor) -> str:
    """The cursor of the list ``name`` as opaque text. It grants nothing: the query is authorised anew."""
    body = [
        name,
        _BACK if cursor.back else _FORWARD,
        cursor.kept,
        *map(str, cursor.key),
    ]
    return base64.urlsafe_b64encode(json.dumps(body, separators=(",", ":")).encode()).decode().rstrip("=")


def decode(name: str, text: str | None, *types: Callable[[str], Any]) -> Cursor | None:
    """The cursor in ``text``, its key read by ``types``. None for none. Raises BadCursor."""
    if not text:
        return None
    try:
        if len(text) > 400:
            raise ValueError("too long")
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found, direction, kept, *key = json.loads(raw)
        if found != name or direction not in (_FORWARD, _BACK) or len(key) != len(types):
            raise ValueError("of another list")
        return Cursor(
            tuple(read(part) for read, part in zip(types, key, strict=True)),
            direction == _BACK,
            str(kept),
        )
    except (
        ValueError,
        TypeError,
        AttributeError,
        OverflowError,
        binascii.Error,
        RecursionError,
    ) as error:
        raise BadCursor(cursor=text[:80]) from error


def cut[T](
    name: str,
    rows: Sequence[T],
    limit: int,
    cursor: Cursor | None,
    key: Callable[[T], tuple[Any, ...]],
    kept: str = "",
) -> Page[T]:
    """A page from up to ``limit + 1`` rows, read in the cursor's direction (backwards they come reversed)."""
    back = cursor is not None and cursor.back
    more = len(rows) > limit
    items = list(rows[:limit])
    if back:
        items.reverse()
    if not items:
        return Page([])
    has_next = True if back else more
    has_previous = more if back else cursor is not None
    return Page(
        items,
        next=encode(name, Cursor(key(items[-1]), False, kept)) if has_next else None,
        previous=encode(name, Cursor(key(items[0]), True, kept)) if has_previous else None,
    )
