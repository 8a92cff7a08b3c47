"""Reading ``?cursor=&limit=`` and filters; queries nobody knows are refused by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rest_framework.request import Request

from console.api.problems import ApiError
from runs.queries import MOST_ROWS

USUAL_ROWS: Final = 50


class Query:
    """The query of an address. ``known``: the parameters it takes beside ``cursor`` and ``limit``."""

    def __init__(self, request: Request, known: Iterable[str] = (), *, paged: bool = True) -> None:
        self._given = request.query_params
        allowed = set(known) | ({"cursor", "limit"} if paged else set())
        odd = sorted(set(self._given) - allowed)
        if odd:
            takes = ", ".join(sorted(allowed)) or "nothing"
            errors = [(name, f"not a parameter of this address, which takes {takes}") for name in odd]
            raise ApiError("query_invalid", 400, errors=errors)
        # PostgreSQL keeps no NUL in text and takes none in a question either.
        nul = sorted(name for name, values in self._given.lists() if any("\x00" in value for value in values))
        if nul:
            raise ApiError("query_invalid", 400, errors=[(name, "has a NUL character") for name in nul])

    @property
    def cursor(self) -> str | None:
        """The cursor as it was given."""
        return self.one("cursor") or None

    @property
    def limit(self) -> int:
        """Rows of the page. Raises ApiError 400."""
        text = self.one("limit") or str(USUAL_ROWS)
        if not (text.isascii() and text.isdigit() and len(text) < 10) or not 1 <= int(text) <= MOST_ROWS:
            raise ApiError("query_invalid", 400, errors=[("limit", f"has to be 1 to {MOST_ROWS}")])
        return int(text)

    def one(self, name: str) -> str:
        """The value of a parameter that is given at most once; empty without it."""
        values = self._given.getlist(name)
        if len(values) > 1:
            raise ApiError("query_invalid", 400, errors=[(name, "given twice")])
        return str(values[0]) if values else ""

    def several(self, name: str, allowed: Iterable[str] | None = None) -> list[str]:
        """Values given by repetition or with commas, each one of ``allowed``. Raises ApiError 400."""
        values = [part.strip() for text in self._given.getlist(name) for part in text.split(",") if part.strip()]
        if allowed is not None:
            known = [str(value) for value in allowed]
            wrong = [value for value in values if value not in known]
            if wrong:
                raise ApiError("query_invalid", 400, errors=[(name, f"has to be one of {', '.join(known)}")])
        return values[:MOST_ROWS]
