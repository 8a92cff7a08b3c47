"""The second tier: the newest checkpoint of a run, for five minutes, where another process finds it quickly.

The record knows no Valkey: whoever runs the process registers a store. Without one, or while it is away, there is no
such tier; a copy here is never the only one.
"""

from __future__ import annotations

import hashlib
import logging
import time
from typing import Protocol
from uuid import UUID

log = logging.getLogger("recourse.checkpoints")

AT_MOST = 256 * 1024
"""Bytes of a checkpoint that is still kept here."""

FOR = 300
"""Seconds that it is kept."""

AWAY = 10.0
"""Seconds for which a store that did not answer is not asked again: a restore must not wait for it each time."""


class Store(Protocol):
    """A store of bytes by key. Both raise OSError while it is away."""

    def get(self, key: str) -> bytes | None: ...

    def put(self, key: str, value: bytes, seconds: int) -> None: ...

    def drop(self, key: str) -> None: ...


class Hot:
    """The tier over a registered store. Never raises for a store that is away."""

    def __init__(self) -> None:
        self.store: Store | None = None
        self._away_until = 0.0

    def register(self, store: Store | None) -> None:
        """Use ``store`` from now on; None: no such tier."""
        self.store = store
        self._away_until = 0.0

    def get(self, run: UUID, digest: str) -> bytes | None:
        """The run's newest checkpoint if it is the one with ``digest``; the caller verifies the bytes."""
        store = self._answering()
        if store is None:
            return None
        try:
            value = store.get(_key(run))
        except OSError as error:
            self._gone(error)
            return None
        mark = bytes.fromhex(digest)
        return value[32:] if value is not None and value[:32] == mark else None

    def put(self, run: UUID, blob: bytes) -> None:
        """Keep ``blob`` as the run's newest."""
        store = self._answering()
        if store is None or len(blob) > AT_MOST:
            return
        try:
            store.put(_key(run), hashlib.sha256(blob).digest() + blob, FOR)
        except OSError as error:
            self._gone(error)

    def drop(self, run: UUID) -> None:
        """Forget the run's copy."""
        store = self._answering()
        if store is None:
            return
        try:
            store.drop(_key(run))
        except OSError as error:
            self._gone(error)

    def _answering(self) -> Store | None:
        return self.store if time.monotonic() >= self._away_until else None

    def _gone(self, error: OSError) -> None:
        self._away_until = time.monotonic() + AWAY
        log.warning("the hot tier does not answer, it is left out for %.0f s: %s", AWAY, error)


def _key(run: UUID) -> str:
    return f"recourse:checkpoint:{run}"
