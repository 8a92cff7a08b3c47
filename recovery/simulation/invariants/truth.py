"""What the record says beside what really happened, by the sandbox's ledger: invariants 3, 4 and 7."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any
from uuid import UUID

from runs.models import Evidence
from runs.states import EFFECT_BLOCKS_END, EFFECT_FREES_KEY, EffectState, RunState

if TYPE_CHECKING:
    from recovery.simulation.world import World

HAPPENED = (EffectState.SUCCEEDED, EffectState.COMPENSATED)
_NOBODY_KNOWS = (EffectState.UNKNOWN, EffectState.DISPUTED)


def invariant_3(world: World) -> None:
    """One intent, one effect: no intent took effect twice, in all generations of its key together."""
    keys = {effect["sent_key"]: effect for effect in world.seen.effects.values()}
    times: dict[tuple[Any, ...], int] = defaultdict(int)
    for key, n in world.network.counts():
        world.exercised[3] += 1
        if n > 1:
            world.violate(3, f"{key} took effect {n} times")
        effect = keys.get(key)
        if effect is not None:
            times[effect["workspace_id"], effect["operation"], effect["key"]] += n
    for (_workspace, _operation, key), n in sorted(times.items(), key=str):
        if n > 1:
            world.violate(3, f"{key} took effect {n} times under several generations")
    for line in world.network.mismatches():
        world.violate(3, f"{line} was sent with other bytes under the same key")


def invariant_4(world: World) -> None:
    """Unknown never becomes failed without evidence, and what the record calls settled is what happened."""
    applied = dict(world.network.counts())
    for effect in world.seen.effects.values():
        n = applied.get(effect["sent_key"], 0)
        if effect["state"] in HAPPENED and not n:
            world.violate(4, f"{effect['sent_key']} is {effect['state']} and never happened")
        if effect["state"] in EFFECT_FREES_KEY and n:
            world.violate(4, f"{effect['sent_key']} is {effect['state']} and happened")
    for event in world.seen.new:
        for move in event.body["moves"]:
            if move["t"] != "effect" or move["from"] not in _NOBODY_KNOWS or move["to"] in _NOBODY_KNOWS:
                continue
            world.exercised[4] += 1
            if move["to"] in EFFECT_FREES_KEY and not _has_evidence(UUID(move["id"])):
                world.violate(4, f"{world.label(move['id'])} left {move['from']} for {move['to']} without evidence")


def _has_evidence(effect: UUID) -> bool:
    return Evidence.objects.filter(effect_id=effect).exists()


def invariant_7(world: World) -> None:
    """Completed means each required effect was verified; an end that leaves something open says so."""
    applied = dict(world.network.counts())
    for run in sorted(world.seen.changed):
        row, own = world.seen.runs[run], world.seen.of_run(run)
        if row["ended_at"] is None:
            continue
        left = [e for e in own if e["state"] in EFFECT_BLOCKS_END - {EffectState.DISPUTED}]
        if left and row["state"] not in (RunState.COMPLETED_UNRESOLVED, RunState.ABORTED):
            world.violate(7, f"run {world.label(run)} ended as {row['state']} with {left[0]['state']} effects")
        if row["state"] != RunState.COMPLETED:
            continue
        world.exercised[7] += 1
        for effect in own:
            if effect["state"] == EffectState.SUCCEEDED and not applied.get(effect["sent_key"]):
                world.violate(7, f"run {world.label(run)} completed, {effect['sent_key']} never happened")
        verified = (row["ended_how"] or {}).get("verified", [])
        known = Evidence.objects.filter(workspace_id=row["workspace_id"], pk__in=verified).count()
        if known != len(set(verified)) or (own and not verified):
            world.violate(7, f"run {world.label(run)} completed on evidence that is not there")
