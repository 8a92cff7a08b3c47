"""The sandbox's own storage: one SQLite file, one connection, one transaction at a time.

The file is in WAL mode with synchronous NORMAL, so what was committed survives the death of the process. It
is held exclusively: two sandboxes on one file could each take an intent the other has in flight.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SCHEMA: Final = """
create table if not exists effects (
    seq integer primary key autoincrement,
    id text not null unique,
    provider text not null,
    intent text not null,
    key text,
    subject text not null,
    applied_at integer not null,
    item text not null
);
-- readback by our reference, and by what the effect is about
create index if not exists effects_by_key on effects (provider, key);
create index if not exists effects_by_subject on effects (provider, subject);
create index if not exists effects_by_intent on effects (intent);

create table if not exists requests (
    seq integer primary key autoincrement,
    provider text not null,
    intent text not null,
    received_at integer not null,
    path text not null,
    key text,
    attempt text,
    token text,
    body text not null,
    dial text not null,
    verdict text not null,
    status integer,
    effect integer references effects (seq)
);
create index if not exists requests_by_intent on requests (intent);

create table if not exists keys (
    provider text not null,
    key text not null,
    digest text not null,
    kept_at integer not null,
    status integer not null,
    answer blob not null,
    effect integer not null references effects (seq),
    primary key (provider, key)
) without rowid;

create table if not exists dials (provider text primary key, settings text not null) without rowid;

create table if not exists callbacks (
    seq integer primary key autoincrement,
    id text not null,
    provider text not null,
    url text not null,
    event text not null,
    sent_at integer not null,
    status integer,
    error text
);
"""


class StoreInUse(RuntimeError):
    """Another process holds this sandbox file."""


class StoreUnusable(RuntimeError):
    """The file cannot be opened as a sandbox's database."""


class StoreClosed(RuntimeError):
    """The sandbox has ended; nothing is read or written any more."""


class Store:
    """The file at `path`, opened and held until `close`. Raises StoreInUse, StoreUnusable."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._closed = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.5)
        except (OSError, sqlite3.Error) as error:
            raise StoreUnusable(f"{path}: {error}") from error
        self._db.row_factory = sqlite3.Row
        try:
            self._db.execute("pragma locking_mode = exclusive")
            self._db.execute("pragma journal_mode = wal")
            self._db.execute("pragma synchronous = normal")
            self._db.execute("pragma foreign_keys = on")
            self._db.executescript(SCHEMA)
            # A write takes the exclusive lock now, so that a second process is told at its start.
            self._db.execute("begin immediate")
            self._db.execute("commit")
        except sqlite3.Error as error:
            self._db.close()
            if "locked" in str(error):
                raise StoreInUse(f"another sandbox holds {path}") from error
            raise StoreUnusable(f"{path}: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One write transaction: all of it is in the file when the block ends, or nothing is."""
        with self._lock:
            self._refuse_if_closed()
            self._db.execute("begin immediate")
            try:
                yield self._db
            except BaseException:
                self._db.execute("rollback")
                raise
            self._db.execute("commit")

    def rows(self, query: str, values: tuple[object, ...] = ()) -> list[sqlite3.Row]:
        """The rows of a reading query."""
        with self._lock:
            self._refuse_if_closed()
            found: list[sqlite3.Row] = self._db.execute(query, values).fetchall()
            return found

    def close(self) -> None:
        """Fold the log into the file and let it go."""
        with self._lock:
            self._closed = True
            self._db.close()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreClosed(str(self.path))
