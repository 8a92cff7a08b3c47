"""mail: honours keys, and nothing can be read back."""

from recovery.sandbox.providers.base import Made, Provider, address, mapping, text
from recovery.sandbox.wire import Json


def _item(made: Made, data: Json) -> Json:
    return {
        "id": made.id,
        "object": "message",
        "status": "queued",
        "to": data["to"],
        "template": data["template"],
        "created": made.created,
    }


PROVIDER = Provider(
    name="mail",
    path="/v1/messages",
    prefix="msg_",
    event="message.queued",
    subject="to",
    keys=True,
    fields={"to": address, "template": text, "data": mapping},
    item=_item,
)
