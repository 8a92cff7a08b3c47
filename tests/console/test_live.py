"""The live channel on a real Valkey and a real record: who hears what, and until when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from asgiref.testing import ApplicationCommunicator
from channels.auth import AuthMiddlewareStack
from channels.layers import channel_layers
from channels.routing import URLRouter
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.db import connections

from console import doorbell, live
from console.topics import Topic, token_for, topic_of
from runs import access
from runs.models import Person, Workspace
from tests.conftest import FreshDatabase

RUN = uuid4()


class Cast:
    """One workspace each for Oncall A and Outsider E."""

    def __init__(self) -> None:
        self.here = Workspace.objects.create(slug="acme-pay", name="Acme Pay", environment="SANDBOX")
        self.there = Workspace.objects.create(slug="other-pay", name="Other Pay", environment="SANDBOX")
        self.oncall = Person.objects.create_user("oncall-a@acme.example", "Oncall A", "correct horse battery")
        self.outsider = Person.objects.create_user("outsider-e@other.example", "Outsider E", "correct horse battery")
        access.grant(self.oncall, self.here, ["on-call"])
        access.grant(self.outsider, self.there, ["on-call"])


@pytest.fixture
def cast(fresh_db: FreshDatabase, valkey: str) -> Cast:
    return Cast()


def _session(person: Person) -> Any:
    store = import_module(settings.SESSION_ENGINE).SessionStore()
    store[SESSION_KEY] = str(person.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = person.get_session_auth_hash()
    store.create()
    return store


class Socket(ApplicationCommunicator):
    """A browser's end. (channels.testing needs daphne, which nothing here runs on.)"""

    async def connect(self) -> tuple[bool, int | None]:
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(timeout=2)
        return answer["type"] == "websocket.accept", answer.get("code")

    async def say(self, text: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text})

    async def hear(self) -> dict[str, Any]:
        answer = await self.receive_output(timeout=2)
        assert answer["type"] == "websocket.send", answer
        return dict(json.loads(answer["text"]))

    async def leave(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(timeout=2)


@asynccontextmanager
async def _socket(key: str) -> AsyncIterator[Socket]:
    app = AuthMiddlewareStack(URLRouter(live.websocket_urlpatterns))
    cookie = f"{settings.SESSION_COOKIE_NAME}={key}".encode()
    scope = {"type": "websocket", "path": "/live/", "query_string": b"", "headers": [(b"cookie", cookie)]}
    socket = Socket(app, scope)
    try:
        yield socket
    finally:
        await socket.leave()


def _run(test: Callable[[], Awaitable[None]]) -> None:
    """Run an async test body; the channel layer and the threads' connections are of this loop alone."""

    async def body() -> None:
        channel_layers.backends.clear()
        try:
            await test()
        finally:
            await sync_to_async(connections.close_all)()
            await channel_layers["default"].flush()
            channel_layers.backends.clear()

    async_to_sync(body)()


async def _ring(workspace: UUID, run: UUID | None, **more: Any) -> None:
    topics = doorbell.topics_of(workspace, run, **more)
    await doorbell.send({t.group: {"type": "live.changed", "topic": t.name, "what": t.kind} for t in topics})


async def _joined(socket: Socket, person: Person, *topics: Topic) -> None:
    assert (await socket.connect())[0]
    await socket.say(json.dumps({"subscribe": [token_for(person.pk, topic) for topic in topics]}))
    assert "as_of" in await socket.hear()


async def _heard(socket: Socket) -> list[str]:
    """Topics of the next batch, until its "as of"."""
    found = []
    while "as_of" not in (message := await socket.hear()):
        found.append(message["topic"])
    return sorted(found)


def test_a_change_is_heard_by_name_only(cast: Cast) -> None:
    """Only what changed, once a batch, and only what this page listens to."""
    key = _session(cast.oncall).session_key

    async def body() -> None:
        async with _socket(key) as socket:
            run, inbox = Topic(cast.here.pk, "run", str(RUN)), Topic(cast.here.pk, "inbox")
            await _joined(socket, cast.oncall, run, inbox)
            for _ in range(5):
                await _ring(cast.here.pk, RUN, effect_ids=[uuid4()], review=True)
            assert await _heard(socket) == sorted([run.name, inbox.name])
            assert await socket.receive_nothing(timeout=0.4)

    _run(body)


def test_nothing_crosses_a_workspace(cast: Cast) -> None:
    """Invariant 14: another's token, a forged one and a topic of a workspace one cannot see join nothing."""
    key = _session(cast.outsider).session_key

    async def body() -> None:
        async with _socket(key) as socket:
            topic = Topic(cast.here.pk, "run", str(RUN))
            stolen, own = token_for(cast.oncall.pk, topic), token_for(cast.outsider.pk, topic)
            assert (await socket.connect())[0]
            await socket.say(json.dumps({"subscribe": [stolen, own, own[:-1] + "A", "run:1", 7]}))
            assert "as_of" in await socket.hear()
            await _ring(cast.here.pk, RUN, review=True)
            assert await socket.receive_nothing(timeout=0.6)

    _run(body)


def test_a_lost_role_ends_the_topic_before_the_next_batch(cast: Cast) -> None:
    """Rights are asked at each batch, not only when the socket opened (trap 4)."""
    key = _session(cast.oncall).session_key

    async def body() -> None:
        async with _socket(key) as socket:
            await _joined(socket, cast.oncall, Topic(cast.here.pk, "run", str(RUN)))
            await sync_to_async(access.grant)(cast.oncall, cast.here, [])
            await _ring(cast.here.pk, RUN)
            assert await _heard(socket) == []

    _run(body)


@pytest.mark.parametrize("how", ["signs out", "is disabled"])
def test_the_socket_closes_when_its_person(cast: Cast, how: str) -> None:
    """Closed at the recheck that sign-out rings, without any change of a topic."""
    store = _session(cast.oncall)

    def leave() -> None:
        if how == "signs out":
            store.flush()
        else:
            Person.objects.filter(pk=cast.oncall.pk).update(is_active=False)

    key = store.session_key

    async def body() -> None:
        async with _socket(key) as socket:
            await _joined(socket, cast.oncall, Topic(cast.here.pk, "inbox"))
            await sync_to_async(leave)()
            await doorbell.send({f"p.{cast.oncall.pk.hex}": {"type": "live.recheck"}})
            message = await socket.receive_output(timeout=2)
            assert (message["type"], message["code"]) == ("websocket.close", live.SIGNED_OUT)

    _run(body)


def test_nobody_gets_in_without_a_session(cast: Cast) -> None:
    """Refused in the handshake."""

    async def body() -> None:
        async with _socket("nosuchsession") as socket:
            connected, code = await socket.connect()
            assert (connected, code) == (False, live.SIGNED_OUT)

    _run(body)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"subscribe": 1}', "not json", "[" * 100_000, '{"subscribe": ["' + "x" * 200_000 + '"]}']
)
def test_nonsense_closes_the_socket(cast: Cast, text: str) -> None:
    """Bad input is refused, not guessed at."""
    key = _session(cast.oncall).session_key

    async def body() -> None:
        async with _socket(key) as socket:
            assert (await socket.connect())[0]
            await socket.say(text)
            message = await socket.receive_output(timeout=2)
            assert (message["type"], message["code"]) == ("websocket.close", live.NO_SENSE)

    _run(body)


def test_a_token_holds_for_its_person_and_time_only(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signed by the server; after a day the page has to be read again."""
    topic = Topic(cast.here.pk, "run", str(RUN))
    token = token_for(cast.oncall.pk, topic)
    assert topic_of(cast.oncall.pk, token) == topic
    assert topic_of(cast.outsider.pk, token) is None
    monkeypatch.setattr("console.topics.TOKEN_LIFE", -1)
    assert topic_of(cast.oncall.pk, token) is None
    with pytest.raises(ValueError, match="no live topic"):
        token_for(cast.oncall.pk, Topic(cast.here.pk, "secrets"))


def test_ringing_never_raises_and_reaches_a_socket_from_its_own_thread(cast: Cast) -> None:
    """A commit does not wait for the channel; with Valkey up the bell is heard, without it nothing breaks."""
    key = _session(cast.oncall).session_key
    run = Topic(cast.here.pk, "run", str(RUN))

    async def body() -> None:
        async with _socket(key) as socket:
            await _joined(socket, cast.oncall, run)
            await asyncio.to_thread(doorbell.publish, cast.here.pk, RUN, [uuid4()], [], True)
            assert await _heard(socket) == [run.name]

    _run(body)


def test_ringing_without_a_channel_layer_is_a_log_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The record already holds the truth; a broken doorbell must not fail a commit."""
    monkeypatch.setitem(settings.CHANNEL_LAYERS["default"], "CONFIG", {"hosts": ["redis://127.0.0.1:1/0"]})
    channel_layers.backends.clear()
    bell = doorbell.Bell()
    monkeypatch.setattr(doorbell, "BELL", bell)
    doorbell.publish(uuid4(), RUN, review=True)
    for _ in range(50):
        if "live updates not sent" in caplog.text:
            break
        asyncio.run(asyncio.sleep(0.05))
    channel_layers.backends.clear()
    assert "live updates not sent (3)" in caplog.text
