"""Short secrets in columns: sealed by the installation's keys, bound to the place where they are kept.

Format: key id, ``:``, base64 of nonce (12 bytes) and AES-256-GCM. Associated data: the place, so that a sealed secret
cannot be moved to another row or column.
"""

from __future__ import annotations

import base64

from runs.checkpoints import keys
from runs.errors import Undecryptable


def seal(text: str, place: str) -> str:
    """``text`` sealed for ``place`` (table|row|column) by the first key of RECOURSE_SEAL_KEYS."""
    return f"{keys.current()}:{base64.b64encode(keys.lock(text.encode(), place.encode())).decode()}"


def key_of(sealed: str) -> str:
    """The id of the key that sealed it."""
    return sealed.partition(":")[0]


def unseal(sealed: str, place: str) -> str:
    """The text again. Raises Undecryptable when its key is not in the ring, or it was altered or moved."""
    name, _, blob = sealed.partition(":")
    try:
        return keys.unlock(name, base64.b64decode(blob), place.encode()).decode()
    except keys.KeyMissing as error:
        raise Undecryptable(
            f"the sealing key {name!r} of {place} is not in RECOURSE_SEAL_KEYS", place=place, key=name
        ) from error
    except keys.Damaged as error:
        raise Undecryptable(f"the secret of {place} was altered or belongs elsewhere", place=place) from error
