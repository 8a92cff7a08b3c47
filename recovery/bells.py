"""Ringing the workers after a commit. A broker that is away costs time, never work: the sweep finds by state."""

from __future__ import annotations

import logging
import time

from kombu.exceptions import OperationalError

from runs.doorbells import Ring

log = logging.getLogger("recourse.bells")

QUIET_AFTER_FAILURE = 5.0
"""Seconds without another try after the broker did not answer: a request must not wait for it again and again."""

_quiet_until = 0.0


def ring(what: Ring) -> None:
    """Tell the senders what is ready and the advancers what is due. Never raises for a broken broker."""
    from recovery import tasks

    for effect in what.ready:
        _publish(tasks.dispatch, str(effect))
    if what.wake and what.run is not None:
        _publish(tasks.advance, str(what.workspace), str(what.run))


def publish(name: str, *args: str) -> bool:
    """Ring the task ``name``; False if the broker is away."""
    from recovery import tasks

    return _publish(getattr(tasks, name), *args)


def _publish(task: object, *args: str) -> bool:
    global _quiet_until
    if time.monotonic() < _quiet_until:
        return False
    try:
        task.apply_async(args=args, retry=False)  # type: ignore[attr-defined]
    except (OperationalError, OSError) as error:
        _quiet_until = time.monotonic() + QUIET_AFTER_FAILURE
        log.warning("the broker does not answer (%s); the sweep rings instead", error)
        return False
    return True
