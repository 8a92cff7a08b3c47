"""Other parts in the places that the code leaves for them, and the old ones back afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def swapped(*places: tuple[Any, str, Any]) -> Iterator[None]:
    """Put a value at each (object, name) for the length of the block."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _value in places]
    for owner, name, value in places:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
