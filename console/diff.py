"""The difference of two JSON values by path; never a difference of text lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

_ABSENT = object()


@dataclass(frozen=True)
class Change:
    """One path that differs. ``before`` and ``after`` are JSON text; empty where the path does not exist."""

    path: str
    kind: Literal["added", "removed", "changed"]
    before: str
    after: str
    note: str = ""

    @property
    def mark(self) -> str:
        """The sign in front of the row."""
        return {"added": "+", "removed": "-", "changed": "~"}[self.kind]


@dataclass(frozen=True)
class Diff:
    """What differs, in path order, and how many leaves are the same."""

    changes: list[Change] = field(default_factory=list)
    same: int = 0


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key in value:
            yield from _leaves(value[key], f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _text(value: Any) -> str:
    return "" if value is _ABSENT else json.dumps(value, ensure_ascii=False)


def difference(before: Any, after: Any, notes: dict[str, str] | None = None) -> Diff:
    """Compare two JSON values leaf by leaf.

    ``notes`` adds a reading aid to a path ("USD 1,250.00 -> USD 1,205.00"), shown beside the values.
    """
    old, new = dict(_leaves(before)), dict(_leaves(after))
    changes, same = [], 0
    for path in sorted({**old, **new}):
        was, now = old.get(path, _ABSENT), new.get(path, _ABSENT)
        if _text(was) == _text(now):
            same += 1
            continue
        kind: Literal["added", "removed", "changed"] = (
            "added" if was is _ABSENT else "removed" if now is _ABSENT else "changed"
        )
        changes.append(Change(path or "$", kind, _text(was), _text(now), (notes or {}).get(path, "")))
    return Diff(changes, same)
