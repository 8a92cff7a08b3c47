"""Runs, their signals and their checkpoints."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Cast, Right

from runs.constraints import SameWorkspace
from runs.models.base import Row, RunRow, choices_check
from runs.models.workspace import Person
from runs.states import RUN_ENDED, RunState, Scope, WaitingOn


class Run(Row):
    """One execution of a run type. Its data lives only in its checkpoints; its row is the head of its chain.

    ``wake_at`` is when a worker should look at it: due now, a timer, a deadline. ``gate`` is the stored list of
    decisions that the screens show. ``version`` rises only for what a person might decide differently on.
    ``config``: the versions of model, prompt, policy, interface, workflow and schema that it keeps. ``answered``: what
    a person last said about going on, and at which checkpoint; it counts for that checkpoint only.
    """

    type = models.CharField(max_length=120)
    type_version = models.PositiveIntegerField()
    contract_digest = models.CharField(max_length=64)
    config = models.JSONField(default=dict)
    title = models.CharField(max_length=300)
    goal = models.CharField(max_length=500, blank=True)
    principal = models.CharField(max_length=200)
    started_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    references = ArrayField(models.CharField(max_length=120), default=list)
    priority = models.SmallIntegerField(default=0)
    deadline = models.DateTimeField(null=True)
    state = models.CharField(max_length=24, choices=RunState)
    waiting_on = models.CharField(max_length=24, choices=WaitingOn, blank=True)
    wait_event = models.CharField(max_length=120, blank=True)
    wake_at = models.DateTimeField(null=True)
    step = models.CharField(max_length=120, blank=True)
    gate = models.JSONField(default=list)
    version = models.PositiveIntegerField(default=1)
    token = models.BigIntegerField(default=0)
    lease_owner = models.UUIDField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)
    answered = models.JSONField(null=True)
    head_seq = models.PositiveIntegerField(default=0)
    head_hash = models.CharField(max_length=64, default="")
    checkpoint_seq = models.PositiveIntegerField(default=0)
    cancel_asked_at = models.DateTimeField(null=True)
    cancel_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    cancel_reason = models.TextField(blank=True)
    cancel_scope = models.CharField(max_length=12, choices=Scope, blank=True)
    cancel_at_once = models.BooleanField(default=False)
    parent = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, related_name="children", db_constraint=False, db_index=False
    )
    child_key = models.CharField(max_length=200, blank=True, help_text="Names it among its parent's children.")
    depth = models.PositiveSmallIntegerField(default=0, help_text="Parents above it.")
    pause_asked_at = models.DateTimeField(null=True)
    pause_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    pause_reason = models.TextField(blank=True)
    pause_scope = models.CharField(max_length=12, choices=Scope, blank=True)
    resumed_at = models.DateTimeField(null=True)
    accepted_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ended_how = models.JSONField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "id"], name="run_workspace_id"),
            choices_check("state", RunState, "run_state_known"),
            models.CheckConstraint(
                condition=Q(state__in=sorted(RUN_ENDED), ended_at__isnull=False)
                | (~Q(state__in=sorted(RUN_ENDED)) & Q(ended_at__isnull=True)),
                name="run_ended_at_iff_ended",
            ),
            models.CheckConstraint(
                condition=(Q(state=RunState.WAITING) & ~Q(waiting_on="")) | ~Q(state=RunState.WAITING),
                name="run_waiting_says_on_what",
            ),
            # a step that is taken twice starts one child; also: the children of a run
            models.UniqueConstraint(
                fields=["parent", "child_key"], name="run_child_once", condition=Q(parent__isnull=False)
            ),
            SameWorkspace(field="parent", name="run_parent_same_workspace"),
        ]
        indexes: ClassVar = [
            # queries.runs: newest first, filtered by state or type
            models.Index(fields=["workspace", "state", "-id"], name="run_by_state"),
            models.Index(fields=["workspace", "type", "-id"], name="run_by_type"),
            models.Index(
                fields=["workspace", "waiting_on", "-id"],
                name="run_by_wait",
                condition=Q(state=RunState.WAITING),
            ),
            # queries.runs: search by business reference (btree_gin), by the last 8 hex digits of the id
            GinIndex(fields=["workspace", "references"], name="run_references"),
            models.Index(F("workspace"), Right(Cast("id", models.TextField()), 8), name="run_by_tail"),
            # upkeep/sweep.py: what is due
            models.Index(fields=["wake_at"], name="run_due", condition=Q(wake_at__isnull=False)),
            # upkeep/sweep.py: runs that wait for a child
            models.Index(fields=["id"], name="run_on_child", condition=Q(waiting_on=WaitingOn.CHILD)),
            # upkeep/sweep.py: runs of dead workers
            models.Index(fields=["lease_owner"], name="run_leased", condition=Q(lease_owner__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.id}"

    @property
    def ended(self) -> bool:
        return self.state in RUN_ENDED


class Signal(RunRow):
    """A named event sent to a run, or a person's correction; kept, consumed once by the run that waits for it."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="signals", db_constraint=False, db_index=False)
    name = models.CharField(max_length=120)
    payload = models.JSONField()
    sender = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    reason = models.TextField(blank=True, help_text="Why a person corrected the run; empty for a plain signal.")
    received_at = models.DateTimeField()
    consumed_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [SameWorkspace(field="run", name="signal_same_workspace")]
        indexes: ClassVar = [
            models.Index(fields=["run", "id"], name="signal_waiting", condition=Q(consumed_at__isnull=True))
        ]

    def __str__(self) -> str:
        return f"{self.name} for {self.run_id}"


class Checkpoint(models.Model):
    """One sealed checkpoint: what another process needs to go on safely.

    ``base``: the full one that this is a delta of. ``key``: the id of the key that sealed it. ``address``: where in the
    archive its bytes are, when they have left this table.
    """

    id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(
        "runs.Workspace", on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="checkpoints", db_constraint=False, db_index=False
    )
    seq = models.PositiveIntegerField()
    why = models.CharField(max_length=60)
    schema = models.PositiveSmallIntegerField()
    base = models.PositiveIntegerField(null=True)
    key = models.CharField(max_length=64, blank=True, default="")
    sealed = models.BinaryField(null=True)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the sealed bytes.")
    size = models.PositiveIntegerField()
    address = models.CharField(max_length=200, blank=True, default="")
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "seq"], name="checkpoint_once"),
            SameWorkspace(field="run", name="checkpoint_same_workspace"),
            models.CheckConstraint(
                condition=Q(sealed__isnull=False, address="") | (Q(sealed__isnull=True) & ~Q(address="")),
                name="checkpoint_is_in_one_place",
            ),
            models.CheckConstraint(
                condition=Q(base__isnull=True) | Q(base__lt=F("seq")), name="checkpoint_base_before"
            ),
        ]

    def __str__(self) -> str:
        return f"checkpoint {self.seq} of {self.run_id}"
