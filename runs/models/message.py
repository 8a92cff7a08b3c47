"""Messages: callbacks of the other side, and notices to people."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from runs.constraints import SameWorkspace
from runs.models.base import Row, choices_check
from runs.models.dependency import Dependency
from runs.models.effect import Effect
from runs.models.review import Review
from runs.models.run import Run
from runs.states import CallbackState, NoticeState


class Callback(Row):
    """A genuine message of the other side, once per (dependency, message id); kept as it came.

    ``digest`` is of the body: the same id with another body is another message, and refused. ``why``: why it was set
    aside, or put away.
    """

    dependency = models.ForeignKey(
        Dependency, on_delete=models.PROTECT, related_name="callbacks", db_constraint=False, db_index=False
    )
    message = models.CharField(max_length=200, help_text="Its own id, the header webhook-id.")
    digest = models.CharField(max_length=64)
    state = models.CharField(max_length=12, choices=CallbackState)
    run = models.ForeignKey(
        Run, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    effect = models.ForeignKey(
        Effect, null=True, on_delete=models.PROTECT, related_name="callbacks", db_constraint=False, db_index=False
    )
    evidence = models.UUIDField(null=True)
    why = models.JSONField(default=dict)
    body = models.TextField()
    sent_at = models.DateTimeField(help_text="By their clock, the header webhook-timestamp.")
    received_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["dependency", "message"], name="callback_once"),
            models.UniqueConstraint(fields=["workspace", "id"], name="callback_workspace_id"),
            choices_check("state", CallbackState, "callback_state_known"),
            SameWorkspace(field="dependency", name="callback_same_workspace"),
            SameWorkspace(field="run", name="callback_run_same_workspace"),
            SameWorkspace(field="effect", name="callback_effect_same_workspace"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["workspace", "-id"], name="callback_aside", condition=Q(state="aside")),
            models.Index(fields=["effect", "id"], name="callback_of_effect"),
        ]

    def __str__(self) -> str:
        return f"{self.message} from {self.dependency_id}"


class Channel(models.TextChoices):
    WEBHOOK = "webhook"
    EMAIL = "email"


class NoticeTarget(Row):
    """Where notices of a workspace go: an address, and the kinds of reviews that it wants (none named: all).

    ``secret`` is sealed; it signs what a webhook gets (Standard Webhooks). ``language``: of the sentences.
    """

    channel = models.CharField(max_length=8, choices=Channel)
    address = models.CharField(max_length=500)
    secret = models.TextField(blank=True)
    kinds = models.JSONField(default=list)
    language = models.CharField(max_length=12, default="en")
    since = models.DateTimeField(help_text="Reviews opened before it stay untold.")
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "id"], name="notice_target_workspace_id"),
            models.UniqueConstraint(
                fields=["workspace", "channel", "address"],
                name="notice_target_once",
                condition=Q(ended_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.channel} {self.address}"


class Notice(Row):
    """One message about one review to one target; its id is the message id, so that a repeat is known as one.

    Not a state of the record: what is told changes nothing, and the review stays whoever hears of it.
    """

    target = models.ForeignKey(
        NoticeTarget, on_delete=models.PROTECT, related_name="notices", db_constraint=False, db_index=False
    )
    review = models.ForeignKey(
        Review, on_delete=models.PROTECT, related_name="notices", db_constraint=False, db_index=False
    )
    state = models.CharField(max_length=8, choices=NoticeState, default=NoticeState.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField()
    made_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["review", "target"], name="notice_once"),
            choices_check("state", NoticeState, "notice_state_known"),
            SameWorkspace(field="target", name="notice_same_workspace"),
            SameWorkspace(field="review", name="notice_review_same_workspace"),
        ]
        indexes: ClassVar = [
            # upkeep/notify.py: what is to be sent
            models.Index(fields=["due_at"], name="notice_due", condition=Q(state="waiting")),
        ]

    def __str__(self) -> str:
        return f"about {self.review_id} to {self.target_id}"
