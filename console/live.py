"""Live updates: one socket at ``/live/`` that says *what* changed, never what it looks like.

A page carries topics as tokens signed for its reader. A socket joins a topic only by such a token, while the
reader may see the topic's workspace; that is asked again before each batch and at least every 60 s (invariant
14). The browser then fetches the part of the page again through the view, under the reader's own permissions.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final
from uuid import UUID

from channels.auth import get_user
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.urls import path
from redis.exceptions import RedisError

from console.doorbell import publish
from console.topics import Topic, person_group, topic_of
from runs import access

COALESCE: Final = 0.25  # seconds between the first change of a batch and its send
BEAT: Final = 10.0  # seconds between "still here" messages
RECHECK: Final = 60.0  # seconds a permission is believed while nothing changes
MOST_TOPICS: Final = 300  # of one socket: more than any page of ours shows
MOST_CHARS: Final = 128 * 1024  # of one message from a browser

SIGNED_OUT: Final = 4401
NO_SENSE: Final = 4400
TRY_LATER: Final = 1013  # RFC 6455's registry


@database_sync_to_async
def _visible(person: Any) -> set[UUID]:
    return {workspace for workspace, names in access.permissions(person).items() if "see" in names}


def _tokens(text: str | None) -> list[str] | None:
    """The tokens of ``{"subscribe": [...]}``; None for anything else."""
    if text is None or len(text) > MOST_CHARS:
        return None
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return None
    tokens = body.get("subscribe") if isinstance(body, dict) else None
    if not isinstance(tokens, list):
        return None
    return [token for token in tokens if isinstance(token, str)]


class LiveConsumer(AsyncWebsocketConsumer):
    """One tab. Reads ``{"subscribe": [token, ...]}``; writes ``{"topic", "what"}`` and ``{"as_of"}``."""

    async def connect(self) -> None:
        """Accept a signed-in person; everyone else is refused before the handshake ends."""
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            await self.close(code=SIGNED_OUT)
            return
        self.person: UUID = user.pk
        self.session_key: str = self.scope["session"].session_key
        self.topics: dict[str, Topic] = {}
        self.waiting: dict[str, str] = {}
        self.checked = asyncio.get_running_loop().time()
        self.flushing: asyncio.Task[None] | None = None
        self.pulse_is_out = False
        try:
            await self.channel_layer.group_add(person_group(self.person), self.channel_name)
        except (OSError, RedisError):  # without the layer nothing would be heard: the browser polls and tries again
            await self.close(code=TRY_LATER)
            return
        await self.accept()
        self.beating: asyncio.Task[None] = asyncio.create_task(self.beat())

    async def disconnect(self, code: int) -> None:
        """Leave everything that was joined."""
        if not hasattr(self, "beating"):
            return
        for task in (self.beating, self.flushing):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        with suppress(OSError, RedisError):  # the layer may be why we leave; its groups expire by themselves
            for group in [*self.topics, person_group(self.person)]:
                await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Join topics. A token that does not hold is passed over in silence: that tells nothing."""
        tokens = _tokens(text_data)
        if tokens is None:
            await self.close(code=NO_SENSE)
            return
        visible = await self.may_stay()
        if visible is None:
            return
        for topic in filter(None, (topic_of(self.person, token) for token in tokens)):
            known = topic.group in self.topics or len(self.topics) >= MOST_TOPICS
            if topic.workspace in visible and not known:
                self.topics[topic.group] = topic
                await self.channel_layer.group_add(topic.group, self.channel_name)
        await self.say_as_of()

    async def live_changed(self, message: dict[str, Any]) -> None:
        """A change of a topic: kept until the batch of 250 ms is full, so that one step is one redraw."""
        self.waiting[message["topic"]] = message["what"]
        if self.flushing is None or self.flushing.done():
            self.flushing = asyncio.create_task(self.flush())

    async def live_recheck(self, message: dict[str, Any]) -> None:
        """Somebody signed out or lost a role: look again now."""
        await self.may_stay()

    async def flush(self) -> None:
        """Send the batch, if the reader may still see it."""
        await asyncio.sleep(COALESCE)
        batch, self.waiting = self.waiting, {}
        if await self.may_stay() is None:
            return
        joined = {topic.name for topic in self.topics.values()}
        for topic, what in batch.items():
            if topic in joined:
                await self.send(text_data=json.dumps({"topic": topic, "what": what}))
        await self.say_as_of()
        if self.waiting:  # came while the record was asked: the next batch
            self.flushing = asyncio.create_task(self.flush())

    async def beat(self) -> None:
        """Say that the channel lives; check the reader when nothing else has for a minute.

        A beat goes through the channel layer and back: a page whose changes cannot come must not look live.
        """
        while True:
            await asyncio.sleep(BEAT)
            due = asyncio.get_running_loop().time() - self.checked > RECHECK - BEAT
            if due and await self.may_stay() is None:
                return
            if self.pulse_is_out or not await self.pulse():
                await self.close(code=TRY_LATER)
                return

    async def pulse(self) -> bool:
        """Send a beat to oneself; False if the layer does not take it."""
        self.pulse_is_out = True
        try:
            await self.channel_layer.send(self.channel_name, {"type": "live.pulse"})
        except (OSError, RedisError):
            return False
        return True

    async def live_pulse(self, message: dict[str, Any]) -> None:
        """The beat came back: everything that was sent before it was heard."""
        self.pulse_is_out = False
        await self.say_as_of()

    async def say_as_of(self) -> None:
        """The time up to which this tab has heard everything."""
        await self.send(text_data=json.dumps({"as_of": datetime.now(UTC).isoformat(timespec="milliseconds")}))

    async def may_stay(self) -> set[UUID] | None:
        """Ask the record again: session, account, workspaces.

        Returns the workspaces that may be seen, after leaving the topics of all others. None after closing:
        the reader has signed out or was disabled, or the record is away (the browser then tries again).
        """
        store = import_module(settings.SESSION_ENGINE).SessionStore(self.session_key)
        try:
            user = await get_user({"session": store})
            visible = await _visible(user) if user.is_authenticated else set()
        except (OperationalError, InterfaceError):  # nothing is believed that cannot be asked
            await self.close(code=TRY_LATER)
            return None
        if not user.is_authenticated or user.pk != self.person:
            await self.close(code=SIGNED_OUT)
            return None
        for group, topic in list(self.topics.items()):
            if topic.workspace not in visible:
                del self.topics[group]
                await self.channel_layer.group_discard(group, self.channel_name)
        self.checked = asyncio.get_running_loop().time()
        return visible


websocket_urlpatterns = [path("live/", LiveConsumer.as_asgi())]

__all__ = ["LiveConsumer", "publish", "websocket_urlpatterns"]
