"""Signatures that an effect needs before it is sent (security rules R1 to R10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A predicate as data, so that the contract's digest covers the limit: the field is ``limit`` or more."""

    field: str
    limit: int

    def __call__(self, params: Any) -> bool:
        return int(getattr(params, self.field)) >= self.limit


@dataclass(frozen=True, slots=True)
class Signatures:
    """How many people of which group sign, when, and the two clocks of R6.

    ``when``: a predicate over the params, or None for always. ``approve_within``: from the request to the
    last signature. ``execute_within``: from the last signature to the send.
    """

    needed: int
    group: str
    when: Callable[[Any], bool] | None
    approve_within: timedelta
    execute_within: timedelta

    def applies(self, params: BaseModel) -> bool:
        """Whether this request needs the signatures."""
        return self.when is None or bool(self.when(params))

    def problems(self) -> Iterator[str]:
        """What is wrong with this rule, one sentence each."""
        if self.needed < 1:
            yield "needed must be at least 1"
        if not self.group:
            yield "group is empty"
        if self.approve_within <= timedelta(0) or self.execute_within <= timedelta(0):
            yield "approve_within and execute_within must be longer than nothing"
