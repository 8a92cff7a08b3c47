"""The keys that checkpoints are sealed with: RECOURSE_SEAL_KEYS, ``id:base64,id:base64``, 32 bytes each.

The first one seals, all of them open. AES-256-GCM with a fresh nonce each time and the place of what is sealed as
associated data (ASVS 11.3.4), so that sealed bytes cannot be moved.
"""

from __future__ import annotations

import base64
import os
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

NONCE = 12


class Damaged(Exception):
    """The bytes are not what was sealed here with this key."""


class KeyMissing(Exception):
    """The key that sealed it is not in RECOURSE_SEAL_KEYS. ``name`` is its id."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the sealing key {name!r} is not in RECOURSE_SEAL_KEYS")
        self.name = name


@lru_cache(maxsize=4)
def _ring(setting: str) -> dict[str, AESGCM]:
    ring: dict[str, AESGCM] = {}
    for part in setting.split(","):
        name, _, secret = part.strip().partition(":")
        key = base64.b64decode(secret + "=" * (-len(secret) % 4), altchars=b"-_")
        if not name or len(name) > 64 or len(key) != 32:
            raise ImproperlyConfigured("RECOURSE_SEAL_KEYS: each part is id:base64 of 32 bytes; the first one seals")
        ring[name] = AESGCM(key)
    return ring


def current() -> str:
    """The id of the key that seals now."""
    return next(iter(_ring(settings.RECOURSE_SEAL_KEYS)))


def lock(data: bytes, about: bytes) -> bytes:
    """``data`` sealed by the current key for the place ``about``: nonce and ciphertext."""
    key = next(iter(_ring(settings.RECOURSE_SEAL_KEYS).values()))
    nonce = os.urandom(NONCE)
    return nonce + key.encrypt(nonce, data, about)


def unlock(name: str, locked: bytes, about: bytes) -> bytes:
    """What was sealed with the key ``name`` for ``about``. Raises KeyMissing, Damaged."""
    key = _ring(settings.RECOURSE_SEAL_KEYS).get(name)
    if key is None:
        raise KeyMissing(name)
    try:
        return key.decrypt(locked[:NONCE], locked[NONCE:], about)
    except (InvalidTag, ValueError) as error:
        raise Damaged from error
