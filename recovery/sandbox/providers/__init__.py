"""The four providers, one module each: what they take, what they answer, and what they promise."""

from typing import Final

from recovery.sandbox.providers import cards_eu, mail, notices, payments
from recovery.sandbox.providers.base import Provider

PROVIDERS: Final[dict[str, Provider]] = {
    provider.name: provider for provider in (payments.PROVIDER, cards_eu.PROVIDER, mail.PROVIDER, notices.PROVIDER)
}
