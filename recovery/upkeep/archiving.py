"""Moving old checkpoints to the archive, beside the sweep: on its own period and thread, since an object store may be
slow and the sweep must not be."""

from __future__ import annotations

import logging
import threading
import time

from django.db import DatabaseError, connections

from runs import clock
from runs.checkpoints import archive, moving

log = logging.getLogger("recourse.sweep")

EVERY = 60.0
"""Seconds between two looks."""


class Mover:
    """One move at a time. ``look`` returns at once."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._next = 0.0
        self.moved = 0

    def look(self) -> None:
        """Begin a move unless one is under way or was lately."""
        if time.monotonic() < self._next or (self._thread is not None and self._thread.is_alive()):
            return
        self._next = time.monotonic() + EVERY
        self._thread = threading.Thread(target=self._move, name="archive", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the move under way."""
        if self._thread is not None:
            self._thread.join()

    def _move(self) -> None:
        try:
            now, beyond, moved = clock.now(), 0, 0
            while True:
                some, beyond = moving.move_due(now, beyond=beyond)
                moved += some
                if not beyond:
                    break
            self.moved += moved
            if moved:
                log.info("%s checkpoints moved to the archive", moved)
        except archive.Away as error:
            log.warning("checkpoints stay in PostgreSQL, the archive does not answer: %s", error)
        except DatabaseError as error:
            log.warning("checkpoints are not moved, the record does not answer: %s", error)
        finally:
            connections.close_all()
