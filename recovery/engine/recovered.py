"""A run asks for what had happened in the stretch that a restore lost: it is told so, and nothing is sent.

Keys are deterministic: the run that asks again, or one that was submitted again, comes with the same key. Where the
authority's list showed that key and its facts are the ones meant, the effect enters the record as succeeded, on that
evidence, with the try that the record lost. Anything less is looked at like any effect after a restore.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Q

from recovery.contract.readback import ReadbackAnswer
from recovery.engine import endings, intents, lookfirst, reading
from recovery.engine.changes import reason
from recovery.engine.intents import Intent
from recovery.engine.session import Session
from runs import record
from runs.models import Effect, Recovered
from runs.record import Entry
from runs.states import Claim, EffectState, EventKind, Strength

MOST_DIGITS: Final = 4
"""Of a generation; what is longer was not made by us."""


@dataclass(frozen=True, slots=True)
class Found:
    """The effect as it will be, and the entry that makes it so."""

    effect: Effect
    entry: Entry


def already(s: Session, intent: Intent, now: datetime) -> Found | None:
    """What is known of ``intent`` from the sweep after a restore, if that proves that it happened."""
    contract = intent.request.contract
    stretch = lookfirst.stretch_of(s.workspace, now)
    if stretch is None or contract.reconcile is None:
        return None
    kept = _under(s, intent)
    if kept is None:
        return None
    row = {**intent.row, "generation": _generation(intent, kept.reference), "sent_key": kept.reference}
    effect = Effect(**row)
    answer = contract.reconcile.compare(
        kept.item, intent.request.params, kept.reference, body=row["body"].encode(), at=kept.found_at
    )
    if (answer.claim, answer.strength) != (Claim.HAPPENED, Strength.PROVES):
        return None
    lost = stretch.lost(1, contract)
    attempt = intents.attempt_row(row, n=1, token=int(s.run["token"]), worker=stretch.id)
    attempt |= {"state": lost.state, "committed_at": lost.committed_at, "expires_at": lost.expires_at}
    return _found(effect, row, attempt, answer, kept, now)


def _under(s: Session, intent: Intent) -> Recovered | None:
    """The latest generation that was found of this key: only the last one can have happened."""
    key = intent.row["key"]
    rows = Recovered.objects.filter(workspace_id=s.workspace, operation=intent.row["operation"], met_by=None)
    named = rows.filter(Q(reference=key) | Q(reference__startswith=f"{key}/"))
    mine = [row for row in named if _generation(intent, row.reference) >= intent.row["generation"]]
    return max(mine, key=lambda row: _generation(intent, row.reference), default=None)


def _generation(intent: Intent, reference: str) -> int:
    """Which generation of the intent's key a reference is; 0: of another key."""
    key = intent.row["key"]
    if reference == key:
        return 1
    tail = reference.removeprefix(f"{key}/")
    return int(tail) if tail != reference and tail.isdecimal() and len(tail) <= MOST_DIGITS else 0


def _found(
    effect: Effect,
    row: dict[str, object],
    attempt: dict[str, object],
    answer: ReadbackAnswer,
    kept: Recovered,
    now: datetime,
) -> Found:
    evidence = reading.evidence(effect, answer, now)
    why = reason("recovered", since=kept.found_at.isoformat())
    row = {**row, "state": EffectState.SUCCEEDED, "attempts": 1, "result": answer.item, "reason": why}
    made = Effect(**{**row, "requested_at": now, "settled_at": now})
    told = {**endings.told_of(made), "state": EffectState.SUCCEEDED, "evidence": str(evidence["id"])}
    changes = [
        record.new("effect", row, {"requested_at": 0, "settled_at": 0}),
        record.new("attempt", attempt, {"ended_at": 0}),
        record.new("evidence", evidence, {"received_at": 0}),
        record.move("recovered", kept.pk, None, {"met_by": made.pk}, times={"met_at": 0}),
    ]
    return Found(made, Entry(EventKind.EFFECT_RECOVERED, {**told, "claim": evidence["claim"]}, changes))
