"""Signed callbacks (Standard Webhooks): sent once each, after the effect; what became of them is kept."""

import queue
import secrets
import threading
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from typing import Final

from standardwebhooks import Webhook

from recovery.sandbox.clock import iso, now_us
from recovery.sandbox.dials import Dial
from recovery.sandbox.providers.base import Provider
from recovery.sandbox.store import Store, StoreClosed
from recovery.sandbox.wire import Json, dump

TIMEOUT: Final = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class Callback:
    """One callback to send: the exact `body` is what is signed."""

    id: str
    provider: str
    url: str
    secret: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a callback: the receiver's status, or the error that kept it from answering."""

    id: str
    status: int | None
    error: str | None

    def shown(self) -> Json:
        """For the answer of /_callbacks/send."""
        return asdict(self)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


# No proxy and no redirect: a callback goes where it was told, and nowhere else.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())


class Callbacks:
    """Sends callbacks, at once or by its own thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: queue.SimpleQueue[Callback | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="sandbox-callbacks", daemon=True)
        self._thread.start()

    def applied(self, provider: Provider, dial: Dial, item: Json) -> None:
        """Send one callback for a new effect, if the dial names where to."""
        if dial.callback_url and dial.callback_secret:
            event = {"type": provider.event, "timestamp": iso(now_us()), "data": item}
            self._waiting.put(new(provider.name, dial.callback_url, dial.callback_secret, event))

    def send(self, callback: Callback) -> Delivery:
        """Sign and send now, one try; keeps and returns what became of it."""
        sent_at = now_us()
        moment = datetime.fromtimestamp(sent_at // 1_000_000, tz=UTC)
        signature = Webhook(callback.secret).sign(callback.id, moment, callback.body.decode())
        request = urllib.request.Request(
            callback.url,
            data=callback.body,
            method="POST",
            headers={
                "Content-Type": "application/json",
                "webhook-id": callback.id,
                "webhook-timestamp": str(int(moment.timestamp())),
                "webhook-signature": signature,
            },
        )
        delivery = _deliver(callback.id, request)
        with self._store.transaction() as db:
            db.execute(
                "insert into callbacks (id, provider, url, event, sent_at, status, error) values (?, ?, ?, ?, ?, ?, ?)",
                (
                    callback.id,
                    callback.provider,
                    callback.url,
                    callback.body.decode(),
                    sent_at,
                    delivery.status,
                    delivery.error,
                ),
            )
        return delivery

    def sent(self) -> list[Json]:
        """All callbacks sent, in order."""
        rows = self._store.rows("select id, provider, url, event, sent_at, status, error from callbacks order by seq")
        return [dict(row) | {"sent_at": iso(row["sent_at"])} for row in rows]

    def close(self, timeout: float) -> None:
        """Stop the thread, waiting at most `timeout` seconds for a callback under way."""
        self._waiting.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        while (callback := self._waiting.get()) is not None:
            try:
                self.send(callback)
            except StoreClosed:
                return  # it was under way when the sandbox ended, and has nowhere to be kept


def new(provider: str, url: str, secret: str, event: Json, id: str | None = None) -> Callback:
    """A callback about `event`; give `id` to send the same one again."""
    return Callback(id or f"msg_{secrets.token_hex(12)}", provider, url, secret, dump(event))


def _deliver(id: str, request: urllib.request.Request) -> Delivery:
    try:
        with _OPENER.open(request, timeout=TIMEOUT) as response:
            return Delivery(id, response.status, None)
    except urllib.error.HTTPError as answered:
        answered.close()
        return Delivery(id, answered.code, None)
    except (OSError, HTTPException) as failed:
        return Delivery(id, None, str(failed) or type(failed).__name__)
