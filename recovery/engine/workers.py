"""This process as a worker: one heartbeat row, renewed every 5 s by a thread of its own.

The row says that the process lives, nothing more. It is not history: written by plain SQL, outside the record's
writer, and no state depends on it but who may take a lease over.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol
from uuid import UUID

from django.apps import apps
from django.db import DatabaseError, connection, connections
from django.utils.module_loading import module_has_submodule

from recovery import failpoints
from recovery.contract import registry
from recovery.engine import declarations
from runs.models import Epoch
from runs.models.base import new_id

BEAT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Me:
    """Who advances and sends: the worker's id, and the epoch its tokens carry."""

    id: UUID
    pool: str
    epoch: int


class Cast(Protocol):
    """Several workers in one process: whoever is at work now is asked for."""

    def me(self, pool: str) -> Me:
        """The worker at work."""

    def rename(self) -> None:
        """It goes on under another name."""


cast: Cast | None = None
"""Only a simulation sets it: one process then acts as several workers, each with a heartbeat that it is given."""

_lock = threading.Lock()
_me: Me | None = None
_pid: int | None = None


@cache
def code_version() -> str:
    """A digest over the engine's source and that of every app with contracts: another one means other code ("away")."""
    whole = hashlib.sha256()
    for config in sorted(apps.get_app_configs(), key=lambda config: config.name):
        engine = config.name in ("runs", "recovery")
        if engine or (config.module is not None and module_has_submodule(config.module, registry.MODULE)):
            for path in sorted(Path(config.path).rglob("*.py")):
                whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


def me(pool: str = "advance") -> Me:
    """This process's worker; registers it and starts its heartbeat the first time (and anew after a fork)."""
    global _me, _pid
    if cast is not None:
        return cast.me(pool)
    with _lock:
        if _me is None or _pid != os.getpid():
            worker = new_id()
            failpoints.hit("worker.before_enlist")
            with connection.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO runs_worker (id, pool, host, pid, code, started_at, seen_at)"
                    " VALUES (%s, %s, %s, %s, %s, clock_timestamp(), clock_timestamp())",
                    [worker, pool, socket.gethostname(), os.getpid(), code_version()],
                )
            declarations.keep()
            epoch = Epoch.objects.order_by("-id").values_list("id", flat=True)[0]
            failpoints.hit("worker.after_enlist")
            _me, _pid = Me(worker, pool, epoch), os.getpid()
            threading.Thread(target=_beat, args=(worker,), name="heartbeat", daemon=True).start()
        return _me


_stop = threading.Event()


def rename() -> None:
    """Go on as another worker: the heartbeat of this one ends, and after its silence its leases are free.

    For a process that cannot say what became of a lease it took.
    """
    global _me
    if cast is not None:
        return cast.rename()
    with _lock:
        _me = None


def _beat(worker: UUID) -> None:
    while not _stop.wait(BEAT_SECONDS):
        if _me is None or _me.id != worker:
            return
        try:
            known = beat(worker)
        except DatabaseError:
            # The record is away. A worker that cannot say it lives is rightly taken for dead; try again next time.
            connections.close_all()
            continue
        if not known:
            # The record was restored and does not know this worker, or a new epoch forgot it.
            forgotten(worker)
            return


def beat(worker: UUID) -> bool:
    """Renew the heartbeat of ``worker`` now. False: the record does not know it."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_worker SET seen_at = clock_timestamp() WHERE id = %s", [worker])
        return bool(cursor.rowcount)


def forgotten(worker: UUID) -> None:
    """Go on as another worker, in the record's epoch as it is then, if this process still is ``worker``.

    A process that began before a restore must not go on under an old epoch (fault 39).
    """
    global _me
    with _lock:
        if _me is not None and _me.id == worker:
            _me = None


def leave() -> None:
    """Say goodbye: leases of this process are free at once. For an orderly stop."""
    global _me
    if _me is not None and _pid == os.getpid():
        with connection.cursor() as cursor:
            cursor.execute("UPDATE runs_worker SET seen_at = '-infinity' WHERE id = %s", [_me.id])
        _me = None


def bury_dead_here() -> int:
    """Free at once the leases of workers of this host whose process is gone. Returns how many were found.

    Only a shortcut: a worker elsewhere, or one whose pid was taken by another process, is found by its silence. Rows of
    workers that fell silent a day ago are dropped.
    """
    host = socket.gethostname()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, pid FROM runs_worker WHERE host = %s AND seen_at > clock_timestamp() - interval '1 hour'",
            [host],
        )
        gone = [worker for worker, pid in cursor.fetchall() if not _runs(pid)]
        if gone:
            cursor.execute("UPDATE runs_worker SET seen_at = '-infinity' WHERE id = ANY(%s)", [gone])
        # Whoever left or was buried has no time of its own any more: its start tells that the row is old.
        cursor.execute(
            "DELETE FROM runs_worker WHERE seen_at < clock_timestamp() - interval '1 day'"
            " AND started_at < clock_timestamp() - interval '1 day'"
        )
    return len(gone)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
