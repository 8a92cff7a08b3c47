"""The HTTP port: the shared conformance, and what only HTTP can get wrong."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from recovery.ports.base import Answer, AnswerKind, Port
from recovery.ports.http import HttpPort, close_connections
from recovery.sandbox.server import Sandbox
from tests.recovery.ports.conformance import ATTEMPT, PortConformance, Refund, sandbox

__all__ = ["sandbox"]

PORT = HttpPort(
    method="POST",
    path="/v1/refunds",
    body=lambda p: {"charge": p.charge, "amount": p.amount, "currency": p.currency},
)


@pytest.fixture(autouse=True)
def _fresh_connections() -> Iterator[None]:
    """No idle connection of one test meets the server of the next."""
    close_connections()
    yield
    close_connections()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class TestConformance(PortConformance):
    def port(self) -> Port:
        return PORT

    def base(self, sandbox: Sandbox) -> str:
        return f"{sandbox.url}/payments"

    def nowhere(self) -> str:
        return f"http://127.0.0.1:{_free_port()}/payments"


@contextmanager
def raw_server(speak: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that reads one request a connection and then says what ``speak`` says."""
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            try:
                connection, _address = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    seen = b""
                    while b"\r\n\r\n" not in seen or not seen.endswith(b"}"):
                        more = connection.recv(65_536)
                        if not more:
                            break
                        seen += more
                    speak(connection)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stop.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def send(base: str, timeout_s: float = 2.0, port: HttpPort = PORT, **more: Any) -> Answer:
    prepared = port.prepare(Refund(), base, "alias")
    return port.send(prepared, key="k", attempt_id=ATTEMPT, token=1, timeout_s=timeout_s, **more)


HEAD = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"", "connection_closed"),
        (b"not HTTP at all\r\n\r\n", "connection_closed"),
        (b"HTTP/1.1 201 Created\r\nContent-", "connection_closed"),
        (HEAD + b'Content-Length: 50\r\n\r\n{"id":', "connection_closed"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "connection_closed"),
        (HEAD + b"Content-Length: 2000000\r\n\r\n" + b"x" * 1_100_000, "answer_too_large"),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx", "answer_encoded"),
    ],
    ids=["nothing", "nonsense", "half a head", "half a body", "bad chunk", "too large", "encoded"],
)
def test_half_an_answer_is_lost(said: bytes, error: str) -> None:
    """Anything but one whole, plain answer of at most 1 MB: the request may have been done (invariant 4)."""
    with raw_server(lambda connection: connection.sendall(said)) as base:
        answer = send(base)
    assert (answer.kind, answer.error, answer.body) == (AnswerKind.LOST, error, b"")


def test_a_drip_of_bytes_ends_at_the_limit() -> None:
    """The limit is of the whole call: a byte now and then does not stretch it."""

    def drip(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
        for _ in range(100):
            connection.sendall(b" ")
            time.sleep(0.05)

    with raw_server(drip) as base:
        answer = send(base, timeout_s=0.4)
    assert (answer.kind, answer.error) == (AnswerKind.LOST, "timeout")
    assert answer.elapsed_ms < 1_500


def test_a_redirect_is_not_followed() -> None:
    """Trap 17: the bytes go where they were signed for, and nowhere else."""
    hits = []

    def elsewhere(connection: socket.socket) -> None:
        hits.append(1)
        connection.sendall(b"HTTP/1.1 307 Temporary\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n")

    with raw_server(elsewhere) as base:
        answer = send(base)
    assert (answer.kind, answer.status, len(hits)) == (AnswerKind.ANSWERED, 307, 1)


def test_the_environment_changes_nothing(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """trust_env is off: a proxy variable or a .netrc must not move money's path."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{_free_port()}")
    assert send(f"{sandbox.url}/payments").status == 201


def test_a_name_that_does_not_exist_is_not_sent() -> None:
    """Fault 14: name lookup before any byte."""
    answer = send("http://no-such-host.invalid")
    assert (answer.kind, answer.error) == (AnswerKind.NOT_SENT, "connect_failed")


@pytest.mark.parametrize("base", ["ftp://127.0.0.1", "http://[bad", "http://127.0.0.1:99999"])
def test_an_address_that_is_none_is_not_sent(base: str) -> None:
    answer = send(base)
    assert answer.kind == AnswerKind.NOT_SENT


def test_a_secret_that_is_no_header_is_not_sent(sandbox: Sandbox) -> None:
    answer = send(f"{sandbox.url}/payments", authorization="Bearer ü")
    assert (answer.kind, answer.error) == (AnswerKind.NOT_SENT, "bad_header")
    assert sandbox.ledger() == []


def test_a_connect_that_hangs_is_not_sent() -> None:
    """A full backlog never answers the connect: no byte left, and the limit holds."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        held = [socket.socket() for _ in range(3)]
        try:
            for one in held:
                one.setblocking(False)
                one.connect_ex(address)
            time.sleep(0.05)
            answer = send(f"http://127.0.0.1:{address[1]}", timeout_s=0.3)
        finally:
            for one in held:
                one.close()
    assert (answer.kind, answer.error) == (AnswerKind.NOT_SENT, "connect_timeout")
    assert answer.elapsed_ms < 1_500


def test_fixed_headers_and_authorization_are_sent() -> None:
    seen: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _address = listener.accept()
        with connection:
            seen.append(connection.recv(65_536))
            connection.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    port = HttpPort(method="PUT", path="/x", body=PORT.body, headers={"Api-Version": "2026-11-01"})
    answer = send(f"http://127.0.0.1:{listener.getsockname()[1]}", port=port, authorization="Bearer t")
    thread.join(5)
    listener.close()
    assert answer.status == 201
    head = seen[0]
    assert head.startswith(b"PUT /x HTTP/1.1\r\n")
    for line in (b"Api-Version: 2026-11-01", b"Authorization: Bearer t", b"Accept-Encoding: identity"):
        assert line in head
    assert b"Transfer-Encoding" not in head


def test_connections_are_kept_and_shared_by_threads(sandbox: Sandbox) -> None:
    """64 senders, one pool: every intent once, none mixed up."""
    base = f"{sandbox.url}/payments"

    def one(n: int) -> bool:
        key = f"refund:{n}"
        prepared = PORT.prepare(Refund(charge=f"ch_{n}"), base, "alias")
        answer = PORT.send(prepared, key=key, attempt_id=ATTEMPT, token=n, timeout_s=20)
        return answer.status == 201 and f'"reference":"{key}"'.encode() in answer.body.replace(b" ", b"")

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(200)))
    assert all(entry["applied"] == 1 for entry in sandbox.ledger())


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_opens_its_own_connections(sandbox: Sandbox) -> None:
    """Celery forks: a child that used its parent's sockets would mix two conversations."""
    base = f"{sandbox.url}/payments"
    assert send(base).status == 201
    child = os.fork()
    if child == 0:
        try:
            answer = PORT.send(
                PORT.prepare(Refund(charge="ch_child"), base, "a"),
                key="child",
                attempt_id=ATTEMPT,
                token=2,
                timeout_s=5,
            )
            os._exit(0 if answer.status == 201 else 1)
        finally:
            os._exit(2)
    assert send(base).status == 201
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sandbox.applied("child") == 1
