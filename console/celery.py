"""The Celery app. Its messages are doorbells: each says only which row to look at."""

import ctypes
import logging
import os
import signal
import sys
import threading
import time
from typing import Any

from celery import Celery
from celery.signals import (
    worker_process_init,
    worker_process_shutdown,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from django.db import DatabaseError, connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

app = Celery("recourse")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

PR_SET_PDEATHSIG = 1  # linux/prctl.h
log = logging.getLogger("recourse.worker")


@worker_process_init.connect
def pool_process_began(**kwargs: Any) -> None:
    """One process of the advance pool: a worker of its own, since each advances one run at a time.

    It must not outlive its parent: the sweep would take its run over while it still works.
    """
    del kwargs
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    _enlist("advance")


@worker_ready.connect
def worker_began(**kwargs: Any) -> None:
    """The dispatch pool is one process of many threads, and one worker."""
    del kwargs
    if "dispatch" in app.amqp.queues.consume_from:
        _enlist("dispatch")


@worker_shutting_down.connect
def begin_to_end(**kwargs: Any) -> None:
    """Threads that send one effect after another must not keep the process."""
    del kwargs
    from recovery.traffic import lanes

    lanes.close()


@worker_process_shutdown.connect
@worker_shutdown.connect
def leave(**kwargs: Any) -> None:
    """Free this worker's leases at once; after a death they are found by its silence."""
    del kwargs
    from recovery.engine import workers

    try:
        workers.leave()
    except DatabaseError:
        log.info("The record is away; leaving without a word.")


def _enlist(pool: str) -> None:
    """Register the worker and start its heartbeat, in the background: the record may be away for a while."""
    threading.Thread(target=_until_enlisted, args=(pool,), name="enlist", daemon=True).start()


def _until_enlisted(pool: str) -> None:
    from recovery.engine import workers

    while True:
        try:
            workers.me(pool)
        except DatabaseError as error:
            log.warning("Not enlisted yet, the record does not answer: %s", error)
            time.sleep(1)
        else:
            return
        finally:
            connections.close_all()
