"""History and the actions that caused it."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from runs.constraints import SameWorkspace
from runs.models.run import Run
from runs.models.workspace import Person


class Event(models.Model):
    """One line of history. ``text`` is the stored JSON, byte for byte what ``hash`` covers (it names the previous
    hash). ``run`` empty: a line of the workspace's own chain. UPDATE, DELETE and TRUNCATE are refused by triggers.
    """

    id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey("runs.Workspace", on_delete=models.PROTECT, related_name="+", db_index=False)
    run = models.ForeignKey(
        Run, null=True, on_delete=models.PROTECT, related_name="events", db_constraint=False, db_index=False
    )
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=40)
    actor = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    at = models.DateTimeField()
    text = models.TextField()
    hash = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "seq"], name="event_run_seq", condition=Q(run__isnull=False)),
            models.UniqueConstraint(
                fields=["workspace", "seq"], name="event_workspace_seq", condition=Q(run__isnull=True)
            ),
            SameWorkspace(field="run", name="event_same_workspace"),
        ]

    def __str__(self) -> str:
        return f"#{self.seq} {self.kind}"

    @cached_property
    def body(self) -> dict[str, Any]:
        """The stored text, parsed."""
        parsed = json.loads(self.text)
        assert isinstance(parsed, dict)
        return parsed

    @property
    def data(self) -> dict[str, Any]:
        """What the kind says beside the moves."""
        data = self.body["data"]
        assert isinstance(data, dict)
        return data


class Action(models.Model):
    """Something a person or API client did, by the id that made it safe to press twice (invariant 15)."""

    pk = models.CompositePrimaryKey("workspace_id", "actor_id", "route", "id")
    workspace = models.ForeignKey("runs.Workspace", on_delete=models.PROTECT, related_name="+", db_index=False)
    actor = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    route = models.CharField(max_length=80)
    id = models.UUIDField()
    digest = models.CharField(max_length=64)
    result = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["id"], name="action_by_id")]  # GET /actions/{uuid}/

    def __str__(self) -> str:
        return f"{self.route} {self.id}"
