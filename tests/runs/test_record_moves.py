"""The writer's function refuses what ``states.TRANSITIONS`` does not have: every pair, by real commits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, connection, transaction

from runs import clock, errors, record
from runs.models import Approval, Attempt, Effect, Event, Review, Run, Signature, Transition, Verdict
from runs.states import (
    EFFECT_SETTLED,
    RUN_ENDED,
    START,
    TRANSITIONS,
    ApprovalState,
    AttemptState,
    EffectState,
    ReviewState,
    RunState,
    SignatureState,
    VerdictState,
)
from tests.runs import make
from tests.runs.make import World

ENUMS: dict[str, Any] = {
    "run": RunState,
    "effect": EffectState,
    "attempt": AttemptState,
    "approval": ApprovalState,
    "signature": SignatureState,
    "verdict": VerdictState,
    "review": ReviewState,
}


def test_the_database_table_is_the_code(world: World) -> None:
    stored = set(Transition.objects.values_list("thing", "source", "target"))
    assert stored == {(thing, a, b) for thing, pairs in TRANSITIONS.items() for a, b in pairs}


@pytest.mark.parametrize("thing", sorted(ENUMS))
def test_the_function_that_judges_moves_agrees_on_every_pair(world: World, thing: str) -> None:
    values = [START, *ENUMS[thing].values]
    for source, target in product(values, values):
        assert _judged_legal(thing, source, target) is ((source, target) in TRANSITIONS[thing]), (
            source,
            target,
        )


def _judged_legal(thing: str, source: str, target: str) -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT runs_must_be_legal(%s, %s, %s)", [thing, source, target])
    except DatabaseError as error:
        assert getattr(error.__cause__, "sqlstate", None) == "RC003"
        return False
    return True


def _approval_row(w: World, run: UUID, effect: UUID, state: str) -> dict[str, Any]:
    now = clock.now()
    return {
        "id": record.new_id(),
        "workspace_id": w.ws,
        "run_id": run,
        "effect_id": effect,
        "revision": 1,
        "digest": "d",
        "fields": {},
        "body": "{}",
        "state": state,
        "needed": 2,
        "group_id": w.group.pk,
        "epoch": 1,
        "asked_at": now,
        "approve_by": now + timedelta(hours=8),
        "execute_within": 3600,
    }


def _row(w: World, run: UUID, thing: str, state: str) -> dict[str, Any]:
    """The columns of a ``thing`` in ``state``, with what it hangs on."""
    now = clock.now()
    if thing == "effect":
        return make.effect_row(w, run, state)
    effect = make.effect_in(w, run, EffectState.UNKNOWN).pk
    if thing == "attempt":
        return make.attempt_row(w, run, effect, state=state)
    if thing == "approval":
        return _approval_row(w, run, effect, state)
    if thing == "signature":
        approval = Approval.objects.create(**_approval_row(w, run, effect, ApprovalState.PENDING))
        return {
            "id": record.new_id(),
            "workspace_id": w.ws,
            "approval_id": approval.pk,
            "person_id": w.person.pk,
            "state": state,
            "reason": "read it",
            "saw": {},
            "at": now,
        }
    if thing == "verdict":
        return {
            "id": record.new_id(),
            "workspace_id": w.ws,
            "run_id": run,
            "effect_id": effect,
            "effect_version": 1,
            "says": "happened",
            "state": state,
            "person_id": w.person.pk,
            "reason": "seen in their console",
            "digest": "d",
            "at": now,
        }
    assert thing == "review"
    return {
        "id": record.new_id(),
        "workspace_id": w.ws,
        "run_id": run,
        "kind": "outcome_unknown",
        "subject": uuid4(),
        "state": state,
        "severity": "high",
        "opened_at": now,
        "due_at": now,
        "closed_at": now if state == ReviewState.CLOSED else None,
    }


MODELS: dict[str, Any] = {
    "effect": Effect,
    "attempt": Attempt,
    "approval": Approval,
    "signature": Signature,
    "verdict": Verdict,
    "review": Review,
}


def _with_its_time(thing: str, state: str) -> dict[str, Any]:
    """What must be written together with a state, or its check constraint refuses."""
    if thing == "effect":
        return {"state": state, "settled_at": clock.now() if state in EFFECT_SETTLED else None}
    if thing == "review":
        return {"state": state, "closed_at": clock.now() if state == ReviewState.CLOSED else None}
    return {"state": state}


def _attempted(commit: Callable[[], object]) -> bool:
    """True if the commit was carried out, False if it was an illegal move."""
    try:
        commit()
    except errors.IllegalMove as refused:
        assert refused.facts.keys() == {"thing", "source", "target"}
        return False
    return True


@pytest.mark.parametrize("thing", sorted(MODELS))
def test_every_pair_by_a_real_commit(world: World, thing: str) -> None:
    """Invariant 9: a legal move is written with exactly one event that names it; an illegal one is not."""
    run = make.accept(world)
    model, judged = MODELS[thing], 0
    for source, target in product(ENUMS[thing].values, ENUMS[thing].values):
        if source == target:
            continue
        row = model.objects.create(**_row(world, run, thing, source))
        before = Event.objects.filter(run_id=run).count()
        change = record.move(thing, row.pk, [source], _with_its_time(thing, target))
        done = _attempted(lambda change=change: make.write(world, run, change))
        legal = (source, target) in TRANSITIONS[thing]
        assert done is legal, (thing, source, target)
        row.refresh_from_db()
        assert row.state == (target if legal else source)
        lines = list(Event.objects.filter(run_id=run).order_by("seq")[before:])
        assert len(lines) == int(legal)
        if legal:
            expected = {"t": thing, "id": str(row.pk), "from": source, "to": target}
            assert lines[0].body["moves"] == [expected]
        judged += 1
    assert judged == len(ENUMS[thing].values) * (len(ENUMS[thing].values) - 1)


@pytest.mark.parametrize("thing", sorted(MODELS))
def test_a_row_begins_only_where_it_may(world: World, thing: str) -> None:
    run = make.accept(world)
    for state in ENUMS[thing].values:
        row = _row(world, run, thing, state)
        done = _attempted(lambda row=row: make.write(world, run, record.new(thing, row)))
        assert done is ((START, state) in TRANSITIONS[thing]), state
        assert MODELS[thing].objects.filter(pk=row["id"]).exists() is done


def test_every_pair_of_the_run_itself(world: World) -> None:
    """Invariant 5 among them: no move leaves an ended state."""
    for source, target in product(RunState.values, RunState.values):
        if source == target:
            continue
        run = make.run_in(world, source)
        change = record.run_moves(
            {"state": target, "waiting_on": "timer", "ended_at": clock.now() if target in RUN_ENDED else None}
        )
        done = _attempted(lambda run=run, change=change: make.write(world, run.pk, change))
        assert done is ((source, target) in TRANSITIONS["run"]), (source, target)
        run.refresh_from_db()
        assert run.state == (target if done else source)


def test_a_run_begins_accepted_and_nothing_else(world: World) -> None:
    for state in RunState.values:
        if state == RunState.ACCEPTED:
            continue
        with pytest.raises(errors.IllegalMove):
            make.accept(world, state=state, waiting_on="timer")
    assert Run.objects.count() == 0


def test_writing_the_same_state_is_no_move(world: World) -> None:
    run = make.accept(world)
    effect = make.effect_in(world, run, EffectState.UNKNOWN)
    make.write(world, run, record.move("effect", effect.pk, ["unknown"], {"state": "unknown", "checks": 1}))
    assert Event.objects.filter(run_id=run).latest("seq").body["moves"] == []
    effect.refresh_from_db()
    assert (effect.checks, effect.version) == (1, 1)
