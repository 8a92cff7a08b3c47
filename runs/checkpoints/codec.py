"""Checkpoints as bytes: encoded whole, compressed, sealed.

Format: ``RCK1`` + length of key id (1 byte) + key id + nonce (12 bytes) + AES-256-GCM over zstd over JSON.
Associated data: workspace, run and sequence, so that a sealed checkpoint cannot be moved to another place.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from runs.errors import Unreadable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b"RCK1"
SCHEMA = 1
"""Schema of the content; a higher one comes from the future and is not touched."""


class Unserialisable(ValueError):
    """A value that JSON cannot carry. ``path`` names the field, as in ``data.customer.born``."""

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(f"{path}: a value of type {kind} cannot be stored in a checkpoint")
        self.path = path


@lru_cache(maxsize=4)
def keyring(setting: str) -> dict[str, AESGCM]:
    ring: dict[str, AESGCM] = {}
    for part in setting.split(","):
        name, _, secret = part.strip().partition(":")
        key = base64.b64decode(secret + "=" * (-len(secret) % 4), altchars=b"-_")
        if not name or len(key) != 32:
            raise ImproperlyConfigured("RECOURSE_SEAL_KEYS: each part is id:base64 of 32 bytes; the first one seals")
        ring[name] = AESGCM(key)
    return ring


def encode(content: Mapping[str, Any]) -> bytes:
    """``content`` as JSON. Raises Unserialisable naming the first field that JSON cannot carry."""
    _refuse_strange(content, "")
    return orjson.dumps(content)


def seal(content: Mapping[str, Any], *, workspace: UUID, run: UUID, seq: int) -> bytes:
    """``content`` encoded, compressed and sealed for its place, by the first key of RECOURSE_SEAL_KEYS."""
    ring = keyring(settings.RECOURSE_SEAL_KEYS)
    name, key = next(iter(ring.items()))
    nonce = os.urandom(12)
    packed = zstd.compress(encode(content), 3)
    head = MAGIC + bytes([len(name)]) + name.encode()
    return head + nonce + key.encrypt(nonce, packed, _place(workspace, run, seq))


def unseal(blob: bytes, *, workspace: UUID, run: UUID, seq: int) -> dict[str, Any]:
    """The content again. Raises Unreadable when it is damaged, moved, or its key is not in the ring."""
    if blob[:4] != MAGIC or len(blob) < 5 or len(blob) < 5 + blob[4] + 12:
        raise Unreadable("not a checkpoint", run=str(run), seq=seq)
    end = 5 + blob[4]
    name = blob[5:end].decode("ascii", "replace")
    key = keyring(settings.RECOURSE_SEAL_KEYS).get(name)
    if key is None:
        raise Unreadable(f"the sealing key {name!r} is not in RECOURSE_SEAL_KEYS", run=str(run), seq=seq, key=name)
    try:
        packed = key.decrypt(blob[end : end + 12], blob[end + 12 :], _place(workspace, run, seq))
    except InvalidTag as error:
        raise Unreadable("the checkpoint is damaged or not of this run", run=str(run), seq=seq) from error
    content = json.loads(zstd.decompress(packed))
    assert isinstance(content, dict)
    return content


def _place(workspace: UUID, run: UUID, seq: int) -> bytes:
    return f"{workspace}|{run}|{seq}".encode()


def _refuse_strange(value: Any, path: str) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Unserialisable(path, "str with half of a surrogate pair") from error
        return
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise Unserialisable(path, "int beyond 64 bits")
        return
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise Unserialisable(path, f"float {value}")
        return
    if isinstance(value, Mapping):
        for name, item in value.items():
            if not isinstance(name, str):
                raise Unserialisable(f"{path}.{name}".lstrip("."), f"key {type(name).__name__}")
            _refuse_strange(item, f"{path}.{name}" if path else name)
        return
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _refuse_strange(item, f"{path}[{index}]")
        return
    raise Unserialisable(path, type(value).__name__)
