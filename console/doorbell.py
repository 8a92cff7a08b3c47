"""Rings the live channel after commits, without making a commit wait for it.

Changes of 100 ms are gathered and sent by one thread of the process: a worker that commits hundreds of times
a second tells a page ten times. A broken channel layer costs a log line; pages poll.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from channels.layers import get_channel_layer
from django.contrib.auth.signals import user_logged_out

from console.topics import Topic, person_group
from runs import doorbells
from runs.doorbells import Ring

if TYPE_CHECKING:
    from runs.models import Person

log = logging.getLogger(__name__)

GATHER: Final = 0.1  # seconds
MOST_WAITING: Final = 10_000  # groups; beyond it the oldest bells are dropped, since pages poll

Messages = dict[str, dict[str, Any]]


def topics_of(
    workspace_id: UUID,
    run_id: UUID | None,
    effect_ids: Iterable[UUID] = (),
    approval_ids: Iterable[UUID] = (),
    review: bool = False,
) -> list[Topic]:
    """The topics that one commit touches."""
    topics = [Topic(workspace_id, "effect", str(pk)) for pk in effect_ids]
    topics += [Topic(workspace_id, "approval", str(pk)) for pk in approval_ids]
    if run_id is not None:
        topics += [Topic(workspace_id, "run", str(run_id)), Topic(workspace_id, "runs")]
    if review:
        topics.append(Topic(workspace_id, "inbox"))
    return topics


async def send(messages: Messages) -> None:
    """Send ``messages`` (by group) now. Raises whatever the channel layer raises."""
    layer = get_channel_layer()
    if layer is not None:
        for group, message in messages.items():
            await layer.group_send(group, message)


class Bell:
    """Gathers messages and sends them from a thread of its own; one a process, started at the first ring."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: Messages = {}
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = 0

    def put(self, messages: Messages) -> None:
        """Have ``messages`` sent soon; the newest of a group counts. Never raises."""
        with self._lock:
            self._waiting.update(messages)
            while len(self._waiting) > MOST_WAITING:
                self._waiting.pop(next(iter(self._waiting)))
            if self._thread is None or self._pid != os.getpid():  # a forked worker has no thread yet
                self._pid = os.getpid()
                self._thread = threading.Thread(target=self._work, name="live-doorbell", daemon=True)
                self._thread.start()
        self._ready.set()

    def take(self) -> Messages:
        """What waits, and forget it."""
        with self._lock:
            taken, self._waiting = self._waiting, {}
            self._ready.clear()
        return taken

    def _work(self) -> None:
        loop = asyncio.new_event_loop()
        while self._ready.wait():
            threading.Event().wait(GATHER)
            messages = self.take()
            try:
                loop.run_until_complete(send(messages))
            except Exception as error:  # a doorbell must outlive whatever its channel layer raises
                log.warning("live updates not sent (%d): %s", len(messages), type(error).__name__)

    def last_words(self) -> None:
        """Send what still waits when the process ends, if that works at once."""
        messages = self.take()
        if messages:
            try:
                asyncio.run(asyncio.wait_for(send(messages), timeout=1))
            except Exception as error:  # the process ends; pages poll
                log.warning("live updates not sent at the end (%d): %s", len(messages), type(error).__name__)


BELL: Final = Bell()
atexit.register(BELL.last_words)


def publish(
    workspace_id: UUID,
    run_id: UUID | None,
    effect_ids: Iterable[UUID] = (),
    approval_ids: Iterable[UUID] = (),
    review: bool = False,
) -> None:
    """Say that these things changed. Returns at once and never raises: the record already holds the truth."""
    topics = topics_of(workspace_id, run_id, effect_ids, approval_ids, review)
    BELL.put({t.group: {"type": "live.changed", "topic": t.name, "what": t.kind} for t in topics})


def on_ring(what: Ring) -> None:
    """The console's ringer; ``console/apps.py`` registers it with ``runs.doorbells``."""
    publish(what.workspace, what.run, what.effects, what.approvals, what.reviews)


def recheck(person_id: UUID) -> None:
    """Have a person's sockets check whether they may stay (sign-out, disabling, roles). Never raises."""
    BELL.put({person_group(person_id): {"type": "live.recheck"}})


def _left(sender: object, user: Person | None, **_: object) -> None:
    if user is not None:
        recheck(user.pk)


def connect() -> None:
    """Have the record and the sign-out ring; called once when the console's app is ready."""
    doorbells.register(on_ring)
    user_logged_out.connect(_left, dispatch_uid="console.doorbell")
