"""What differs between two declarations: the paths of the declarative part, what stood there and what stands there now.

Pure. Both sides are what ``declared`` gave, from this code or from the record: sentences and functions are in neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final


class _Absent:
    """Stands where one side has nothing."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Difference:
    """One path, as ``retry.attempts`` or ``evidence[2]``. ``was`` and ``now``: JSON values, or ABSENT."""

    path: str
    was: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.path}: {self.was!r} -> {self.now!r}"

    def as_json(self) -> dict[str, Any]:
        """Only the sides that there are."""
        sides = {"was": self.was, "now": self.now}
        return {"path": self.path} | {name: side for name, side in sides.items() if side is not ABSENT}


def differences(was: Any, now: Any) -> list[Difference]:
    """Everything that differs, by path. Lists of words (statuses, classes) are compared as sets of words."""
    return list(_walk("", was, now))


def _walk(path: str, was: Any, now: Any) -> Iterator[Difference]:
    if was == now:
        return
    if isinstance(was, dict) and isinstance(now, dict):
        for key in sorted({*was, *now}):
            yield from _walk(f"{path}.{key}" if path else key, was.get(key, ABSENT), now.get(key, ABSENT))
    elif _words(was) and _words(now):
        for word in sorted({*was, *now} - ({*was} & {*now}), key=str):
            before, after = (word if word in side else ABSENT for side in (was, now))
            yield Difference(f"{path}[{word}]", before, after)
    elif isinstance(was, list) and isinstance(now, list):
        for index in range(max(len(was), len(now))):
            before, after = (side[index] if index < len(side) else ABSENT for side in (was, now))
            yield from _walk(f"{path}[{index}]", before, after)
    else:
        yield Difference(path, was, now)


def _words(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(one, str | int) for one in value) and len(set(value)) == len(value)
