"""What the screens call "at stake": money in or out, or a count of things.

Amounts are integers of the currency's minor unit as ISO 4217 publishes it (not as people round it in shops,
which is what CLDR knows and differs for a dozen currencies).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from iso4217 import Currency


@cache
def minor_digits(currency: str) -> int:
    """Digits after the point of an ISO 4217 currency.

    Raises ValueError for a code that ISO does not list or that has no minor unit (gold, test codes).
    """
    try:
        exponent = Currency(currency).exponent
    except ValueError as error:
        raise ValueError(f"{currency!r} is not an ISO 4217 currency") from error
    if exponent is None:
        raise ValueError(f"{currency} has no minor unit")
    return int(exponent)


def format_money(amount: int, currency: str) -> str:
    """``EUR 84.00`` from 8400 and ``EUR``: ISO code, every minor digit, grouped, the same in each
    language."""
    digits = minor_digits(currency)
    sign = "-" if amount < 0 else ""
    whole, rest = divmod(abs(amount), 10**digits)
    return f"{currency} {sign}{whole:,}.{rest:0{digits}d}" if digits else f"{currency} {sign}{whole:,}"


@dataclass(frozen=True, slots=True)
class Money:
    """``direction`` "out" or "in", ``amount`` in minor units, ISO ``currency``."""

    direction: str
    amount: int
    currency: str

    def __post_init__(self) -> None:
        if self.direction not in ("out", "in"):
            raise ValueError('direction is "out" or "in"')
        minor_digits(self.currency)

    def __str__(self) -> str:
        return format_money(self.amount, self.currency)

    def as_stake(self) -> dict[str, Any]:
        """As an effect's ``stake`` column keeps it."""
        return {
            "kind": "money",
            "direction": self.direction,
            "amount": self.amount,
            "currency": self.currency,
        }


@dataclass(frozen=True, slots=True)
class Count:
    """``n`` things called ``noun``, an English singular that the screens translate ("e-mail", "notice")."""

    n: int
    noun: str

    def __str__(self) -> str:
        return f"{self.n:,} {self.noun}"

    def as_stake(self) -> dict[str, Any]:
        """As an effect's ``stake`` column keeps it."""
        return {"kind": "count", "n": self.n, "noun": self.noun}


Stake = Money | Count


def stake_from(stored: Mapping[str, Any] | None) -> Stake | None:
    """The stake from its column; None stays None. Raises ValueError for a kind nobody wrote."""
    if stored is None:
        return None
    match stored["kind"]:
        case "money":
            return Money(stored["direction"], stored["amount"], stored["currency"])
        case "count":
            return Count(stored["n"], stored["noun"])
        case kind:
            raise ValueError(f"unknown kind of stake {kind!r}")
