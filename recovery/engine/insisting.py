"""Keeping an outcome while the record is away: what the other side said is worth more than another worker's guess.

A connection that breaks right after a send leaves an answer in memory only. It is committed again, by another
connection, for as long as the lease of this process can still be alive; every such commit is guarded, so that a second
one of what the first one did changes nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from itertools import chain, repeat

from django.db import InterfaceError, OperationalError, connection

from recovery.engine import workers
from runs.record import DEAD_AFTER

log = logging.getLogger("recourse.send")

PATIENCE = DEAD_AFTER - workers.BEAT_SECONDS
"""Seconds for which a commit is tried again: the last heartbeat is at most one interval old when the record goes."""

PAUSES = (0.05, 0.1, 0.2, 0.4)
"""Seconds between the first tries; then the last of them again and again."""


def insist[T](do: Callable[[], T]) -> T:
    """The result of ``do``, called again while the record does not answer, for at most PATIENCE seconds.

    ``do`` must be guarded: it may have been carried out although its answer was lost (faults 7 and 8). Raises what it
    raises, and the last OperationalError or InterfaceError when the patience is over.
    """
    until = time.monotonic() + PATIENCE
    for pause in chain(PAUSES, repeat(PAUSES[-1])):
        try:
            return do()
        except (OperationalError, InterfaceError) as away:
            if time.monotonic() + pause >= until:
                raise
            log.warning("the record does not answer (%s); an outcome is kept and committed again", _first(away))
            connection.close()
            time.sleep(pause)
    raise AssertionError("unreachable")


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
