"""Rehearsed faults, and what came of them."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from runs.models.base import Row, choices_check
from runs.models.workspace import Person
from runs.states import DrillState


class Drill(Row):
    """One rehearsal of one fault on the live stack. ``verdict``: what was counted, what was wrong, how long it took."""

    name = models.CharField(max_length=40)
    state = models.CharField(max_length=12, choices=DrillState)
    started_by = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    verdict: models.JSONField[Any, Any] = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [
            choices_check("state", DrillState, "drill_state"),
            models.UniqueConstraint(
                fields=["workspace"], name="drill_one_running", condition=Q(state=DrillState.RUNNING)
            ),
            models.CheckConstraint(
                condition=Q(state=DrillState.RUNNING) ^ Q(ended_at__isnull=False), name="drill_ended_exactly"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.state}"
