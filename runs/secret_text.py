"""Short secrets in columns: sealed by the installation's keys, bound to the place where they are kept.

Format: key id, ``:``, base64 of nonce (12 bytes) and AES-256-GCM. Associated data: the place, so that a sealed secret
cannot be moved to another row or column.
"""

from __future__ import annotations

import base64
import os

from cryptography.exceptions import InvalidTag
from django.conf import settings

from runs.checkpoints.codec import keyring
from runs.errors import Undecryptable


def seal(text: str, place: str) -> str:
    """``text`` sealed for ``place`` (table|row|column) by the first key of RECOURSE_SEAL_KEYS."""
    name, key = next(iter(keyring(settings.RECOURSE_SEAL_KEYS).items()))
    nonce = os.urandom(12)
    return f"{name}:{base64.b64encode(nonce + key.encrypt(nonce, text.encode(), place.encode())).decode()}"


def unseal(sealed: str, place: str) -> str:
    """The text again. Raises Undecryptable when its key is not in the ring, or it was altered or moved."""
    name, _, blob = sealed.partition(":")
    key = keyring(settings.RECOURSE_SEAL_KEYS).get(name)
    if key is None:
        raise Undecryptable(f"the sealing key {name!r} of {place} is not in RECOURSE_SEAL_KEYS", place=place, key=name)
    raw = base64.b64decode(blob)
    try:
        return key.decrypt(raw[:12], raw[12:], place.encode()).decode()
    except InvalidTag as error:
        raise Undecryptable(f"the secret of {place} was altered or belongs elsewhere", place=place) from error
