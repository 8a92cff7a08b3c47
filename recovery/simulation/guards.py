"""Guards taken out on purpose, one at a time, in a throw-away database: a check that finds nothing then is no check."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from django.db import connection

from recovery.engine import approvals
from recovery.simulation import moments
from recovery.simulation.swapping import swapped
from runs.sql import install

BREAKABLE: Final = ("fencing", "attempt", "consume")
"""The fencing check of the writer; the attempt that is committed before the send; the request that a send uses up."""

_FENCE: Final = re.compile(r"ELSIF v_mine AND \(v_token <> [^\n]* THEN")


@dataclass(frozen=True)
class Guards:
    """Which guard is out, if one is."""

    broken: str = ""

    def __post_init__(self) -> None:
        if self.broken and self.broken not in BREAKABLE:
            raise ValueError(f"{self.broken!r} is no guard that can be taken out; there are: {', '.join(BREAKABLE)}")

    @property
    def sends_early(self) -> bool:
        """Whether the bytes leave before their attempt is committed."""
        return self.broken == "attempt"

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The guard is out in this block."""
        if self.broken == "fencing":
            _replace(without_fence())
        try:
            with swapped(*([(approvals, "consume", lambda approval: [])] if self.broken == "consume" else [])):
                yield
        finally:
            if self.broken == "fencing":
                _replace(install.function_sql())


def without_fence() -> str:
    """The writer's function with its fencing check taken out. Raises ValueError when there is no such check."""
    whole = install.function_sql()
    if len(_FENCE.findall(whole)) != 1:
        raise ValueError("the writer's function has no fencing check in the known place")
    return _FENCE.sub("ELSIF false THEN", whole)


def _replace(function: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(function, None)
    moments.install()
