"""The first tier: sealed checkpoints that this process wrote or read lately, by digest, within a bound."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

AT_MOST = 32 * 1024 * 1024
"""Bytes that one process keeps."""


class Memory:
    """Least recently used goes first. Holds the sealed bytes: nothing readable stays in memory for it."""

    def __init__(self, at_most: int = AT_MOST) -> None:
        self.at_most = at_most
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    @property
    def size(self) -> int:
        """Bytes kept now."""
        return self._size

    def get(self, digest: str) -> bytes | None:
        """The blob with this digest, if it is here; the caller verifies it."""
        with self._lock:
            blob = self._kept.get(digest)
            if blob is not None:
                self._kept.move_to_end(digest)
            return blob

    def put(self, digest: str, blob: bytes) -> None:
        """Keep ``blob``; what does not fit even alone is not kept."""
        with self._lock:
            self._drop(digest)
            if len(blob) > self.at_most:
                return
            self._kept[digest] = blob
            self._size += len(blob)
            while self._size > self.at_most:
                self._drop(next(iter(self._kept)))

    def drop(self, digest: str) -> None:
        """Forget a blob."""
        with self._lock:
            self._drop(digest)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._size = 0

    def _drop(self, digest: str) -> None:
        blob = self._kept.pop(digest, None)
        self._size -= len(blob or b"")
