"""What has an end: tries, waits, capacities (invariants 10, 11 and 12)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import connection

from recovery.contract import registry
from recovery.contract.outcomes import OutcomeKind
from recovery.engine.computing import LIVE
from runs.models import Attempt, Call, Capacity, Dependency, Effect, EffectLink, Review, Run
from runs.states import ATTEMPT_LIVE, RUN_ENDED, CallState, EffectState, ReviewState, RunState, WaitingOn

if TYPE_CHECKING:
    from recovery.simulation.world import World


def invariant_10(world: World) -> None:
    """Tries, time and budget are bounded, by one layer."""
    seen = world.seen
    tried = [e for e in seen.effects.values() if e["run_id"] in seen.changed and e["attempts"] > 1]
    if not tried:
        return
    rows = Attempt.objects.filter(effect_id__in=[e["id"] for e in tried]).order_by("n")
    tries: dict[Any, list[Attempt]] = {}
    for row in rows:
        tries.setdefault(row.effect_id, []).append(row)
    for effect in tried:
        world.exercised[10] += 1
        retry = registry.effect_contract(effect["operation"], effect["contract_version"]).retry
        mine = tries[effect["id"]]
        counted = [a for a in mine if (a.outcome or {}).get("kind") != OutcomeKind.OVERLOADED]
        if len(counted) > retry.attempts:
            world.violate(10, f"{effect['sent_key']} was tried {len(counted)} times of {retry.attempts}")
        if mine[-1].committed_at - mine[0].committed_at > retry.total:
            world.violate(10, f"{effect['sent_key']} was tried again after {retry.total}")
        if sum(a.state in ATTEMPT_LIVE for a in mine) > 1:
            world.violate(10, f"{effect['sent_key']} has two live attempts")


def invariant_11(world: World) -> None:
    """A wait holds no worker, and something or somebody will end it."""
    for run in sorted(world.seen.changed):
        row = world.seen.runs[run]
        if row["state"] in (RunState.WAITING, *RUN_ENDED):
            world.exercised[11] += 1
            if row["lease_owner"] is not None and not _just_resumed(world, row):
                world.violate(11, f"run {world.label(run)} is {row['state']} and holds a worker")
        if row["state"] in RUN_ENDED and row["wake_at"] is not None:
            world.violate(11, f"run {world.label(run)} has ended and would be woken")
        if row["state"] in (RunState.ACCEPTED, RunState.WAITING) and not _ends(world, row):
            world.violate(11, f"run {world.label(run)} waits for {row['waiting_on']} and nothing ends it")


def _just_resumed(world: World, row: dict[str, Any]) -> bool:
    """A pause was lifted before its worker noticed it: the run is due, and that worker or the next one goes on."""
    due = row["wake_at"] is not None and row["wake_at"] <= world.sending.now + timedelta(seconds=1)
    return row["state"] == RunState.WAITING and row["resumed_at"] is not None and due


def _ends(world: World, row: dict[str, Any]) -> bool:
    if row["wake_at"] is not None or row["wait_event"] or row["lease_owner"] is not None:
        return True
    if EffectLink.objects.filter(run_id=row["id"]).exists():
        return True  # another run's effect: its own run is looked at, and the sweep finds it settled
    for effect in Effect.objects.filter(run_id=row["id"]):
        at = (effect.next_check_at, effect.not_before)
        if any(at) or effect.state == EffectState.IN_FLIGHT:
            return True
    if Run.objects.filter(parent_id=row["id"]).exists() and row["waiting_on"] == WaitingOn.CHILD:
        return True  # its end rings, and the sweep finds what was not rung
    if Call.objects.filter(run_id=row["id"], state__in=LIVE).exists():
        return True
    return Review.objects.filter(run_id=row["id"], state=ReviewState.OPEN).exists()


_LIVE = f"""
SELECT c.in_flight, c.max_in_flight, (
    SELECT count(*) FROM {Call._meta.db_table} a JOIN {Dependency._meta.db_table} d ON d.id = a.dependency_id
    WHERE d.capacity_id = c.id AND a.state = '{CallState.COMMITTED}'
) + (
    SELECT count(*) FROM {Attempt._meta.db_table} a JOIN {Effect._meta.db_table} e ON e.id = a.effect_id
    JOIN {Dependency._meta.db_table} d ON d.id = e.dependency_id
    WHERE d.capacity_id = c.id AND a.state IN ({", ".join(f"'{state}'" for state in sorted(ATTEMPT_LIVE))})
) FROM {Capacity._meta.db_table} c
"""


def invariant_12(world: World) -> None:
    """A capacity is never exceeded, and what it counts is what is out."""
    if world.seen.permits == world.permits:
        return  # no call began or ended
    world.seen.permits = world.permits
    with connection.cursor() as cursor:
        cursor.execute(_LIVE)
        for counted, most, live in cursor.fetchall():
            if live > most or counted != live:
                world.violate(12, f"{live} calls are out, {counted} counted, {most} allowed")
