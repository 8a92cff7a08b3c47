"""payments: honours keys, and its readback knows our reference."""

from recovery.sandbox.providers.base import REFUND_FIELDS, Made, Provider, refund
from recovery.sandbox.wire import Json


def _item(made: Made, data: Json) -> Json:
    return refund(made, data) | {"reference": made.key}


PROVIDER = Provider(
    name="payments",
    path="/v1/refunds",
    prefix="re_",
    event="refund.succeeded",
    subject="charge",
    keys=True,
    fields=REFUND_FIELDS,
    item=_item,
    filters=("reference", "charge"),
)
