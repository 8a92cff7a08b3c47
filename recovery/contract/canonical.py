"""One text for one meaning: RFC 8785 canonical JSON, strict parsing (I-JSON, RFC 7493), and the digests over
it.

Volatile fields never enter a digest. Money is an integer of minor units. A digest changes only when something
a person would decide differently on has changed.
"""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import rfc8785

from recovery.contract.errors import CanonicalError

MAX_BYTES: Final = 1_000_000
MAX_DEPTH: Final = 32
MAX_INT: Final = 2**53 - 1


class _Refused:
    """Stands in a parsed tree where the scanner met something; the walk then knows the path."""

    __slots__ = ("key", "why")

    def __init__(self, why: str, key: str | None = None) -> None:
        self.why = why
        self.key = key


def parse(text: bytes | str, *, nfc: bool = True, max_bytes: int = MAX_BYTES) -> Any:
    """The JSON value in ``text``.

    Refused with the path: duplicate keys, NaN and Infinity, integers beyond 2**53 - 1, lone surrogates, text
    that is not NFC (unless ``nfc`` is False, for what others wrote), nesting beyond 32, more than
    ``max_bytes``. Raises CanonicalError.
    """
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(raw) > max_bytes:
        raise CanonicalError("$", f"{len(raw)} bytes, at most {max_bytes}")
    try:
        decoded = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CanonicalError("$", f"not UTF-8 at byte {error.start}") from error
    try:
        value = json.loads(decoded, object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise CanonicalError("$", f"not JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise CanonicalError("$", f"nested deeper than {MAX_DEPTH}") from error
    check(value, nfc=nfc)
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    for key, _value in pairs:
        if key in seen:
            return _Refused("given twice", key)
        seen.add(key)
    return found


def _constant(name: str) -> Any:
    return _Refused(f"{name} is not a JSON number")


def _integer(digits: str) -> Any:
    # Length first: turning a megabyte of digits into an int is itself the attack.
    if len(digits) > 17 or abs(int(digits)) > MAX_INT:
        return _Refused("integer beyond 2**53 - 1")
    return int(digits)


def check(value: Any, *, nfc: bool = True) -> None:
    """Raise CanonicalError with the path of the first thing that canonical JSON cannot say."""
    _walk(value, "$", 0, nfc)


def _walk(value: Any, path: str, depth: int, nfc: bool) -> None:
    if value is None or value is True or value is False:
        return
    if isinstance(value, str):
        _text(value, path, nfc)
    elif isinstance(value, int):
        if abs(value) > MAX_INT:
            raise CanonicalError(path, "integer beyond 2**53 - 1")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise CanonicalError(path, "not a finite number")
    elif isinstance(value, _Refused):
        raise CanonicalError(path if value.key is None else _member(path, value.key), value.why)
    elif isinstance(value, dict | list | tuple):
        if depth >= MAX_DEPTH:
            raise CanonicalError(path, f"nested deeper than {MAX_DEPTH}")
        if isinstance(value, dict):
            for key, item in value.items():
                if not isinstance(key, str):
                    raise CanonicalError(path, f"a key is {type(key).__name__}, not text")
                _text(key, _member(path, key), nfc)
                _walk(item, _member(path, key), depth + 1, nfc)
        else:
            for index, item in enumerate(value):
                _walk(item, f"{path}[{index}]", depth + 1, nfc)
    else:
        raise CanonicalError(path, f"{type(value).__name__} cannot be written as JSON")


def _text(value: str, path: str, nfc: bool) -> None:
    if "\x00" in value:
        # PostgreSQL keeps no NUL in text, and nobody means one.
        raise CanonicalError(path, "text with a NUL character")
    if value.isascii():
        return
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CanonicalError(path.encode("ascii", "backslashreplace").decode(), "text with a lone surrogate") from error
    if nfc and not unicodedata.is_normalized("NFC", value):
        raise CanonicalError(path, "text is not in Unicode form NFC")


def _member(path: str, key: str) -> str:
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{key[:64]!r}]"


def dumps(value: Any) -> bytes:
    """The canonical bytes of ``value`` (RFC 8785). Raises CanonicalError with the path."""
    check(value)
    return rfc8785.dumps(value)


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes, lower-case hex."""
    return hashlib.sha256(dumps(value)).hexdigest()


def intent_digest(*, operation: str, target: str, params: Mapping[str, Any]) -> str:
    """What one intent is (invariant 3): operation, target, params; not the key, the version or the time."""
    return digest({"operation": operation, "params": dict(params), "target": target})


def approval_fields(
    *,
    tenant: UUID | str,
    run: UUID | str,
    effect: UUID | str,
    operation: str,
    target: str,
    params: Mapping[str, Any],
    stake: Mapping[str, Any] | None,
    account: str,
    credential: str,
    precondition: Mapping[str, Any] | None,
    policy: str,
    revision: int,
    method: str,
    url: str,
    key: str,
    body: str,
) -> dict[str, Any]:
    """The fields of R2, the key, and what the port will send; exactly these are signed.

    ``account``: the provider account (the dependency's name). ``credential``: its alias, never its value.
    ``precondition``: the values shown when it was asked, with their version. ``policy``: the contract's
    digest.
    """
    return {
        "account": account,
        "body": body,
        "credential": credential,
        "effect": str(effect),
        "key": key,
        "method": method,
        "operation": operation,
        "params": dict(params),
        "policy": policy,
        "precondition": None if precondition is None else dict(precondition),
        "revision": revision,
        "run": str(run),
        "stake": None if stake is None else dict(stake),
        "target": target,
        "tenant": str(tenant),
        "url": url,
    }


def approval_digest(fields: Mapping[str, Any]) -> str:
    """The digest a signer posts back (R3): over all of ``approval_fields``."""
    return digest(dict(fields))


def check_code(digest_hex: str) -> str:
    """``4F2A-91C0``: the first eight hex digits, to read aloud between two people."""
    return f"{digest_hex[:4]}-{digest_hex[4:8]}".upper()
