"""The data of a declaration, without its sentences and its code: what a contract's digest covers.

A digest that changes for reasons nobody meant gets switched off within a day. So a translated sentence counts
as "there is one", a function as "there is one"; a limit that matters is written as data (``AtLeast``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import date, timedelta
from enum import Enum
from typing import Any

from django.utils.functional import Promise as LazyText

TEXT_FIELDS = frozenset({"describe", "irreversible", "says", "residual", "title", "source"})


def declared(value: Any) -> Any:
    """JSON values for ``value``; lengths of time in seconds."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, timedelta):
        total = value.total_seconds()
        return int(total) if total.is_integer() else total
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, LazyText):
        return {"text": True}
    if isinstance(value, type):
        return {"class": value.__name__}
    if callable(getattr(value, "declared", None)):
        return value.declared()
    if dataclasses.is_dataclass(value):
        fields = {
            f.name: {"text": True} if _sentence(f.name, getattr(value, f.name)) else declared(getattr(value, f.name))
            for f in dataclasses.fields(value)
            # A field that was added later and is left out changes no digest of before.
            if f.default is not None or getattr(value, f.name) is not None
        }
        return {"is": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {str(key): declared(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted((declared(item) for item in value), key=str)
    if isinstance(value, list | tuple):
        return [declared(item) for item in value]
    return {"code": True}


def _sentence(name: str, value: Any) -> bool:
    return name in TEXT_FIELDS and value is not None


_SENTENCES = frozenset({"title", "description", "examples"})
_NAMED = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})


def bare_schema(schema: Any) -> Any:
    """A JSON Schema without its sentences: a docstring must not change a digest. Property names stay,
    whatever they are."""
    if isinstance(schema, list):
        return [bare_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: bare_schema(item) for name, item in value.items()} if key in _NAMED else bare_schema(value)
        for key, value in schema.items()
        if key not in _SENTENCES
    }
