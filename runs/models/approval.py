"""Requests for signatures, and the signatures."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from runs.constraints import SameWorkspace
from runs.models.base import Row, RunRow, choices_check
from runs.models.effect import Effect
from runs.models.run import Run
from runs.models.workspace import Group, Person
from runs.states import ApprovalState, SignatureState


class Approval(RunRow):
    """A request for signatures, immutable but for its state (R1), bound to ``digest`` over ``fields`` (R2).

    ``approve_by`` ends signing, ``execute_by`` (set when granted) ends sending; both by the database's clock, and
    ``now >= t`` means over (R6). ``execute_within`` is in seconds.
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    effect = models.ForeignKey(
        Effect, on_delete=models.PROTECT, related_name="approvals", db_constraint=False, db_index=False
    )
    revision = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    fields = models.JSONField()
    body = models.TextField()
    state = models.CharField(max_length=16, choices=ApprovalState)
    needed = models.PositiveSmallIntegerField()
    group = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="+", db_index=False)
    requester = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    editors = models.JSONField(default=list, help_text="Ids of people whose signal changed an earlier revision.")
    precondition = models.JSONField(default=dict)
    epoch = models.PositiveIntegerField()
    asked_at = models.DateTimeField()
    approve_by = models.DateTimeField()
    execute_within = models.PositiveIntegerField()
    granted_at = models.DateTimeField(null=True)
    execute_by = models.DateTimeField(null=True)
    consumed_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    overridden_at = models.DateTimeField(null=True, help_text="When break-glass took the place of signatures (R13).")
    overridden_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    reason = models.JSONField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "id"], name="approval_workspace_id"),
            models.UniqueConstraint(fields=["effect", "revision"], name="approval_revision_once"),
            # one open request an effect: an edit supersedes before it asks anew
            models.UniqueConstraint(
                fields=["effect"],
                name="approval_one_open",
                condition=Q(state__in=["pending", "granted", "unsatisfiable"]),
            ),
            choices_check("state", ApprovalState, "approval_state_known"),
            SameWorkspace(field="effect", name="approval_same_workspace"),
            SameWorkspace(field="group", name="approval_group_same_workspace"),
            SameWorkspace(field="run", name="approval_run_same_workspace"),
        ]
        indexes: ClassVar = [
            # upkeep/sweep.py: signing or sending time over
            models.Index(fields=["approve_by"], name="approval_pending", condition=Q(state="pending")),
            models.Index(fields=["execute_by"], name="approval_granted", condition=Q(state="granted")),
        ]

    def __str__(self) -> str:
        return f"revision {self.revision} for {self.effect_id}"

    @property
    def check_code(self) -> str:
        """First 8 hex digits of the digest, in two groups, to read aloud between two people."""
        return f"{self.digest[:4]}-{self.digest[4:8]}".upper()


class Signature(Row):
    """One person's answer to one request, with what they saw."""

    approval = models.ForeignKey(
        Approval, on_delete=models.PROTECT, related_name="signatures", db_constraint=False, db_index=False
    )
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    state = models.CharField(max_length=12, choices=SignatureState)
    reason = models.TextField()
    saw = models.JSONField()
    at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            # distinct people: one standing signature a person (R4)
            models.UniqueConstraint(
                fields=["approval", "person"], name="signature_once", condition=~Q(state="withdrawn")
            ),
            choices_check("state", SignatureState, "signature_state_known"),
            SameWorkspace(field="approval", name="signature_same_workspace"),
        ]
        # queries.approvals: every signature, the withdrawn ones too
        indexes: ClassVar = [models.Index(fields=["approval", "id"], name="signature_of_approval")]

    def __str__(self) -> str:
        return f"{self.state} by {self.person_id}"
