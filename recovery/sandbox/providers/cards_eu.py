"""cards-eu: knows no keys, so each request takes effect; its readback never shows our reference."""

from recovery.sandbox.providers.base import REFUND_FIELDS, Provider, refund

PROVIDER = Provider(
    name="cards-eu",
    path="/v1/refunds",
    prefix="re_",
    event="refund.succeeded",
    subject="charge",
    keys=False,
    fields=REFUND_FIELDS,
    item=refund,
    filters=("charge",),
)
