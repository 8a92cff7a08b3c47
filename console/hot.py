"""Valkey as the hot tier of checkpoints: sealed bytes by run, gone after five minutes."""

from __future__ import annotations

from functools import cached_property

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

ANSWERS_WITHIN = 0.5
"""Seconds after which PostgreSQL is asked instead."""


class ValkeyStore:
    """A store for ``runs.checkpoints.hot``. Connects when first used; raises OSError while Valkey is away."""

    def __init__(self, url: str) -> None:
        self.url = url

    @cached_property
    def _client(self) -> Redis:
        return Redis.from_url(
            self.url,
            socket_timeout=ANSWERS_WITHIN,
            socket_connect_timeout=ANSWERS_WITHIN,
            retry=Retry(NoBackoff(), 0),
        )

    def get(self, key: str) -> bytes | None:
        """The value, or None."""
        try:
            value = self._client.get(key)
        except RedisError as error:
            raise OSError(str(error)) from error
        return bytes(value) if isinstance(value, bytes) else None

    def put(self, key: str, value: bytes, seconds: int) -> None:
        """Keep ``value`` for ``seconds``."""
        try:
            self._client.set(key, value, ex=seconds)
        except RedisError as error:
            raise OSError(str(error)) from error

    def drop(self, key: str) -> None:
        """Forget the value."""
        try:
            self._client.delete(key)
        except RedisError as error:
            raise OSError(str(error)) from error
