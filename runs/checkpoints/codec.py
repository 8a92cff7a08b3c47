"""Checkpoints as bytes: encoded whole, compressed (alone, or against the last full one), sealed.

    full    RCK1 | length of key id (1) | key id | nonce (12) | AES-256-GCM over zstd over JSON
    delta   RCD1 | sequence of its base (4, big-endian) | the same; zstd has the base's JSON as its prefix

Associated data: workspace, run, sequence and, of a delta, its base, so that a sealed checkpoint cannot be moved to
another place or read against another base. A restore opens at most two blobs: a delta's base is always a full one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from runs.checkpoints import keys
from runs.checkpoints.encode import Unserialisable, encode
from runs.errors import Undecryptable, Unreadable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FULL, DELTA = b"RCK1", b"RCD1"
SCHEMA = 1
"""Schema of the content; a higher one comes from the future and is not touched."""

DELTA_FROM = 8 * 1024
"""Bytes of JSON below which every checkpoint is a full one: a delta would save little and cost a second read."""

_WINDOW = 27
_LONG: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.enable_long_distance_matching: 1,
    zstd.CompressionParameter.window_log: _WINDOW,
}
_DELTA: dict[int, int] = {**_LONG, zstd.CompressionParameter.checksum_flag: 1}
_READ: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW}


@dataclass(frozen=True, slots=True)
class Base:
    """A full checkpoint that the next ones can be deltas of: its sequence, its JSON, and its stored size in bytes."""

    seq: int
    raw: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Written:
    """A checkpoint as bytes. ``base``: the sequence it is a delta of, None for a full one. ``next_base``: what the
    checkpoint after it may be a delta of, once this one is committed."""

    blob: bytes
    base: int | None
    key: str
    next_base: Base | None


@dataclass(frozen=True, slots=True)
class Head:
    """What stands before the sealed bytes."""

    base: int | None
    key: str
    locked: bytes


def write(content: Mapping[str, Any], *, workspace: UUID, run: UUID, seq: int, base: Base | None) -> Written:
    """``content`` for its place: a delta of ``base`` where that pays, else in full. Raises Unserialisable."""
    raw = encode(content)
    large = len(raw) >= DELTA_FROM
    if base is not None and large:
        prefix = zstd.ZstdDict(base.raw, is_raw=True).as_prefix
        packed = zstd.compress(raw, options=_DELTA, zstd_dict=prefix)
        if _pays(len(packed), base, seq):
            return Written(_sealed(packed, workspace, run, seq, base.seq), base.seq, keys.current(), base)
    packed = zstd.compress(raw, options=_LONG) if large else zstd.compress(raw, 3)
    blob = _sealed(packed, workspace, run, seq, None)
    return Written(blob, None, keys.current(), Base(seq, raw, len(blob)) if large else None)


def _pays(size: int, base: Base, seq: int) -> bool:
    """Whether a delta of ``size`` bytes is worth it: a state that grows makes each delta larger than the one before,
    so a new full one is due when together they would weigh as much as the full one (their mean is half the last)."""
    return 2 * size <= base.size and size * (seq - base.seq) <= 2 * base.size


def seal(content: Mapping[str, Any], *, workspace: UUID, run: UUID, seq: int) -> bytes:
    """``content`` in full, for its place. Raises Unserialisable."""
    return write(content, workspace=workspace, run=run, seq=seq, base=None).blob


def head(blob: bytes, *, run: UUID, seq: int) -> Head:
    """The readable beginning of a blob. Raises Unreadable when it is none of ours or cut."""
    at = 4 if blob[:4] == FULL else 8
    if blob[:4] not in (FULL, DELTA) or len(blob) < at + 1 or len(blob) < at + 1 + blob[at] + keys.NONCE:
        raise Unreadable("not a checkpoint", run=str(run), seq=seq)
    end = at + 1 + blob[at]
    base = int.from_bytes(blob[4:8]) if at == 8 else None
    return Head(base, blob[at + 1 : end].decode("ascii", "replace"), blob[end:])


def unseal(blob: bytes, *, workspace: UUID, run: UUID, seq: int, base: bytes | None = None) -> dict[str, Any]:
    """The content again; ``base``: the JSON of a delta's base. Raises Unreadable, Undecryptable."""
    return parse(opened(blob, workspace=workspace, run=run, seq=seq, base=base))


def parse(raw: bytes) -> dict[str, Any]:
    """The content of an opened checkpoint's JSON."""
    content = json.loads(raw)
    assert isinstance(content, dict)
    return content


def opened(blob: bytes, *, workspace: UUID, run: UUID, seq: int, base: bytes | None = None) -> bytes:
    """The JSON in a blob. Raises Unreadable when it is damaged, moved or without its base; Undecryptable when its key
    is not in the ring."""
    found = head(blob, run=run, seq=seq)
    packed = _unlocked(found, workspace, run, seq)
    if found.base is None:
        return zstd.decompress(packed, options=_READ)
    if base is None:
        raise Unreadable(f"the checkpoint needs number {found.base}", run=str(run), seq=seq)
    try:
        return zstd.decompress(packed, zstd_dict=zstd.ZstdDict(base, is_raw=True).as_prefix, options=_READ)
    except zstd.ZstdError as error:
        raise Unreadable("the checkpoint does not fit its base", run=str(run), seq=seq) from error


def resealed(blob: bytes, *, workspace: UUID, run: UUID, seq: int) -> bytes:
    """The same checkpoint sealed by the current key; what is inside stays as it is. Raises Unreadable,
    Undecryptable."""
    found = head(blob, run=run, seq=seq)
    return _sealed(_unlocked(found, workspace, run, seq), workspace, run, seq, found.base)


def _sealed(packed: bytes, workspace: UUID, run: UUID, seq: int, base: int | None) -> bytes:
    name = keys.current().encode()
    magic = FULL if base is None else DELTA + base.to_bytes(4)
    return magic + bytes([len(name)]) + name + keys.lock(packed, _place(workspace, run, seq, base))


def _unlocked(found: Head, workspace: UUID, run: UUID, seq: int) -> bytes:
    try:
        return keys.unlock(found.key, found.locked, _place(workspace, run, seq, found.base))
    except keys.KeyMissing as error:
        raise Undecryptable(str(error), run=str(run), seq=seq, key=found.key) from error
    except keys.Damaged as error:
        raise Unreadable("the checkpoint is damaged or not of this run", run=str(run), seq=seq) from error


def _place(workspace: UUID, run: UUID, seq: int, base: int | None) -> bytes:
    return f"{workspace}|{run}|{seq}{'' if base is None else f'|{base}'}".encode()


__all__ = [
    "DELTA_FROM",
    "SCHEMA",
    "Base",
    "Unserialisable",
    "Written",
    "encode",
    "head",
    "opened",
    "parse",
    "resealed",
    "seal",
    "unseal",
    "write",
]
