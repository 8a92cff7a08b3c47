"""Which database this is, compared with what it says of itself: the row of the current epoch.

A restored database looks healthy. What tells is beside it: the cluster's identifier, its timeline, and a mark that
grows and is kept outside too (``recovery/upkeep/restore.py``). An epoch belongs to the installation and has no history
of its own: each workspace's chain says when one began. So its row is written here, by plain SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from runs.models import Epoch, Event


@dataclass(frozen=True, slots=True)
class Here:
    """The database that answers: its cluster's identifier and timeline, and its ``identity`` (``runs_identity()``)."""

    system: str
    timeline: int
    identity: str


def here() -> Here:
    """Ask the database which one it is. One query; an ordinary role may ask."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT s.system_identifier::text, c.timeline_id, runs_identity()"
            " FROM pg_control_system() s, pg_control_checkpoint() c"
        )
        return Here(*cursor.fetchone())


def current() -> Epoch:
    """The newest epoch."""
    return Epoch.objects.order_by("-id")[0]


def last_event() -> tuple[int, datetime | None]:
    """Id and time of the last line of history that this database has; (0, None) where there is none."""
    row = Event.objects.order_by("-id").values_list("id", "at").first()
    return row or (0, None)


def confirm(epoch: Epoch, where: Here, mark: int) -> None:
    """The database was compared and is the one last seen: things may be sent from ``where``. ``mark``: the next."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_epoch SET identity = %s, mark = %s WHERE id = %s", [where.identity, mark, epoch.pk])


def begin(number: int, where: Here, mark: int, at: datetime) -> None:
    """Begin epoch ``number``; tokens of those before are fenced, and the workers that had them are forgotten.

    Their processes notice at the next heartbeat and take another name, under the new epoch.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO runs_epoch (id, system_identifier, timeline, began_at, identity, mark)"
            " VALUES (%s, %s, %s, %s, %s, %s)",
            [number, where.system, where.timeline, at, where.identity, mark],
        )
        cursor.execute("DELETE FROM runs_worker")
