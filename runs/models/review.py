"""The inbox: one thing that needs a person, one row."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from runs.constraints import SameWorkspace
from runs.models.approval import Approval
from runs.models.base import Row, choices_check
from runs.models.effect import Effect, Verdict
from runs.models.run import Run
from runs.models.workspace import Group, Person
from runs.states import ReviewKind, ReviewState


class Severity(models.TextChoices):
    HIGH = "high"
    NORMAL = "normal"


class Review(Row):
    """One open row per (kind, subject), opened and closed in the commit of its cause."""

    kind = models.CharField(max_length=24, choices=ReviewKind)
    subject = models.UUIDField(help_text="Id of the run, effect, approval or verdict it is about.")
    run = models.ForeignKey(
        Run, null=True, on_delete=models.PROTECT, related_name="reviews", db_constraint=False, db_index=False
    )
    effect = models.ForeignKey(
        Effect,
        null=True,
        on_delete=models.PROTECT,
        related_name="reviews",
        db_constraint=False,
        db_index=False,
    )
    approval = models.ForeignKey(
        Approval, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    verdict = models.ForeignKey(
        Verdict, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    state = models.CharField(max_length=8, choices=ReviewState)
    severity = models.CharField(max_length=8, choices=Severity)
    group = models.ForeignKey(Group, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    why = models.JSONField(default=dict)
    opened_at = models.DateTimeField()
    due_at = models.DateTimeField()
    claimed_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    claimed_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "id"], name="review_workspace_id"),
            models.UniqueConstraint(fields=["kind", "subject"], name="review_one_open", condition=Q(state="open")),
            choices_check("state", ReviewState, "review_state_known"),
            choices_check("kind", ReviewKind, "review_kind_known"),
            models.CheckConstraint(
                condition=Q(state="closed", closed_at__isnull=False) | Q(state="open", closed_at__isnull=True),
                name="review_closed_at_iff_closed",
            ),
            SameWorkspace(field="run", name="review_run_same_workspace"),
            SameWorkspace(field="effect", name="review_effect_same_workspace"),
            SameWorkspace(field="approval", name="review_approval_same_workspace"),
            SameWorkspace(field="verdict", name="review_verdict_same_workspace"),
            SameWorkspace(field="group", name="review_group_same_workspace"),
        ]
        indexes: ClassVar = [
            # queries.inbox: open rows by due time
            models.Index(fields=["workspace", "due_at", "id"], name="review_open", condition=Q(state="open")),
            models.Index(fields=["run"], name="review_of_run"),
            # queries.inbox: "being checked" are the unknown effects that have none; queries.effects
            models.Index(fields=["effect"], name="review_open_effect", condition=Q(state="open")),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"
