"""The HTTP port, on httpx: one send, explicit limits, and an honest word about what may have left.

No redirects, no proxies or settings from the environment, no repeats of its own, no decompression, at most 1
MB of answer. A connection that was never made is ``not_sent``; whatever fails after that is ``lost``.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import httpx
from pydantic import BaseModel

from recovery.contract import canonical
from recovery.contract.sealed import plain
from recovery.ports.base import Answer, AnswerKind, Prepared

MAX_ANSWER: Final = 1_000_000
LIMITS: Final = httpx.Limits(max_connections=128, max_keepalive_connections=64, keepalive_expiry=4.0)
"""Idle connections are dropped before a usual server does it, so that fewer sends meet a closing one."""

NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
KEY_HEADER: Final = "Idempotency-Key"
ATTEMPT_HEADER: Final = "Recourse-Attempt"
TOKEN_HEADER: Final = "Recourse-Token"

_READ_HEADERS: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"Accept", b"application/json"),
    (b"Accept-Encoding", b"identity"),
    (b"User-Agent", b"Recourse"),
)
_SEND_HEADERS: Final = (*_READ_HEADERS, (b"Content-Type", b"application/json"))


class _Left(dict[str, float]):
    """httpx's timeouts, all of them "what is left of this call": one limit for connect, write and read
    together."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__()
        self.end = time.monotonic() + timeout_s

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ARG002
        return max(self.end - time.monotonic(), 0.001)


class _Transport:
    """One httpx transport a process, made when first used and again in a forked child.

    The transport is used without httpx.Client: nothing a client adds (redirects, cookies, environment, auth)
    is wanted here, and it doubles the work of a call.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: httpx.HTTPTransport | None = None
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        # The sockets belong to the parent: a child that used them would mix two conversations.
        self._lock = threading.Lock()
        self._made = None

    def get(self) -> httpx.BaseTransport:
        if stand_in is not None:
            return stand_in
        made = self._made
        if made is None:
            with self._lock:
                if self._made is None:
                    self._made = httpx.HTTPTransport(trust_env=False, limits=LIMITS, retries=0)
                made = self._made
        return made

    def close(self) -> None:
        with self._lock:
            if self._made is not None:
                self._made.close()
                self._made = None


stand_in: httpx.BaseTransport | None = None
"""In the network's place, where a simulation runs without one."""

_transport: Final = _Transport()


def close_connections() -> None:
    """Close this process's idle connections; the next send opens new ones."""
    _transport.close()


@lru_cache(maxsize=1024)
def _url(url: str) -> httpx.URL:
    return httpx.URL(url)


@dataclass(frozen=True, kw_only=True)
class HttpPort:
    """One HTTP operation.

    ``method`` and ``path`` (starting with "/", joined to the dependency's base URL). ``body(params)``: a JSON
    value. ``headers``: fixed extra headers; what the other side's contract asks for.
    """

    method: str
    path: str
    body: Callable[[Any], Any]
    headers: Mapping[str, str] = field(default_factory=dict)

    def prepare(self, params: BaseModel, base_url: str, credential: str) -> Prepared:
        """The request with its body as canonical bytes, made once: what is signed is what is sent."""
        url = f"{base_url.rstrip('/')}{self.path}"
        return Prepared(self.method, url, canonical.dumps(plain(self.body(params))), credential)

    def send(
        self,
        prepared: Prepared,
        *,
        key: str,
        attempt_id: UUID | str,
        token: int,
        timeout_s: float,
        authorization: str | None = None,
    ) -> Answer:
        """Send once; ``timeout_s`` limits the whole call. Never raises for network or answer."""
        headers = [
            *_SEND_HEADERS,
            (b"Content-Length", str(len(prepared.body)).encode()),
            (KEY_HEADER.encode(), key.encode("ascii")),
            (ATTEMPT_HEADER.encode(), str(attempt_id).encode("ascii")),
            (TOKEN_HEADER.encode(), str(token).encode("ascii")),
            *((name.encode("ascii"), value.encode("ascii")) for name, value in self.headers.items()),
        ]
        return call(prepared.method, prepared.url, headers, prepared.body, timeout_s, authorization)

    def read(self, url: str, *, timeout_s: float, authorization: str | None = None) -> Answer:
        """GET ``url`` once. Never raises for network or answer."""
        return call("GET", url, list(_READ_HEADERS), b"", timeout_s, authorization)

    def declared(self) -> dict[str, Any]:
        """For the contract's digest."""
        return {"is": "HttpPort", "method": self.method, "path": self.path, "headers": dict(self.headers)}


def call(
    method: str,
    url: str,
    headers: list[tuple[bytes, bytes]],
    body: bytes,
    timeout_s: float,
    authorization: str | None,
) -> Answer:
    """One request and its whole answer, or why there is none."""
    sent_at = datetime.now(UTC)
    began = time.monotonic()
    left = _Left(timeout_s)

    def ended(kind: AnswerKind, error: str | None, **more: Any) -> Answer:
        elapsed = (time.monotonic() - began) * 1000
        return Answer(kind, sent_at, datetime.now(UTC), error=error, elapsed_ms=elapsed, **more)

    try:
        target = _url(url)
        headers.append((b"Host", target.netloc))
        if authorization is not None:
            headers.append((b"Authorization", authorization.encode("ascii")))
        request = httpx.Request(method, target, headers=headers, content=body, extensions={"timeout": left})
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        return ended(AnswerKind.NOT_SENT, _word(error))
    try:
        response = _transport.get().handle_request(request)
    except NOT_SENT as error:
        return ended(AnswerKind.NOT_SENT, _word(error))
    except httpx.TransportError as error:
        return ended(AnswerKind.LOST, _word(error))
    try:
        raw = _read(response, left)
    except httpx.TransportError as error:
        return ended(AnswerKind.LOST, _word(error), status=response.status_code)
    except _Refused as error:
        return ended(AnswerKind.LOST, error.word, status=response.status_code)
    finally:
        response.close()
    told = {name.lower(): value for name, value in response.headers.items()}
    return ended(AnswerKind.ANSWERED, None, status=response.status_code, headers=told, body=raw)


class _Refused(Exception):
    """The answer is not read to its end."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


def _read(response: httpx.Response, left: _Left) -> bytes:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _Refused("answer_encoded")
    parts: list[bytes] = []
    size = 0
    for part in response.stream:  # type: ignore[union-attr]
        size += len(part)
        if size > MAX_ANSWER:
            raise _Refused("answer_too_large")
        if time.monotonic() > left.end:
            raise _Refused("timeout")
        parts.append(part)
    return b"".join(parts)


_WORDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (httpx.ConnectTimeout, "connect_timeout"),
    (httpx.PoolTimeout, "no_free_connection"),
    (httpx.ConnectError, "connect_failed"),
    (httpx.UnsupportedProtocol, "bad_address"),
    (httpx.InvalidURL, "bad_address"),
    (UnicodeEncodeError, "bad_header"),
    (httpx.TimeoutException, "timeout"),
    (httpx.RemoteProtocolError, "connection_closed"),
    (httpx.LocalProtocolError, "bad_request"),
    (httpx.NetworkError, "reset"),
)


def _word(error: Exception) -> str:
    for kind, word in _WORDS:
        if isinstance(error, kind):
            return word
    return "transport_failed"
