"""Our own processes: which there are, and how each is started."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from console.stack import environment
from console.stack.layout import PROJECT, Layout
from console.stack.ports import HOST
from console.stack.process import Part

SENDERS = 64  # threads of the dispatch pool: they wait on the network, not on the processor


@dataclass(frozen=True)
class Processes:
    """Builds parts that run with one installation's settings."""

    layout: Layout
    settings: Mapping[str, str]

    def command(self, name: str, *arguments: str, **more: str) -> Part:
        """A `manage.py` command that ends by itself; `more` are environment variables."""
        return self._part(f"manage.py {name}", [str(PROJECT / "manage.py"), name, *arguments], log=name, **more)

    def all(self, *, port: int, sandbox_port: int, workers: int) -> list[Part]:
        """The parts that stay, in the order of their start: who is called before who calls."""
        return [
            self._part("sandbox", self._sandbox(sandbox_port)),
            self._part("web", self._web(port)),
            self._part("sweep", [str(PROJECT / "manage.py"), "sweep"]),
            self._part("advance", self._worker("advance", "prefork", workers)),
            # Many threads share few connections; only this process may use a pool (see settings.py).
            self._part("dispatch", self._worker("dispatch", "threads", SENDERS), RECOURSE_POOL="dispatch"),
        ]

    def _sandbox(self, port: int) -> list[str]:
        database = str(self.layout.data / "sandbox.sqlite3")
        return ["-m", "recovery.sandbox", "serve", "--port", str(port), "--db", database]

    def _web(self, port: int) -> list[str]:
        return [
            *("-m", "uvicorn", "console.asgi:application"),
            *("--host", HOST, "--port", str(port)),
            *("--lifespan", "off", "--ws", "websockets-sansio"),
            *("--no-access-log", "--no-server-header", "--no-proxy-headers"),
            *("--timeout-graceful-shutdown", "2"),
        ]

    def _worker(self, queue: str, pool: str, concurrency: int) -> list[str]:
        return [
            *("-m", "celery", "--app", "console.celery:app", "--quiet", "worker"),
            *("--queues", queue, "--hostname", f"{queue}@%h"),
            *("--pool", pool, "--concurrency", str(concurrency)),
            # Workers tell each other nothing: the record is where they meet.
            *("--without-gossip", "--without-mingle", "--loglevel", "INFO"),
        ]

    def _part(self, name: str, arguments: list[str], *, log: str | None = None, **more: str) -> Part:
        return Part(
            name=name,
            command=(sys.executable, *arguments),
            environment=environment.for_child(self.settings, RECOURSE_PART=name, **more),
            log=self.layout.log / f"{log or name}.log",
            folder=PROJECT,
        )
