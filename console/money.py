"""What is at stake, in words. Amounts are integers of minor units and are never rounded or summed over currencies."""

from __future__ import annotations

from functools import cache
from typing import Any

from babel.core import get_global
from babel.numbers import get_currency_precision, list_currencies
from django.utils.translation import gettext as _


@cache
def _digits(currency: str) -> int | None:
    """Minor digits of an ISO 4217 code, or None when the code is not known (then nothing is guessed)."""
    if currency in get_global("currency_fractions") or currency in list_currencies():
        return get_currency_precision(currency)
    return None


def amount(minor: int, currency: str) -> str:
    """``minor`` units with the ISO code and every minor digit: (8400, "EUR") is "EUR 84.00"; exact for any size."""
    digits = _digits(currency)
    if digits is None:
        return _("{minor} minor units of {currency}").format(minor=f"{minor:,}", currency=currency)
    sign, whole = ("-", -minor) if minor < 0 else ("", minor)
    if digits == 0:
        return f"{currency} {sign}{whole:,}"
    units, rest = divmod(whole, 10**digits)
    return f"{currency} {sign}{units:,}.{rest:0{digits}d}"


def at_stake(stake: dict[str, Any] | None) -> str:
    """A stake as stored with the effect: "EUR 84.00 out", "3 e-mails"; empty when nothing was declared."""
    if not stake:
        return ""
    if stake["kind"] == "money":
        said = amount(int(stake["amount"]), str(stake["currency"]))
        return (_("{amount} out") if stake["direction"] == "out" else _("{amount} in")).format(amount=said)
    return f"{stake['n']:,} {stake['noun']}"
