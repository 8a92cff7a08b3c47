"""Ports on the loopback address, the only one the stack listens on."""

import json
import socket

from console.stack.errors import StackError
from console.stack.layout import Layout, write_private

HOST = "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether one could listen there now; a port in TIME_WAIT counts as free, as it does for the server."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def require_free(port: int, option: str, example: str) -> None:
    """Raises StackError when the port cannot be had; `option` is the one that chooses another."""
    if not 0 < port < 65536:
        raise StackError(f"{port} is no port; {option} takes a number from 1 to 65535.")
    if not is_free(port):
        raise StackError(
            f"Port {port} on {HOST} is in use by another process, or this account may not listen there."
            f" Choose another one: {example}"
        )


def remembered(layout: Layout, name: str) -> int:
    """A free port for a part, the one of the last start while it is still free.

    Addresses of the sandbox are written into the record, so that a moving port would orphan them.
    """
    path = layout.data / "ports.json"
    known: dict[str, int] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if name not in known or not is_free(known[name]):
        known[name] = free_port()
        write_private(path, json.dumps(known) + "\n")
    return known[name]
