"""Money in ISO 4217 minor units, as the screens word it: code, all digits, never rounded."""

from __future__ import annotations

import pytest

from recovery.contract import Count, Money
from recovery.contract.money import format_money, minor_digits, stake_from


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (8400, "EUR", "EUR 84.00"),
        (125_000, "USD", "USD 1,250.00"),
        (120_500, "USD", "USD 1,205.00"),
        (1, "EUR", "EUR 0.01"),
        (0, "EUR", "EUR 0.00"),
        (-5, "EUR", "EUR -0.05"),
        (8400, "JPY", "JPY 8,400"),
        (1234, "KWD", "KWD 1.234"),
        (10_000, "HUF", "HUF 100.00"),
        (10_000, "IQD", "IQD 10.000"),
        (9_007_199_254_740_991, "USD", "USD 90,071,992,547,409.91"),
    ],
)
def test_all_minor_digits_of_the_currency(amount: int, currency: str, text: str) -> None:
    """ISO's minor units; HUF and IQD are two where what shops round differs."""
    assert format_money(amount, currency) == text


@pytest.mark.parametrize("currency", ["EURO", "eur", "XXY", "", "XAU"])
def test_an_unknown_currency_is_refused(currency: str) -> None:
    with pytest.raises(ValueError, match="ISO 4217|minor unit"):
        minor_digits(currency)
    with pytest.raises(ValueError):
        Money("out", 1, currency)


def test_a_direction_is_out_or_in() -> None:
    with pytest.raises(ValueError, match="out"):
        Money("away", 1, "EUR")


@pytest.mark.parametrize("stake", [Money("in", 8400, "EUR"), Count(3, "e-mail"), None])
def test_a_stake_survives_its_column(stake: Money | Count | None) -> None:
    assert stake_from(None if stake is None else stake.as_stake()) == stake


def test_a_kind_nobody_wrote_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        stake_from({"kind": "feeling"})
