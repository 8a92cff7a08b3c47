"""Folding a run's history into the states of everything it moved (invariant 9)."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from runs.models import Approval, Attempt, Call, Callback, Effect, Event, Plan, Review, Run, Signature, Verdict

_PROJECTIONS = {
    "effect": (Effect, "run_id"),
    "attempt": (Attempt, "run_id"),
    "approval": (Approval, "run_id"),
    "signature": (Signature, "approval__run_id"),
    "verdict": (Verdict, "run_id"),
    "review": (Review, "run_id"),
    "plan": (Plan, "run_id"),
    "callback": (Callback, "run_id"),
    "call": (Call, "run_id"),
}


def fold(events: Iterable[Event]) -> dict[tuple[str, str], str]:
    """The state of each thing after ``events``, by (thing, id). Raises ValueError where a move does not continue."""
    states: dict[tuple[str, str], str] = {}
    for event in events:
        for step in event.body["moves"]:
            what = (step["t"], step["id"])
            if states.get(what, "") != step["from"]:
                raise ValueError(f"event #{event.seq} moves {what} from {step['from']!r}, it was {states.get(what)!r}")
            states[what] = step["to"]
    return states


def projection(run: Run) -> dict[tuple[str, str], str]:
    """The same from the tables."""
    states = {("run", str(run.pk)): run.state}
    for thing, (model, path) in _PROJECTIONS.items():
        rows: Iterable[tuple[UUID, str]] = model.objects.filter(**{path: run.pk}).values_list("pk", "state")  # type: ignore[attr-defined]
        states.update({(thing, str(pk)): state for pk, state in rows})
    return states


def differences(run: Run) -> list[str]:
    """What folding the history gives and the tables do not, or the other way round. Empty is right."""
    folded = fold(Event.objects.filter(run_id=run.pk).order_by("seq"))
    stored = projection(run)
    return [
        f"{thing} {id}: history {folded.get((thing, id))!r}, table {stored.get((thing, id))!r}"
        for thing, id in sorted(folded.keys() | stored.keys())
        if folded.get((thing, id)) != stored.get((thing, id))
    ]
