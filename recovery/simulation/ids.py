"""Ids that a seed gives again: UUIDv7 in order, their random part from the seed."""

from __future__ import annotations

import random
import uuid
from typing import Final

_FIRST: Final = 0x019B_0000_0000


class Ids:
    """In the place of ``make_id``, and for the acts of people."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"ids of {seed}")
        self._made = 0

    def __call__(self) -> uuid.UUID:
        """The next id; each is greater than the one before."""
        self._made += 1
        high = (_FIRST + self._made) << 80 | 0x7 << 76 | self._random.getrandbits(12) << 64
        return uuid.UUID(int=high | 0b10 << 62 | self._random.getrandbits(62))
