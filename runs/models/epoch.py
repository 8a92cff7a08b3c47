"""The record's epochs, what a restore freezes, and what was found of the stretch that a restore lost."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from runs.constraints import SameWorkspace
from runs.models.base import Row, choices_check
from runs.models.dependency import Dependency
from runs.models.workspace import Person
from runs.restored import RestoreState


class Epoch(models.Model):
    """A stretch of the record's life between restores; high bits of every fencing token.

    ``identity`` names the server's start and the tables that a sweep has compared with what is kept outside the
    database; under another one nothing is sent. ``mark`` grows with each comparison and is kept outside too: a
    database whose mark is smaller than the one outside is older than what was last seen.
    """

    id = models.PositiveIntegerField(primary_key=True)
    system_identifier = models.CharField(max_length=32)
    timeline = models.PositiveIntegerField()
    began_at = models.DateTimeField()
    identity = models.CharField(max_length=120, blank=True, default="", db_default="")
    mark = models.BigIntegerField(default=0, db_default=0)

    def __str__(self) -> str:
        return f"epoch {self.id}"


class Restore(Row):
    """What a restore means for one workspace: nothing is sent until the sweep is done and two people say so.

    ``backup_at``: the last moment that the restored record knows of; what happened from then until ``began_at`` is
    the lost stretch. ``outside``: the last marker kept outside. ``progress``: how far the sweep came, by dependency.
    ``found``: counts. ``left``: what the sweep could not find out, for the two people to read.
    """

    epoch = models.PositiveIntegerField()
    state = models.CharField(max_length=12, choices=RestoreState)
    cause = models.CharField(max_length=24)
    outside = models.JSONField(null=True)
    backup_at = models.DateTimeField()
    began_at = models.DateTimeField()
    progress = models.JSONField(default=dict)
    found = models.JSONField(default=dict)
    left = models.JSONField(default=list)
    swept_at = models.DateTimeField(null=True)
    asked_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    ask_reason = models.TextField(blank=True, default="")
    asked_at = models.DateTimeField(null=True)
    released_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    release_reason = models.TextField(blank=True, default="")
    released_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "epoch"], name="restore_once"),
            models.UniqueConstraint(fields=["workspace", "id"], name="restore_workspace_id"),
            choices_check("state", RestoreState, "restore_state_known"),
            models.CheckConstraint(
                condition=Q(released_by__isnull=True) | ~Q(released_by=models.F("asked_by")),
                name="restore_two_people",
            ),
            models.CheckConstraint(
                condition=Q(state="released", released_at__isnull=False, released_by__isnull=False)
                | (~Q(state="released") & Q(released_at__isnull=True)),
                name="restore_released_at_iff_released",
            ),
        ]
        indexes: ClassVar = [
            # the writer's function, at each lease and each attempt: is anything sent here at all
            models.Index(fields=["workspace"], name="restore_holds", condition=~Q(state="released")),
        ]

    def __str__(self) -> str:
        return f"restore, epoch {self.epoch}"


class Recovered(Row):
    """A record of the other side under a reference of ours that the restored record does not know.

    It has no run: the run that asked may have been accepted in the lost stretch and be gone. ``met_by``: the effect of
    a run that asked for the same intent again and was told that it had happened.
    """

    restore = models.ForeignKey(Restore, on_delete=models.PROTECT, related_name="recovered", db_index=False)
    dependency = models.ForeignKey(Dependency, on_delete=models.PROTECT, related_name="+", db_index=False)
    operation = models.CharField(max_length=120)
    reference = models.CharField(max_length=255)
    item = models.JSONField()
    made_at = models.DateTimeField(null=True)
    found_at = models.DateTimeField()
    met_by = models.UUIDField(null=True)
    met_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            # also how a run that asks again finds it
            models.UniqueConstraint(fields=["workspace", "operation", "reference"], name="recovered_once"),
            SameWorkspace(field="restore", name="recovered_restore_same_workspace"),
            SameWorkspace(field="dependency", name="recovered_dependency_same_workspace"),
        ]

    def __str__(self) -> str:
        return f"{self.operation} {self.reference}"
