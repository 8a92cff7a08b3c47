"""What is at stake, in words. Amounts are integers of minor units, never rounded, never summed."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from recovery.contract.money import format_money


def amount(minor: int, currency: str) -> str:
    """``minor`` units with the ISO code and all minor digits: (8400, "EUR") is "EUR 84.00"."""
    try:
        return format_money(minor, currency)
    except ValueError:
        # A code that ISO does not list: nothing is guessed about its digits.
        return _("{minor} minor units of {currency}").format(minor=f"{minor:,}", currency=currency)


def at_stake(stake: dict[str, Any] | None) -> str:
    """A stake as stored with the effect: "EUR 84.00 out", "3 e-mails"; empty when nothing was declared."""
    if not stake:
        return ""
    if stake["kind"] == "money":
        said = amount(int(stake["amount"]), str(stake["currency"]))
        return (_("{amount} out") if stake["direction"] == "out" else _("{amount} in")).format(amount=said)
    return f"{stake['n']:,} {stake['noun']}"
