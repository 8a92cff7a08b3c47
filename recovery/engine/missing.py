"""An effect whose contract's version this worker does not know: not touched, visible, looked at again after a while.

Its gate says which version is missing. An attempt whose time is over is lost all the same: that nobody knows its
outcome is true without any code.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any, Final

from recovery.contract import EffectContract, registry
from recovery.contract.errors import UnknownOperation
from recovery.engine import endings, snapshots
from recovery.engine.snapshot import Decision, Verb
from runs import clock, record
from runs.errors import IllegalMove, LostRace, StaleVersion
from runs.models import Attempt, Effect
from runs.record import Change, Commit, Entry
from runs.states import ATTEMPT_LIVE, EFFECT_SETTLED, AttemptState, EffectState, EventKind

log = logging.getLogger("recourse.missing")

LOOK_AGAIN: Final = timedelta(minutes=1)
"""How long until an effect without code is looked at again; another worker may know it."""


def contract_of(effect: Effect, lost: Attempt | None = None) -> EffectContract | None:
    """The contract of ``effect``; None where its version is not here, which is then recorded as its gate.

    ``lost``: an attempt that the sweep takes for lost; it ends here if its time is over or its sender is dead.
    """
    try:
        return registry.effect_contract(effect.operation, effect.contract_version)
    except UnknownOperation as error:
        log.warning("effect %s: %s", effect.pk, error)
        _wait(effect, lost, clock.now())
        return None


def _wait(effect: Effect, lost: Attempt | None, now: datetime) -> None:
    at = now + LOOK_AGAIN
    facts = {"operation": effect.operation, "version": effect.contract_version, "at": at.isoformat()}
    gate = Decision(verb=Verb.WAIT, reason="contract_missing", facts=facts, not_before=at).as_json()
    told: dict[str, Any] = {**endings.told_of(effect), "decision": gate}
    change: dict[str, Any] = {"decision": gate, "next_check_at": at}
    kind, before = EventKind.EFFECT_CHECKED, _give_up(effect, lost, now)
    if before:
        kind = EventKind.EFFECT_UNKNOWN
        change |= {"state": EffectState.UNKNOWN, "unknown_since": effect.unknown_since or now}
        told |= {"attempt": str(before[0].data["id"]), "lost": "limit_passed"}
    elif effect.state in EFFECT_SETTLED or effect.state == EffectState.PARTIAL:
        # Settled: without its contract nothing is looked for any more.
        change = {"next_check_at": None}
    elif effect.state == EffectState.READY:
        change["not_before"] = at
        if effect.next_check_at is not None and effect.next_check_at > now:
            # One bell a minute is enough: the senders'; the other keeps the deadline.
            del change["next_check_at"]
    move = record.move("effect", effect.pk, [effect.state], change, version=effect.version)
    try:
        record.commit(Commit(effect.workspace_id, effect.run_id, [Entry(kind, told, [*before, move, record.reckon()])]))
    except (LostRace, StaleVersion, IllegalMove):
        return


def _give_up(effect: Effect, lost: Attempt | None, now: datetime) -> list[Change]:
    """The change that ends a live attempt whose answer cannot come any more; none is due: empty."""
    if lost is None or effect.state != EffectState.IN_FLIGHT:
        return []
    found = [a for a in snapshots.attempts_of(effect.pk) if a.id == lost.pk and a.state in ATTEMPT_LIVE]
    if not found or (found[0].sender_alive and now < found[0].expires_at):
        return []
    prior, ended = [found[0].state], {"state": AttemptState.LOST}
    return [record.move("attempt", lost.pk, prior, ended, times={"ended_at": 0})]
