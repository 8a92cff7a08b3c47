"""Bytes as text on a page: shown as sent, never parsed again, with what cannot be seen made visible."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

from runs.checkpoints import tokens

SHOWN: Final = 64 * 1024
"""Characters of a payload that a page shows; the rest is counted, not shown."""

_HIDDEN: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Co", "Cs", "Cn"})
_PLAIN: Final = frozenset("\n\t ")
_BLANK_LETTERS: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")


class Piece(NamedTuple):
    """A stretch of text, or (``chip``) the name of one character that would not be seen: "U+202E"."""

    text: str
    chip: bool


def _unseen(char: str) -> bool:
    if char in _PLAIN:
        return False
    category = unicodedata.category(char)
    return category in _HIDDEN or category == "Zs" or char in _BLANK_LETTERS


def pieces(text: str) -> Iterator[Piece]:
    """``text`` cut at characters that are invisible, control the direction, or only look like a space; what is sealed
    in it is masked."""
    start = 0
    text = tokens.masked(text)
    for index, char in enumerate(text):
        if _unseen(char):
            if start < index:
                yield Piece(text[start:index], chip=False)
            yield Piece(f"U+{ord(char):04X}", chip=True)
            start = index + 1
    if start < len(text):
        yield Piece(text[start:], chip=False)


def size(count: int) -> str:
    """A number of bytes for reading: "58 bytes", "64 KB", "2.1 MB"; powers of 1,024."""
    if count < 1024:
        return f"{count} B"
    if count < 1024 * 1024:
        return f"{count / 1024:.0f} KB"
    return f"{count / 1024 / 1024:.1f} MB"
