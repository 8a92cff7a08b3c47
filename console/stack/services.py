"""The two servers below our own processes: by themselves for tests and the bench, and for `up`."""

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from console.stack.layout import Layout
from console.stack.postgres import Postgres
from console.stack.process import Part, end_all
from console.stack.secrets import Secrets
from console.stack.valkey import Valkey


def _silent(line: str) -> None:
    del line


def _patient() -> None:
    """Nothing else to look at while waiting."""


class Services:
    """PostgreSQL and Valkey in a data folder; a context manager that starts and ends them.

    Used by itself it is a throwaway cluster (`durable=False`): no fsync, and its role may make databases.
    `database_url` and `redis_url` are known before the start, so that settings can be loaded first.
    """

    def __init__(
        self, data: str | os.PathLike[str], *, durable: bool = False, say: Callable[[str], None] = _silent
    ) -> None:
        self.layout = Layout.at(data)
        self.layout.make()
        self.secrets = Secrets(self.layout.secrets)
        self.postgres = Postgres(self.layout, self.secrets, say, durable=durable)
        self.valkey = Valkey(self.layout, self.secrets)
        self.say = say
        self.parts: list[Part] = []

    @property
    def database_url(self) -> str:
        return self.postgres.url()

    @property
    def redis_url(self) -> str:
        return self.valkey.url

    @property
    def data(self) -> Path:
        return self.layout.data

    def start(self, look: Callable[[], None] = _patient) -> None:
        """Start both and wait until they answer; what started is ended again when one does not.

        `look` is called while waiting and may raise, which ends what was started.
        """
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        try:
            who = self.postgres.prepare()
            postgres = self._begin(self.postgres.part(who, environment))
            valkey = self._begin(self.valkey.part(environment))
            self.postgres.wait(postgres, look)
            self.valkey.wait(valkey, look)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End both; PostgreSQL by a fast shutdown."""
        end_all(self.parts, seconds=10)
        self.parts = []

    def _begin(self, part: Part) -> Part:
        self.parts.append(part)
        part.start()
        return part

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
