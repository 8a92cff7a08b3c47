"""A sandbox in process on its own file, and plain HTTP to speak with it."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from recovery.sandbox.server import Sandbox

BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "payments": ("/payments/v1/refunds", {"charge": "ch_3QK9", "amount": 8400, "currency": "EUR"}),
    "cards-eu": ("/cards-eu/v1/refunds", {"charge": "ch_3QK9", "amount": 8400, "currency": "EUR"}),
    "mail": ("/mail/v1/messages", {"to": "ada@shop.example", "template": "refunded", "data": {"n": 1}}),
    "notices": ("/notices/v1/notices", {"to": "desk-4", "text": "Order 7 was cancelled"}),
}


@dataclass
class Answered:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """HTTP to `url`, each call on a connection of its own."""

    def __init__(self, url: str) -> None:
        self.host = urlsplit(url).netloc

    def ask(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answered:
        connection = http.client.HTTPConnection(self.host, timeout=10)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answered(response.status, response.headers, response.read())
        finally:
            connection.close()

    def post(
        self, provider: str, key: str | None = None, headers: dict[str, str] | None = None, **changes: Any
    ) -> Answered:
        """A good request to `provider`, with `changes`; a change to None leaves the field out."""
        path, body = BODIES[provider]
        whole = {name: value for name, value in {**body, **changes}.items() if value is not None}
        sent = dict(headers or {}) | ({"Idempotency-Key": key} if key else {})
        return self.ask("POST", path, json.dumps(whole).encode(), sent)

    def get(self, path: str) -> Answered:
        return self.ask("GET", path)

    def put(self, path: str, value: Any) -> Answered:
        return self.ask("PUT", path, json.dumps(value).encode())


@dataclass
class Received:
    headers: dict[str, str]
    body: bytes


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(tmp_path / "sandbox.db") as running:
        yield running


@pytest.fixture
def wire(sandbox: Sandbox) -> Wire:
    return Wire(sandbox.url)


@pytest.fixture
def wire_to() -> Callable[[str], Wire]:
    return Wire


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[Received], threading.Semaphore]]:
    """A callback receiver: its address, what came in, and a semaphore raised by each arrival."""
    came: list[Received] = []
    arrived = threading.Semaphore(0)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.append(Received({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(302 if self.path == "/elsewhere" else 204)
            if self.path == "/elsewhere":
                self.send_header("Location", "/callbacks")
            self.end_headers()
            arrived.release()

        def log_message(self, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", came, arrived
        server.shutdown()
        thread.join()
