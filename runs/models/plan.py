"""Compensation plans: what mends the settled effects of a run, in which order, what cannot be, and what stays."""

from __future__ import annotations

from typing import ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from runs.constraints import SameWorkspace
from runs.models.base import RunRow, choices_check
from runs.models.run import Run
from runs.models.workspace import Person
from runs.states import PlanState

PLAN_OVER: Final = frozenset({PlanState.COMPENSATED, PlanState.ENDED})
"""States in which nothing of a plan is left to do; a run has at most one plan in any other."""


class Plan(RunRow):
    """A plan for ``run``, the run that is mended; its history is a part of that run's.

    ``items``: every effect that happened, in the order of the plan, each with what mends it or why it is left out;
    ``digest`` covers them, and rises with ``revision``. ``mending_run_id``: the run that carries it out. Its id is
    chosen when the plan is begun, before that run exists, so that a start that was cut short is taken up under the same
    id; no foreign key, for the same reason.
    ``editors``: people who changed it; they sign none of its effects (R4). ``accepted_by`` proposes to leave what
    stays as it is, ``confirmed_by`` is the second person.
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="plans", db_constraint=False, db_index=False)
    mending_run_id = models.UUIDField(null=True)
    state = models.CharField(max_length=12, choices=PlanState)
    revision = models.PositiveIntegerField(default=1)
    digest = models.CharField(max_length=64)
    items = models.JSONField()
    why = models.JSONField(default=dict)
    stays = models.JSONField(default=list)
    editors = ArrayField(models.UUIDField(), default=list)
    made_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    started_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    accepted_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    accepted_reason = models.TextField(blank=True)
    confirmed_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    made_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "id"], name="plan_workspace_id"),
            # one at a time: what happened meanwhile becomes an item of it
            models.UniqueConstraint(fields=["run"], name="plan_one_open", condition=~Q(state__in=sorted(PLAN_OVER))),
            models.UniqueConstraint(fields=["mending_run_id"], name="plan_one_of_its_run"),
            choices_check("state", PlanState, "plan_state_known"),
            models.CheckConstraint(
                condition=Q(state__in=sorted(PLAN_OVER), ended_at__isnull=False)
                | (~Q(state__in=sorted(PLAN_OVER)) & Q(ended_at__isnull=True)),
                name="plan_ended_at_iff_over",
            ),
            models.CheckConstraint(
                condition=Q(state=PlanState.DRAFT)
                | Q(mending_run_id__isnull=False, started_at__isnull=False)
                | Q(state=PlanState.ENDED),
                name="plan_begun_has_a_run",
            ),
            models.CheckConstraint(
                condition=Q(confirmed_by__isnull=True) | ~Q(confirmed_by=F("accepted_by")), name="plan_two_people"
            ),
            SameWorkspace(field="run", name="plan_run_same_workspace"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["run", "-id"], name="plan_of_run"),
            # upkeep/sweep.py: plans at work; queries: plans of a workspace that are open
            models.Index(fields=["workspace", "-id"], name="plan_open", condition=~Q(state__in=sorted(PLAN_OVER))),
        ]

    def __str__(self) -> str:
        return f"plan for {self.run_id}"

    @property
    def over(self) -> bool:
        return self.state in PLAN_OVER
