"""Effects, their attempts and the evidence about them."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from runs.constraints import SameWorkspace
from runs.models.base import RunRow, choices_check
from runs.models.dependency import Dependency
from runs.models.run import Run
from runs.models.workspace import Group, Person
from runs.states import (
    EFFECT_SETTLED,
    AttemptState,
    Claim,
    EffectState,
    EvidenceKind,
    Strength,
    VerdictSays,
    VerdictState,
)


class Effect(RunRow):
    """One logical external change: operation, target, params and one idempotency key (invariant 3).

    ``body`` is the text of the bytes that the port sends; ``sent_key`` is the key as the other side sees it.
    ``decision`` is the last Decision of the engine, ``reason`` why it is in its state: both code plus facts.
    ``mends``: the settled effect, of another run, that this one compensates.
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="effects", db_constraint=False, db_index=False)
    dependency = models.ForeignKey(
        Dependency, on_delete=models.PROTECT, related_name="effects", db_constraint=False, db_index=False
    )
    ordinal = models.PositiveIntegerField()
    operation = models.CharField(max_length=120)
    contract_version = models.PositiveIntegerField()
    contract_digest = models.CharField(max_length=64)
    target = models.CharField(max_length=300)
    params = models.JSONField()
    key = models.CharField(max_length=255)
    generation = models.PositiveIntegerField(default=1)
    sent_key = models.CharField(max_length=255)
    intent_digest = models.CharField(max_length=64)
    revision = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=24, choices=EffectState)
    version = models.PositiveIntegerField(default=1)
    request = models.JSONField()
    body = models.TextField()
    describe = models.CharField(max_length=300)
    stake = models.JSONField(null=True)
    irreversible = models.TextField(blank=True)
    group = models.ForeignKey(Group, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    inline = models.BooleanField(default=False)
    attempts = models.PositiveSmallIntegerField(default=0)
    checks = models.PositiveSmallIntegerField(default=0)
    not_before = models.DateTimeField(null=True)
    next_check_at = models.DateTimeField(null=True)
    deadline = models.DateTimeField()
    unknown_since = models.DateTimeField(null=True)
    review_at = models.DateTimeField(null=True)
    result = models.JSONField(null=True)
    reason = models.JSONField(null=True)
    decision = models.JSONField(null=True)
    mends = models.ForeignKey(
        "runs.Effect",
        null=True,
        on_delete=models.PROTECT,
        related_name="mended_by",
        db_constraint=False,
        db_index=False,
    )
    requested_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "id"], name="effect_workspace_id"),
            models.UniqueConstraint(fields=["workspace", "operation", "key", "generation"], name="effect_one_intent"),
            models.UniqueConstraint(fields=["run", "ordinal"], name="effect_ordinal"),
            choices_check("state", EffectState, "effect_state_known"),
            models.CheckConstraint(
                condition=Q(state__in=sorted(EFFECT_SETTLED), settled_at__isnull=False)
                | (~Q(state__in=sorted(EFFECT_SETTLED)) & Q(settled_at__isnull=True)),
                name="effect_settled_at_iff_settled",
            ),
            SameWorkspace(field="run", name="effect_run_same_workspace"),
            SameWorkspace(field="dependency", name="effect_dependency_same_workspace"),
            SameWorkspace(field="group", name="effect_group_same_workspace"),
            SameWorkspace(field="mends", name="effect_mends_same_workspace"),
            # a compensation happens at most once (invariant 16): the next generation exists only after the one before
            # is known not to have happened, like that of any key
            models.UniqueConstraint(
                fields=["mends", "generation"], name="effect_mended_once", condition=Q(mends__isnull=False)
            ),
        ]
        indexes: ClassVar = [
            # upkeep/sweep.py: what to send, what to look at again
            # (no index names a state: what settles at once then stays off all of them, a HOT update)
            models.Index(fields=["not_before"], name="effect_ready", condition=Q(not_before__isnull=False)),
            models.Index(fields=["next_check_at"], name="effect_to_check", condition=Q(next_check_at__isnull=False)),
            # queries.inbox: "being checked"
            models.Index(fields=["workspace"], name="effect_unsettled", condition=Q(next_check_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.operation} {self.key}"

    @property
    def settled(self) -> bool:
        return self.state in EFFECT_SETTLED


class EffectLink(RunRow):
    """A run that asked for another run's effect: it waits on it, only the owner sends (invariant 3)."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="links", db_constraint=False, db_index=False)
    effect = models.ForeignKey(Effect, on_delete=models.PROTECT, related_name="links", db_constraint=False)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "effect"], name="effect_link_once"),
            SameWorkspace(field="run", name="effect_link_run_same_workspace"),
            SameWorkspace(field="effect", name="effect_link_effect_same_workspace"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} waits on {self.effect_id}"


class Attempt(RunRow):
    """One try to carry an effect out; committed before the first byte leaves (invariant 2)."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    effect = models.ForeignKey(
        Effect, on_delete=models.PROTECT, related_name="attempt_set", db_constraint=False, db_index=False
    )
    n = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=12, choices=AttemptState)
    token = models.BigIntegerField()
    worker = models.UUIDField()
    committed_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(help_text="After this the sweep takes it for lost.")
    ended_at = models.DateTimeField(null=True)
    outcome = models.JSONField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["effect", "n"], name="attempt_once"),
            models.UniqueConstraint(fields=["workspace", "id"], name="attempt_workspace_id"),
            choices_check("state", AttemptState, "attempt_state_known"),
            # one live attempt an effect: single flight even where keys do not exist; the sweep reads it too
            models.UniqueConstraint(
                fields=["effect"], name="attempt_one_live", condition=Q(state__in=["committed", "claimed"])
            ),
            SameWorkspace(field="effect", name="attempt_same_workspace"),
            SameWorkspace(field="run", name="attempt_run_same_workspace"),
        ]

    def __str__(self) -> str:
        return f"try {self.n} of {self.effect_id}"


class Evidence(RunRow):
    """What supports an outcome; kept, never edited: a correction is another row."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    effect = models.ForeignKey(
        Effect, on_delete=models.PROTECT, related_name="evidence", db_constraint=False, db_index=False
    )
    attempt = models.ForeignKey(
        Attempt, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    kind = models.CharField(max_length=12, choices=EvidenceKind)
    strength = models.CharField(max_length=12, choices=Strength)
    claim = models.CharField(max_length=12, choices=Claim)
    facts = models.JSONField(default=list)
    detail = models.JSONField(default=dict)
    raw = models.TextField(blank=True)
    digest = models.CharField(max_length=64)
    person = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    observed_at = models.DateTimeField()
    received_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            SameWorkspace(field="effect", name="evidence_same_workspace"),
            SameWorkspace(field="run", name="evidence_run_same_workspace"),
            SameWorkspace(field="attempt", name="evidence_attempt_same_workspace"),
        ]
        indexes: ClassVar = [models.Index(fields=["effect", "id"], name="evidence_of_effect")]
        verbose_name_plural = "evidence"

    def __str__(self) -> str:
        return f"{self.kind} about {self.effect_id}"


class Verdict(RunRow):
    """A person's decision about an unknown outcome, with the evidence it rests on."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    effect = models.ForeignKey(
        Effect, on_delete=models.PROTECT, related_name="verdicts", db_constraint=False, db_index=False
    )
    effect_version = models.PositiveIntegerField()
    says = models.CharField(max_length=16, choices=VerdictSays)
    state = models.CharField(max_length=12, choices=VerdictState)
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    reason = models.TextField()
    evidence = ArrayField(models.UUIDField(), default=list)
    digest = models.CharField(max_length=64)
    at = models.DateTimeField()
    confirmed_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    confirm_reason = models.TextField(blank=True)
    confirmed_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "id"], name="verdict_workspace_id"),
            models.UniqueConstraint(fields=["effect"], name="verdict_one_proposed", condition=Q(state="proposed")),
            choices_check("state", VerdictState, "verdict_state_known"),
            # the second person is another person (invariant 4, D3)
            models.CheckConstraint(
                condition=Q(confirmed_by__isnull=True) | ~Q(confirmed_by=models.F("person")),
                name="verdict_two_people",
            ),
            SameWorkspace(field="effect", name="verdict_same_workspace"),
            SameWorkspace(field="run", name="verdict_run_same_workspace"),
        ]
        indexes: ClassVar = [models.Index(fields=["effect", "id"], name="verdict_of_effect")]

    def __str__(self) -> str:
        return f"{self.says} for {self.effect_id}"
