"""Recorded computations: every try, its budget, and the output that was accepted."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from runs.constraints import SameWorkspace
from runs.models.base import RunRow, choices_check
from runs.models.dependency import Dependency
from runs.models.run import Run
from runs.states import CallState


class Call(RunRow):
    """Sample ``n`` of the ``place``-th computation of a run. It changes nothing outside.

    ``digest`` covers what was asked and what was pinned. ``reserved`` is counted before the call, ``spent`` after it,
    in the contract's ``unit``.
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="calls", db_constraint=False, db_index=False)
    dependency = models.ForeignKey(
        Dependency, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    place = models.PositiveIntegerField()
    n = models.PositiveSmallIntegerField()
    operation = models.CharField(max_length=120)
    contract_version = models.PositiveIntegerField()
    contract_digest = models.CharField(max_length=64)
    params = models.JSONField()
    pinned = models.JSONField()
    digest = models.CharField(max_length=64)
    request = models.JSONField()
    body = models.TextField()
    state = models.CharField(max_length=12, choices=CallState)
    token = models.BigIntegerField()
    worker = models.UUIDField(null=True)
    unit = models.CharField(max_length=40)
    reserved = models.BigIntegerField()
    spent = models.BigIntegerField(null=True)
    asked_at = models.DateTimeField()
    not_before = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True, help_text="After this it is taken for lost.")
    ended_at = models.DateTimeField(null=True)
    output = models.JSONField(null=True)
    outcome = models.JSONField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "place", "n"], name="call_once"),
            # the accepted output is one, for ever
            models.UniqueConstraint(fields=["run", "place"], name="call_one_output", condition=Q(state="answered")),
            models.UniqueConstraint(
                fields=["run", "place"], name="call_one_live", condition=Q(state__in=["ready", "committed"])
            ),
            choices_check("state", CallState, "call_state_known"),
            models.CheckConstraint(
                condition=Q(state="answered", output__isnull=False) | ~Q(state="answered"), name="call_answer_kept"
            ),
            SameWorkspace(field="run", name="call_same_workspace"),
            SameWorkspace(field="dependency", name="call_dependency_same_workspace"),
        ]
        indexes: ClassVar = [
            # upkeep/sweep.py: what to ask
            models.Index(fields=["not_before"], name="call_ready", condition=Q(state="ready")),
            # upkeep/sweep.py: what is out for too long
            models.Index(fields=["expires_at"], name="call_out", condition=Q(state="committed")),
        ]

    def __str__(self) -> str:
        return f"{self.operation} {self.place}.{self.n} of {self.run_id}"
