"""Named downstreams of a workspace, their capacity, and the workers that call them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from runs.models.base import Row, new_id


class Capacity(models.Model):
    """What a downstream can take; data of the installation, shared by the workspaces that use it.

    ``in_flight`` is counted by the writer's function in the transaction that commits or ends an attempt.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=80, unique=True)
    max_in_flight = models.PositiveIntegerField()
    in_flight = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return self.name


class Dependency(Row):
    """A downstream of one workspace: where it is, whose credentials, how much of it."""

    name = models.CharField(max_length=80)
    base_url = models.URLField(max_length=500)
    credential = models.CharField(max_length=80, help_text="Alias of the credential, never its value.")
    callback_secrets = models.TextField(blank=True, help_text="Sealed; those that its callbacks are signed with.")
    capacity = models.ForeignKey(Capacity, on_delete=models.PROTECT, related_name="dependencies")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "name"], name="dependency_name_once"),
            models.UniqueConstraint(fields=["workspace", "id"], name="dependency_workspace_id"),
        ]

    def __str__(self) -> str:
        return self.name


class Worker(models.Model):
    """One heartbeat row a worker process, renewed every 5 s; a lease is live while its worker is."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    pool = models.CharField(max_length=20)
    host = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    code = models.CharField(max_length=64, help_text="Version of the code it runs.")
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["seen_at"], name="worker_seen")]  # dead workers, upkeep/sweep.py

    def __str__(self) -> str:
        return f"{self.pool} {self.host}:{self.pid}"


class Epoch(models.Model):
    """A stretch of the record's life between restores; high bits of every fencing token."""

    id = models.PositiveIntegerField(primary_key=True)
    system_identifier = models.CharField(max_length=32)
    timeline = models.PositiveIntegerField()
    began_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"epoch {self.id}"


class ClockShift(models.Model):
    """One row that only tests change: added to the database's clock by ``runs_now()``."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    shift = models.DurationField()

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=models.Q(id=1), name="clock_shift_one_row")]

    def __str__(self) -> str:
        return str(self.shift)


class Transition(models.Model):
    """The legal moves, written from ``runs/states.py`` after each migration; the writer's function reads it."""

    thing = models.CharField(max_length=20)
    source = models.CharField(max_length=24, blank=True)
    target = models.CharField(max_length=24)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["thing", "source", "target"], name="transition_once")]

    def __str__(self) -> str:
        return f"{self.thing}: {self.source} -> {self.target}"
