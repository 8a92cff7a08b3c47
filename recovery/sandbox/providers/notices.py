"""notices: neither keys nor readback; on doubt only a person can say."""

from recovery.sandbox.providers.base import Made, Provider, text
from recovery.sandbox.wire import Json


def _item(made: Made, data: Json) -> Json:
    return {"id": made.id, "object": "notice", "status": "posted", "to": data["to"], "created": made.created}


PROVIDER = Provider(
    name="notices",
    path="/v1/notices",
    prefix="nt_",
    event="notice.posted",
    subject="to",
    keys=False,
    fields={"to": text, "text": text},
    item=_item,
)
