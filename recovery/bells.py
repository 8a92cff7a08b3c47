"""Ringing the workers after a commit. A broker that is away costs time, never work: the sweep finds by state."""

from __future__ import annotations

import logging
import time
from typing import Any

from kombu.exceptions import OperationalError

from recovery import failpoints
from runs.doorbells import Ring

log = logging.getLogger("recourse.bells")

QUIET_AFTER_FAILURE = 5.0
"""Seconds without another try after the broker did not answer: a request must not wait for it again and again."""

MOST_WAITING = 2_000
"""Messages of one queue from which on the sweep rings no more: whoever is behind, or gone, reads old bells first, and
a broker whose memory is full takes none at all."""

COUNT_EVERY = 1.0
"""Seconds for which a queue's length is believed; what is rung meanwhile is added."""

_quiet_until = 0.0
_counted: dict[str, tuple[float, int]] = {}


def ring(what: Ring) -> None:
    """Tell the senders what is ready and the advancers what is due. Never raises for a broken broker."""
    from recovery import tasks
    from recovery.traffic import breaker

    if what.trip is not None:
        breaker.look(what.trip)
    for effect in what.ready:
        _publish(tasks.dispatch, str(effect))
    for call in what.calls:
        _publish(tasks.ask, str(call))
    if what.wake and what.run is not None:
        _publish(tasks.advance, str(what.workspace), str(what.run))


def publish(name: str, *args: str) -> bool:
    """Ring the task ``name`` again; False if the broker is away or enough bells wait there already."""
    from recovery import tasks

    task = getattr(tasks, name)
    queue = task.app.amqp.router.route({}, task.name)["queue"].name
    if time.monotonic() < _quiet_until or _waiting(task.app, queue) >= MOST_WAITING:
        return False
    if not _publish(task, *args):
        return False
    at, n = _counted[queue]
    _counted[queue] = (at, n + 1)
    return True


def _waiting(app: Any, queue: str) -> int:
    """How many messages wait in ``queue``, as of a second ago at most."""
    at, n = _counted.get(queue, (-1e9, 0))
    if time.monotonic() - at >= COUNT_EVERY:
        n = _count(app, queue)
        _counted[queue] = (time.monotonic(), n)
    return n


def _count(app: Any, queue: str) -> int:
    with app.connection_for_write() as connection:
        try:
            with connection.channel() as channel:
                return int(channel.queue_declare(queue, passive=True).message_count)
        except (*connection.connection_errors, *connection.channel_errors):
            # An empty queue does not exist, says Redis; a broker that is away is told by the ring itself.
            return 0


def _publish(task: Any, *args: str) -> bool:
    global _quiet_until
    if time.monotonic() < _quiet_until:
        return False
    try:
        failpoints.hit("bell.before_publish")
        task.apply_async(args=args, retry=False)
        failpoints.hit("bell.after_publish")
    except (OperationalError, OSError) as error:
        _quiet_until = time.monotonic() + QUIET_AFTER_FAILURE
        log.warning("the broker does not answer (%s); the sweep rings instead", error)
        return False
    return True
