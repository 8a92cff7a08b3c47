"""The last tier: an object store for what is older than a week. One library, obstore, for a folder or S3.

RECOURSE_ARCHIVE_URL names it: ``file:///…`` (a folder) or ``s3://bucket/prefix`` (credentials, region and endpoint by
AWS_* of the environment). What is kept there is sealed; PostgreSQL keeps digest and address.
"""

from __future__ import annotations

import os
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import obstore
from django.conf import settings
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

TIMEOUT = timedelta(seconds=10)


class Away(Exception):
    """The object store does not answer, or refuses. What is asked may well be there."""


def address_of(workspace: UUID, run: UUID, seq: int, digest: str) -> str:
    """Where a checkpoint's bytes go. The digest is part of it: other bytes never overwrite them."""
    return f"{workspace}/{run}/{seq}-{digest[:16]}"


def get(address: str) -> bytes | None:
    """The bytes at ``address``, None when nothing is there. Raises Away."""
    try:
        return bytes(obstore.get(_store(settings.RECOURSE_ARCHIVE_URL), address).bytes())
    except FileNotFoundError:
        return None
    except (BaseError, OSError) as error:
        raise Away(str(error).partition("\n")[0]) from error


def put(address: str, blob: bytes) -> None:
    """Keep ``blob`` durably at ``address``: whole or not at all. Raises Away."""
    folder = _folder(settings.RECOURSE_ARCHIVE_URL)
    try:
        if folder is None:
            obstore.put(_store(settings.RECOURSE_ARCHIVE_URL), address, blob)
        else:
            _write(folder / address, blob)
    except (BaseError, OSError) as error:
        raise Away(str(error).partition("\n")[0]) from error


def drop(address: str) -> None:
    """Remove what is at ``address``; nothing there is fine. Raises Away."""
    try:
        obstore.delete(_store(settings.RECOURSE_ARCHIVE_URL), address)
    except FileNotFoundError:
        return
    except (BaseError, OSError) as error:
        raise Away(str(error).partition("\n")[0]) from error


def _folder(url: str) -> Path | None:
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


@lru_cache(maxsize=4)
def _store(url: str) -> Any:
    folder = _folder(url)
    if folder is not None:
        return LocalStore(folder, mkdir=True)
    # Whoever names an endpoint by http:// means it (a store on the same machine or behind a proxy).
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    return from_url(
        url,
        client_options={"timeout": TIMEOUT, "connect_timeout": timedelta(seconds=3), "allow_http": plain},
        retry_config={"max_retries": 2, "retry_timeout": TIMEOUT},
    )


def _write(path: Path, blob: bytes) -> None:
    """A temporary file, synced, renamed, and the folder synced: after a power cut it is there whole, or not at all."""
    made = [p for p in (path.parent, *path.parent.parents) if not p.exists()]
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(blob)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    for folder in {path.parent, *(p.parent for p in made)}:
        _sync(folder)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
