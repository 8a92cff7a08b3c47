"""A checkpoint's content as JSON, in full before anything is written. What cannot be stored is named by its path."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import orjson


class Unserialisable(ValueError):
    """A value that JSON cannot carry. ``path`` names the field, as in ``data.customer.born``."""

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(f"{path}: a value of type {kind} cannot be stored in a checkpoint")
        self.path = path


def encode(content: Mapping[str, Any]) -> bytes:
    """``content`` as JSON. Raises Unserialisable naming the first field that JSON cannot carry."""
    strange = _strange(content)
    if strange is not None:
        raise Unserialisable(strange[0].lstrip("."), strange[1])
    return orjson.dumps(content)


def _strange(value: Any) -> tuple[str, str] | None:
    """Path and kind of the first value in ``value`` that JSON cannot carry, or None.

    Each value of each checkpoint passes here: by exact type first, and a path is written only where one is needed.
    """
    kind = type(value)
    if kind is str:
        return None if value.isascii() else _text(value)
    if kind is dict:
        for name, item in value.items():
            if type(name) is not str and not isinstance(name, str):
                return f".{name}", f"key {type(name).__name__}"
            found = _strange(item)
            if found is not None:
                return f".{name}{found[0]}", found[1]
        return None
    if kind is list or kind is tuple:
        for index, item in enumerate(value):
            found = _strange(item)
            if found is not None:
                return f"[{index}]{found[0]}", found[1]
        return None
    if value is None or kind is bool:
        return None
    if kind is int:
        return None if -(2**63) <= value < 2**64 else ("", "int beyond 64 bits")
    if kind is float:
        return None if math.isfinite(value) else ("", f"float {value}")
    return _subclass(value)


def _text(value: str) -> tuple[str, str] | None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return "", "str with half of a surrogate pair"
    return None


def _subclass(value: Any) -> tuple[str, str] | None:
    """What is one of JSON's kinds by descent: a StrEnum, an IntEnum, another mapping."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return _strange(int(value))
    if isinstance(value, float):
        return _strange(float(value))
    if isinstance(value, Mapping):
        return _strange(dict(value))
    if isinstance(value, list | tuple):
        return _strange(list(value))
    return "", type(value).__name__
