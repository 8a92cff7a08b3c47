"""System checks: each wrong configuration has an id and a sentence that says what to do.

console.E001  a setting has a value that it cannot take
console.E002  the sealing keys cannot be read
console.E003  the secret key is too weak
console.E004  the database has no name
console.E005  a host name that stands for any host
console.E006  plain HTTP beyond the loopback address
console.E007  the data folder cannot be written
console.E008  an address has the wrong scheme
"""

import base64
import binascii
import os
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

SEAL_KEY_BYTES = 32  # AES-256
LOOPBACK = {"127.0.0.1", "localhost", "[::1]", "testserver"}
ADDRESSES = {
    "REDIS_URL": ("redis://", "rediss://", "unix://"),
    "RECOURSE_SANDBOX_URL": ("http://", "https://"),
    "RECOURSE_ADDRESS": ("http://", "https://"),
}


def register_all() -> None:
    """Called once the app is ready."""
    register(configuration)


def configuration(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Every problem of the configuration, as Django system check messages."""
    del app_configs, kwargs
    told = [Error(sentence, id=identity) for identity, sentence in settings.CONFIGURATION_PROBLEMS]
    return [*told, *_found()]


def _sealing_keys() -> Iterator[CheckMessage]:
    """`id:base64,id:base64`, 32 bytes each (AES-256); the first seals, all open."""
    seen: set[str] = set()
    for place, entry in enumerate(settings.RECOURSE_SEAL_KEYS.split(","), start=1):
        identity, _, encoded = entry.strip().partition(":")
        try:
            key = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            key = b""
        if not identity or identity in seen or len(key) != SEAL_KEY_BYTES:
            # The entry itself is secret; its place is not.
            yield Error(
                f"RECOURSE_SEAL_KEYS: entry {place} is not `id:base64` with an id of its own.",
                hint=f"The base64 of {SEAL_KEY_BYTES} random bytes; entries are parted by commas.",
                id="console.E002",
            )
        seen.add(identity)


def _found() -> Iterator[CheckMessage]:
    yield from _sealing_keys()
    if len(settings.SECRET_KEY) < 50 or len(set(settings.SECRET_KEY)) < 5:
        yield Error(
            "SECRET_KEY is too weak.",
            hint="50 or more characters: python -c 'import secrets; print(secrets.token_urlsafe(64))'",
            id="console.E003",
        )
    if not settings.DATABASES["default"]["NAME"]:
        yield Error("DATABASE_URL names no database.", hint="postgresql://user@host/name", id="console.E004")
    if any(host in {"*", "."} or host.startswith("*") for host in settings.ALLOWED_HOSTS):
        yield Error(
            "ALLOWED_HOSTS accepts any host, so links in messages could lead elsewhere.",
            hint="Name each host.",
            id="console.E005",
        )
    if settings.PLAIN_HTTP and not LOOPBACK.issuperset(settings.ALLOWED_HOSTS):
        yield Error(
            "RECOURSE_PLAIN_HTTP=1 sends session cookies without TLS to hosts that are not this machine.",
            hint="Leave it out and put a proxy with TLS in front.",
            id="console.E006",
        )
    if not os.access(settings.RECOURSE_DATA, os.W_OK | os.X_OK):
        yield Error(
            f"RECOURSE_DATA: {settings.RECOURSE_DATA} is no folder that this account may write.",
            id="console.E007",
        )
    if (outside := settings.RECOURSE_OUTSIDE) is not None:
        folder = next(one for one in outside.absolute().parents if one.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            yield Error(
                f"RECOURSE_OUTSIDE: {folder} is no folder that this account may write.",
                hint="Without that file an older record that comes back is noticed by its cluster only.",
                id="console.E020",
            )
    for name, schemes in ADDRESSES.items():
        value = getattr(settings, name)
        if value is not None and not value.startswith(schemes):
            yield Error(f"{name} does not start with {' or '.join(schemes)}.", id="console.E008")
