"""Fields that are sealed by themselves inside the JSON of run data and effect params.

A sealed field is the token ``rcs1.`` + base64url of AES-256-SIV (RFC 5297) over the value's JSON, under a key of its
workspace. SIV is deterministic: the same value gives the same token, so that intent and approval digests stand for it
(invariant 3), and equal values of one workspace can be told to be equal, nothing more. The workspace's key is sealed
by RECOURSE_SEAL_KEYS; rotating those seals only that key anew, and no token or digest changes.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from django.db import transaction

from runs.checkpoints import keys
from runs.errors import Undecryptable, Unreadable
from runs.models import FieldKey

PREFIX = "rcs1."
TOKEN = re.compile(r"rcs1\.[A-Za-z0-9_-]+")
QUOTED = re.compile(r'"(rcs1\.[A-Za-z0-9_-]+)"')
MASK = "••••"

_ciphers: dict[UUID, AESSIV] = {}
_workspace: ContextVar[UUID | None] = ContextVar("recourse_sealing_for", default=None)


class NoWorkspace(Exception):
    """A new value can be sealed only where it is known for which workspace."""


@contextmanager
def within(workspace: UUID) -> Iterator[None]:
    """Values that become tokens in this block are sealed for ``workspace``."""
    mark = _workspace.set(workspace)
    try:
        yield
    finally:
        _workspace.reset(mark)


def is_token(value: object) -> bool:
    """Whether ``value`` is a sealed field as the record keeps it."""
    return isinstance(value, str) and TOKEN.fullmatch(value) is not None


def seal(value: Any) -> str:
    """The token of ``value`` (a JSON value) for the workspace of this block. Raises NoWorkspace, Undecryptable."""
    workspace = _workspace.get()
    if workspace is None:
        raise NoWorkspace("a sealed field is written only for a workspace")
    sealed = _cipher(workspace).encrypt(orjson.dumps(value), [b"field"])
    return PREFIX + base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()


def reveal(workspace: UUID, token: str) -> Any:
    """The value in ``token``. Raises Unreadable when it is damaged or another workspace's, Undecryptable."""
    text = token.removeprefix(PREFIX)
    try:
        sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return orjson.loads(_cipher(workspace).decrypt(sealed, [b"field"]))
    except (InvalidTag, binascii.Error, ValueError) as error:
        raise Unreadable("the sealed field is damaged or not of this workspace", workspace=str(workspace)) from error


def opened(workspace: UUID, body: str) -> tuple[str, tuple[str, ...]]:
    """A JSON text with its tokens replaced by their values, and those values that are text, for whoever must mask an
    echo. Raises Unreadable, Undecryptable."""
    if PREFIX not in body:
        return body, ()
    told: list[str] = []

    def value(match: re.Match[str]) -> str:
        found = reveal(workspace, match[1])
        told.append(str(found))
        return orjson.dumps(found).decode()

    return QUOTED.sub(value, body), tuple(told)


def masked(value: Any) -> Any:
    """``value`` for eyes that may not see: each token is a mask, the rest as it is."""
    if isinstance(value, str):
        return TOKEN.sub(MASK, value) if PREFIX in value else value
    if isinstance(value, Mapping):
        return {name: masked(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item) for item in value]
    return value


def tokens_in(value: Any, path: str = "") -> Iterator[str]:
    """Paths of the tokens inside ``value``. From outside none is taken: it would be somebody's sealed value."""
    if isinstance(value, str):
        if value.startswith(PREFIX):
            yield path
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from tokens_in(item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from tokens_in(item, f"{path}[{index}]")


def _about(workspace: UUID) -> bytes:
    return f"{workspace}|fields".encode()


def _cipher(workspace: UUID) -> AESSIV:
    """The workspace's cipher; its key is made when first needed. Raises Undecryptable, Unreadable."""
    known = _ciphers.get(workspace)
    if known is not None:
        return known
    row = FieldKey.objects.filter(workspace_id=workspace).first()
    if row is None:
        made = keys.lock(AESSIV.generate_key(512), _about(workspace))
        mine = FieldKey(workspace_id=workspace, wrapped=made, key=keys.current())
        FieldKey.objects.bulk_create([mine], ignore_conflicts=True)  # another may have been first: read again
        row = FieldKey.objects.get(workspace_id=workspace)
    cipher = AESSIV(_unwrapped(workspace, row.key, bytes(row.wrapped)))
    # Kept only once it is committed: a key that was rolled back must seal nothing more.
    transaction.on_commit(lambda: _ciphers.__setitem__(workspace, cipher))
    return cipher


def _unwrapped(workspace: UUID, name: str, wrapped: bytes) -> bytes:
    try:
        return keys.unlock(name, wrapped, _about(workspace))
    except keys.KeyMissing as error:
        raise Undecryptable(str(error), workspace=str(workspace), key=error.name) from error
    except keys.Damaged as error:
        raise Unreadable("the workspace's field key is damaged", workspace=str(workspace)) from error


def rewrap(row: FieldKey) -> bytes:
    """The workspace's key sealed by the current one. Raises Undecryptable, Unreadable."""
    return keys.lock(_unwrapped(row.workspace_id, row.key, bytes(row.wrapped)), _about(row.workspace_id))
