"""Named downstreams of a workspace, their capacity, and the workers that call them."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from runs.constraints import SameWorkspace
from runs.models.base import Row, choices_check, new_id
from runs.models.workspace import Person
from runs.states import BreakerState, DrainState


class Capacity(models.Model):
    """What a downstream can take; data of the installation, shared by the workspaces that use it.

    All of its numbers are kept by the writer's function in the transaction that commits or ends an attempt, so that a
    restart of anything loses none of them. ``rate``: calls a second that are safe, or None for no limit of ours; we
    stay below it (``runs_pace``). ``next_at``: the first moment that no call has yet; calls take moments, one each,
    evenly apart. ``fresh_at``: when something that belongs to no backlog last took one.

    ``state`` is the breaker's. It opens when at least ``breaker_least`` calls ended in the last two windows (each
    ``WINDOW`` seconds, see ``runs/sql/capacity.sql``) and ``breaker_share`` of them were turned away or not answered;
    ``reopen_at`` is when one call may try (``probe``: its attempt; ``probe_ok``: how it ended). ``opened``: how often
    in a row it opened. The counters of the window before the present one are the ``last_`` ones.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=80, unique=True)
    max_in_flight = models.PositiveIntegerField()
    in_flight = models.PositiveIntegerField(default=0)
    rate = models.FloatField(null=True, help_text="Calls a second that are safe; empty: not limited.")
    next_at = models.DateTimeField(null=True)
    fresh_at = models.DateTimeField(null=True)
    state = models.CharField(max_length=12, choices=BreakerState, default=BreakerState.CLOSED)
    breaker_share = models.FloatField(default=0.5, help_text="Share of failed calls from which on nothing is sent.")
    breaker_least = models.PositiveIntegerField(default=20, help_text="Calls below which the share says nothing.")
    breaker_pause = models.FloatField(default=10.0, help_text="Seconds until one call may try; doubled each time.")
    moved_at = models.DateTimeField(null=True)
    reopen_at = models.DateTimeField(null=True)
    opened = models.PositiveSmallIntegerField(default=0)
    probe = models.UUIDField(null=True)
    probe_ok = models.BooleanField(null=True)
    window_at = models.DateTimeField(null=True)
    calls = models.PositiveIntegerField(default=0)
    repeats = models.PositiveIntegerField(default=0)
    ended = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    last_calls = models.PositiveIntegerField(default=0)
    last_repeats = models.PositiveIntegerField(default=0)
    last_ended = models.PositiveIntegerField(default=0)
    last_failed = models.PositiveIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            choices_check("state", BreakerState, "capacity_state_known"),
            models.CheckConstraint(condition=Q(rate__isnull=True) | Q(rate__gt=0), name="capacity_rate_positive"),
        ]

    def __str__(self) -> str:
        return self.name


class Degraded(models.TextChoices):
    """What is done with new work while a dependency cannot be called."""

    WAIT = "wait"  # it waits unsent until its deadline
    REFUSE = "refuse"  # it is refused at once: its step is told that it did not happen
    FAILOVER = "failover"  # it goes to the failover target, if that is safe for it; else it waits


class Dependency(Row):
    """A downstream of one workspace: where it is, whose credentials, how much of it, and what is done without it.

    ``held_at``: since when a person holds it; nothing is sent then. ``share``: of the capacity's rate, for this
    workspace; ``next_at`` its own next moment. ``fresh_share``: of the rate, kept free for new work during a drain
    while there is some. ``draining``: the live drain. ``degraded`` with ``degraded_promise``: what is done while it
    cannot be called, and what callers may still rely on. ``failover``: where new work may go instead, with what that
    means for consistency and safety and when somebody last tried it. ``recovery_order``: drains of a lower order come
    first. ``warm_up``: seconds over which a drain grows to its full pace.
    """

    name = models.CharField(max_length=80)
    base_url = models.URLField(max_length=500)
    credential = models.CharField(max_length=80, help_text="Alias of the credential, never its value.")
    callback_secrets = models.TextField(blank=True, help_text="Sealed; those that its callbacks are signed with.")
    capacity = models.ForeignKey(Capacity, on_delete=models.PROTECT, related_name="dependencies")
    held_at = models.DateTimeField(null=True)
    held_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    hold_reason = models.TextField(blank=True)
    share = models.FloatField(default=1.0)
    next_at = models.DateTimeField(null=True)
    fresh_share = models.FloatField(default=0.2)
    draining = models.UUIDField(null=True)
    degraded = models.CharField(max_length=12, choices=Degraded, default=Degraded.WAIT)
    degraded_promise = models.TextField(blank=True)
    failover = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    failover_consistency = models.TextField(blank=True)
    failover_safety = models.TextField(blank=True)
    failover_evaluation = models.TextField(blank=True)
    failover_evaluated_at = models.DateTimeField(null=True)
    recovery_order = models.SmallIntegerField(default=0)
    warm_up = models.FloatField(default=6.0)
    canary = models.PositiveSmallIntegerField(default=5)
    asks_to_go_ahead = models.BooleanField(default=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "name"], name="dependency_name_once"),
            models.UniqueConstraint(fields=["workspace", "id"], name="dependency_workspace_id"),
            choices_check("degraded", Degraded, "dependency_degraded_known"),
            models.CheckConstraint(condition=Q(share__gt=0, share__lte=1), name="dependency_share_is_one"),
            models.CheckConstraint(
                condition=Q(fresh_share__gte=0, fresh_share__lt=1), name="dependency_fresh_share_is_one"
            ),
            SameWorkspace(field="failover", name="dependency_failover_same_workspace"),
        ]

    def __str__(self) -> str:
        return self.name


class Drain(Row):
    """The way out of an outage for one dependency (invariant 12). Its backlog: what was asked for until ``began_at``.

    ``part``: of the pace, from 0 to 1, that the backlog may have now. ``total``: effects of the backlog at the
    beginning; ``unknown``: those that had to be read back first; ``dropped``: expired unsent; ``sent``: sends of the
    backlog. ``canaries``: attempts of the canary. ``held_from``: the state to go on from. ``why``: code and facts of
    its state, as with a decision.
    """

    dependency = models.ForeignKey(
        Dependency, on_delete=models.PROTECT, related_name="drains", db_constraint=False, db_index=False
    )
    state = models.CharField(max_length=12, choices=DrainState)
    began_at = models.DateTimeField()
    began_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    moved_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    canary = models.PositiveSmallIntegerField()
    asks = models.BooleanField()
    warm_up = models.FloatField()
    part = models.FloatField(default=0.0)
    next_at = models.DateTimeField(null=True)
    total = models.PositiveIntegerField(default=0)
    unknown = models.PositiveIntegerField(default=0)
    dropped = models.PositiveIntegerField(default=0)
    sent = models.PositiveIntegerField(default=0)
    canaries = ArrayField(models.UUIDField(), default=list)
    held_from = models.CharField(max_length=12, choices=DrainState, blank=True)
    why = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "id"], name="drain_workspace_id"),
            choices_check("state", DrainState, "drain_state_known"),
            models.UniqueConstraint(fields=["dependency"], name="drain_one_live", condition=Q(ended_at__isnull=True)),
            models.CheckConstraint(
                condition=Q(state__in=["drained", "stopped"], ended_at__isnull=False)
                | (~Q(state__in=["drained", "stopped"]) & Q(ended_at__isnull=True)),
                name="drain_ended_at_iff_ended",
            ),
            SameWorkspace(field="dependency", name="drain_same_workspace"),
        ]

    def __str__(self) -> str:
        return f"drain of {self.dependency_id}: {self.state}"


class Worker(models.Model):
    """One heartbeat row a worker process, renewed every 5 s; a lease is live while its worker is."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    pool = models.CharField(max_length=20)
    host = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    code = models.CharField(max_length=64, help_text="Version of the code it runs.")
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["seen_at"], name="worker_seen")]  # dead workers, upkeep/sweep.py

    def __str__(self) -> str:
        return f"{self.pool} {self.host}:{self.pid}"


class ClockShift(models.Model):
    """One row that only tests change: added to the database's clock by ``runs_now()``."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    shift = models.DurationField()

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=models.Q(id=1), name="clock_shift_one_row")]

    def __str__(self) -> str:
        return str(self.shift)


class Transition(models.Model):
    """The legal moves, written from ``runs/states.py`` after each migration; the writer's function reads it."""

    thing = models.CharField(max_length=20)
    source = models.CharField(max_length=24, blank=True)
    target = models.CharField(max_length=24)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["thing", "source", "target"], name="transition_once")]

    def __str__(self) -> str:
        return f"{self.thing}: {self.source} -> {self.target}"
