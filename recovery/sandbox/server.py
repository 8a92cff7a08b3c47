"""The HTTP side: one thread a connection, kept alive, and able to drop or tear a connection for real."""

import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qsl, urlsplit

from recovery.sandbox import ledger
from recovery.sandbox.callbacks import Callbacks
from recovery.sandbox.clock import now_us
from recovery.sandbox.control import Control
from recovery.sandbox.dials import Dial, Dials
from recovery.sandbox.intake import Arrival, Intake, Stopping
from recovery.sandbox.providers import PROVIDERS
from recovery.sandbox.readback import read_back
from recovery.sandbox.store import Store, StoreClosed
from recovery.sandbox.wire import Json, Reply, error

HOST: Final = "127.0.0.1"
LARGEST: Final = 1_048_576  # bytes of a body
STOP_WITHIN: Final = 0.8  # seconds for the connections' threads to end
REASONS: Final = {code: BaseHTTPRequestHandler.responses[code][0] for code in BaseHTTPRequestHandler.responses}


class _Handler(BaseHTTPRequestHandler):
    """One connection. Answers leave in one write."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "_Server"

    def _serve(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            return self._leave(error(411, "length_required", "give a Content-Length"), close=True)
        if int(length) > LARGEST:
            return self._leave(error(413, "too_large", f"a body has at most {LARGEST} bytes"), close=True)
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True  # the sender went away in the middle of its body
            return None
        received_at = now_us()
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        try:
            self._leave(self._reply(parts.path, query, body, received_at))
        except (Stopping, StoreClosed):
            self.close_connection = True
        return None

    do_GET = do_POST = do_PUT = do_DELETE = _serve

    def _reply(self, path: str, query: dict[str, str], body: bytes, received_at: int) -> Reply:
        sandbox = self.server.sandbox
        method: str = self.command
        if path.startswith("/_"):
            return sandbox.control.answer(method, path, query, body)
        name, _, rest = path[1:].partition("/")
        provider = PROVIDERS.get(name)
        if provider is None or f"/{rest}" != provider.path:
            known = ", ".join(f"/{p.name}{p.path}" for p in PROVIDERS.values())
            return error(404, "not_found", f"{path} is not known here; known: {known}")
        if method == "POST":
            header = self.headers.get
            attempt, token = header("Recourse-Attempt"), header("Recourse-Token")
            arrival = Arrival(name, path, header("Idempotency-Key"), attempt, token, body, received_at)
            return sandbox.intake.take(provider, arrival)
        if method == "GET" and provider.readback:
            return read_back(sandbox.store, sandbox.dials, provider, query)
        return error(405, "method_not_allowed", f"{name} does not answer {method}")

    def _leave(self, reply: Reply, close: bool = False) -> None:
        if close or reply.way != "send":
            self.close_connection = True
        if reply.way == "reset":
            self.server.tear(self.connection)
        if reply.way != "send":
            return
        head = [
            f"HTTP/1.1 {reply.status} {REASONS[reply.status]}",
            f"Content-Type: {reply.content_type}",
            f"Content-Length: {len(reply.body)}",
            *(f"{name}: {value}" for name, value in reply.headers),
        ]
        if self.close_connection:
            head.append("Connection: close")
        self.wfile.write("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + reply.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the ledger is the log."""


class _Server(ThreadingHTTPServer):
    """Knows its open connections, so that stopping ends them at once."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], sandbox: "Sandbox") -> None:
        self.sandbox = sandbox
        self._open: dict[Any, threading.Thread | None] = {}
        self._torn: set[Any] = set()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without asking for the host's name, which can wait on a name server."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def tear(self, connection: socket.socket) -> None:
        """Have this connection end with RST instead of FIN: closing discards what is unsent (SO_LINGER 0)."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._torn.add(connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open[request] = None
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        self._open[request] = threading.current_thread()
        super().process_request_thread(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.pop(request, None)
        if request in self._torn:
            self._torn.discard(request)
            self.close_request(request)  # without the shutdown, which would say FIN first
        else:
            super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no news; anything else is printed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def end_connections(self, within: float) -> None:
        """Cut every open connection and give their threads up to `within` seconds to end."""
        deadline = time.monotonic() + within
        threads = []
        for connection, thread in list(self._open.items()):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it ended by itself meanwhile
            if thread is not None:
                threads.append(thread)
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))


class Sandbox:
    """The stand-in downstream on `db_path`, serving from `start` (or `with`) to `stop`.

    `port` 0 takes a free one. Raises StoreInUse or StoreUnusable for the file, OSError for the port.
    """

    def __init__(self, db_path: str | Path, port: int = 0) -> None:
        self.store = Store(Path(db_path))
        self._stopping = threading.Event()
        try:
            self._server = _Server((HOST, port), self)
        except OSError:
            self.store.close()
            raise
        self.dials = Dials(self.store)
        self._callbacks = Callbacks(self.store)
        self.intake = Intake(self.store, self.dials, self._callbacks.applied, self._stopping)
        self.control = Control(self.store, self.dials, self._callbacks)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="sandbox", daemon=True)

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"http://{HOST}:{self._server.server_port}"

    def start(self) -> Self:
        """Begin to serve."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End within a second: waits are broken off, nothing more is applied, connections are cut."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._server.shutdown()
        self._server.server_close()
        self._server.end_connections(STOP_WITHIN)
        self._callbacks.close(STOP_WITHIN / 8)
        self.store.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def dial(self, provider: str, **settings: Any) -> Dial:
        """Set a provider's dials. Raises UnknownProvider, BadDial."""
        return self.dials.set(provider, settings)

    def reset(self, provider: str | None = None) -> None:
        """Reset one provider's dials, or all. The ledger stays."""
        for name in [provider] if provider else PROVIDERS:
            self.dials.reset(name)

    def ledger(self, intent: str | None = None) -> list[Json]:
        """The ledger's entries, of one intent or all."""
        return ledger.intents(self.store, intent)

    def requests(self, intent: str | None = None) -> list[Json]:
        """The requests received, of one intent or all."""
        return ledger.requests(self.store, intent)

    def callbacks(self) -> list[Json]:
        """The callbacks sent."""
        return self._callbacks.sent()

    def applied(self, key: str) -> int:
        """How often the intent `key` took effect."""
        return ledger.applied(self.store, key)
