"""What a page may listen to, and the tokens by which a browser asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.core import signing

KINDS: Final = frozenset({"run", "effect", "approval", "runs", "inbox"})
TOKEN_LIFE: Final = 24 * 3600  # seconds a page may stay open and still join

_SALT: Final = "console.live"


@dataclass(frozen=True)
class Topic:
    """A thing of a workspace, or one of its lists (``value`` empty)."""

    workspace: UUID
    kind: str
    value: str = ""

    @property
    def name(self) -> str:
        """What the browser knows it by: "run:0192..." or "inbox:<workspace>"."""
        return f"{self.kind}:{self.value or self.workspace}"

    @property
    def group(self) -> str:
        """The channel layer's group, made of ids of the server only, never of a browser's text."""
        return f"w.{self.workspace.hex}.{self.kind}.{self.value.replace('-', '')}"


def person_group(person: UUID) -> str:
    """The group of all sockets of one person."""
    return f"p.{person.hex}"


def token_for(person: UUID, topic: Topic) -> str:
    """A token with which only ``person`` can join ``topic``. Raises ValueError for an unknown kind."""
    if topic.kind not in KINDS:
        raise ValueError(f"no live topic of kind {topic.kind!r}")
    body = {"p": person.hex, "w": topic.workspace.hex, "k": topic.kind, "v": topic.value}
    return signing.dumps(body, salt=_SALT)


def topic_of(person: UUID, token: str) -> Topic | None:
    """The topic of a token made for ``person``; None if it is forged, too old or somebody else's."""
    try:
        body = signing.loads(token, salt=_SALT, max_age=TOKEN_LIFE)
    except signing.BadSignature:
        return None
    if body["p"] != person.hex:
        return None
    return Topic(UUID(body["w"]), body["k"], body["v"])
