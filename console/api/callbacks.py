"""``callbacks/{dependency}``: messages of the other side, signed by the Standard Webhooks scheme; no token.

Whatever does not verify gets the same 401, whether the dependency exists or not, and leaves nothing behind but a line
in the log, at most one a second. A genuine message is answered 204, also when it came before or matches nothing here:
the other side can do nothing about that.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar, Final
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from console.api import schema
from console.api.base import Endpoint
from console.api.limits import Buckets
from console.api.parsing import is_count as _is_count
from console.api.problems import ApiError
from recovery.traffic import callbacks
from runs.models import Dependency

log = logging.getLogger("recourse.callbacks")

LINES: Final = Buckets(rate=1.0, burst=5.0)
_HEADERS: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")


class DependencyCallbacks(Endpoint):
    """Messages about effects at one dependency."""

    needs: ClassVar[dict[str, tuple[str, ...]]] = {"POST": ()}
    authentication_classes: ClassVar[Any] = []
    permission_classes: ClassVar[Any] = []
    throttle_classes: ClassVar[Any] = []  # the caller is known by its signature alone, which is checked first

    @schema.hears("Receive a signed message")
    def post(self, request: Request, dependency: UUID) -> Response:
        """204 once it is recorded; 401 for what is not genuine, 409 for an id that was used for another body."""
        body = self._body(request)
        headers = {name: request.headers.get(name, "") for name in _HEADERS}
        found = Dependency.objects.filter(pk=dependency).first()
        try:
            if found is None:
                raise callbacks.Forged
            sent_at = callbacks.verify(found, headers, body)
        except callbacks.Forged:
            if LINES.take("refused") == 0.0:
                log.warning("a message for dependency %s was refused: not signed by it, or too old", dependency)
            raise ApiError("callback_refused", 401) from None
        message = headers["webhook-id"]
        if len(message) > callbacks.LONGEST_ID or not message.isprintable():
            raise ApiError("callback_refused", 401)
        if callbacks.receive(found, message, body, sent_at) is callbacks.Heard.OTHER_BODY:
            raise ApiError("callback_mismatch", 409)
        return Response(status=204)

    def _body(self, request: Request) -> bytes:
        declared = request.headers.get("Content-Length", "")
        if not _is_count(declared) or int(declared) > callbacks.MOST_BYTES:
            raise ApiError("body_too_large", 413, most=callbacks.MOST_BYTES)
        # The exact bytes: what is signed must not be parsed and written again.
        return request._request.body
