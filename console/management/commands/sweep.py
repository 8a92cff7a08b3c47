"""``manage.py sweep``: the sweep's own process."""

from __future__ import annotations

import logging
import signal
import threading
import time
from typing import Any

from django.core.management.base import BaseCommand
from django.db import DatabaseError, connections

from recovery.engine import workers
from recovery.upkeep.archiving import Mover
from recovery.upkeep.sweep import Sweep, is_the_one

log = logging.getLogger("recourse.sweep")

EVERY = 1.0
"""Seconds between two passes."""


class Command(BaseCommand):
    help = "Ring again, each second, what is due by the record. One process sweeps; others stand by."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: stop.set())
        sweep, mover = Sweep(), Mover()
        mine = False
        while not stop.is_set():
            began = time.monotonic()
            try:
                workers.me("sweep")
                mine = mine or is_the_one()
                if mine:
                    mover.look()
                    counts = {name: n for name, n in sweep.run_once().items() if n}
                    if counts:
                        log.info("sweep %s in %.0f ms", counts, (time.monotonic() - began) * 1000)
            except DatabaseError as error:
                # The record is away: the lock went with the connection. Say so and try again.
                log.warning("sweep: the record does not answer: %s", str(error).strip().splitlines()[0])
                connections.close_all()
                mine = False
            stop.wait(max(0.0, EVERY - (time.monotonic() - began)))
        try:
            workers.leave()
        except DatabaseError:
            log.info("sweep: the record is away, leaving without a word")
