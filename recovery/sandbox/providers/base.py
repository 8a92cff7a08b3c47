"""What a provider is, and the checks of fields that providers share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from recovery.sandbox.wire import Json

type Check = Callable[[object], str | None]


@dataclass(frozen=True, slots=True)
class Made:
    """What the sandbox adds to a request that took effect: the id, the key as sent, and when (ISO 8601)."""

    id: str
    key: str | None
    created: str


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider's shape.

    `fields` names each required field with its check; `subject` is the field that readback can search by;
    `filters` are the query parameters of readback (none: there is no readback); `keys` says whether it
    honours Idempotency-Key until a dial says otherwise; `item` builds what is answered and read back; `event`
    is the type of the callback it sends.
    """

    name: str
    path: str
    prefix: str
    event: str
    subject: str
    keys: bool
    fields: Mapping[str, Check]
    item: Callable[[Made, Json], Json]
    filters: tuple[str, ...] = field(default=())

    @property
    def readback(self) -> bool:
        """Whether anything can be read back."""
        return bool(self.filters)

    def problems(self, data: Json) -> list[Json]:
        """One line for each field that is missing or wrong: {"name", "problem"}."""
        found: list[Json] = []
        for name, check in self.fields.items():
            said = check(data[name]) if name in data else "is missing"
            if said is not None:
                found.append({"name": name, "problem": said})
        return found


def text(value: object) -> str | None:
    """A text that is not empty."""
    return None if isinstance(value, str) and value.strip() else "must be a text that is not empty"


def address(value: object) -> str | None:
    """Something with an @ between two parts."""
    if isinstance(value, str):
        before, at, after = value.partition("@")
        if before and at and after:
            return None
    return "must be an e-mail address"


def amount(value: object) -> str | None:
    """A positive whole number of minor units; a bool is none."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return None
    return "must be a positive whole number of minor units"


def currency(value: object) -> str | None:
    """Three capital letters (ISO 4217)."""
    if isinstance(value, str) and len(value) == 3 and value.isascii() and value.isalpha() and value.isupper():
        return None
    return "must be three capital letters"


def mapping(value: object) -> str | None:
    """A JSON object."""
    return None if isinstance(value, dict) else "must be an object"


REFUND_FIELDS: Final[Mapping[str, Check]] = {"charge": text, "amount": amount, "currency": currency}


def refund(made: Made, data: Json) -> Json:
    """A refund as both card providers show it, without a reference."""
    return {
        "id": made.id,
        "object": "refund",
        "status": "succeeded",
        "charge": data["charge"],
        "amount": data["amount"],
        "currency": data["currency"],
        "created": made.created,
    }
