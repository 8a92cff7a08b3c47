"""What the database refuses by itself, whatever the application does."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.db import DatabaseError, IntegrityError, connection, models, transaction

from runs import clock, errors, record
from runs.constraints import SameWorkspace
from runs.models import Attempt, Capacity, Effect, Evidence, Run, Signal, Verdict
from runs.models.base import Row
from runs.states import EFFECT_SETTLED, RUN_ENDED, EffectState, RunState
from tests.runs import make
from tests.runs.make import World


def _same_workspace() -> dict[tuple[str, str], SameWorkspace]:
    """Each SameWorkspace constraint by (model, field)."""
    return {
        (model.__name__, constraint.field): constraint
        for model in apps.get_app_config("runs").get_models()
        for constraint in model._meta.constraints
        if isinstance(constraint, SameWorkspace)
    }


def test_every_foreign_key_inside_a_workspace_includes_the_workspace() -> None:
    """Invariant 14: a row of one workspace that names a row of another is refused by the database."""
    carried = _same_workspace()
    missing = [
        f"{model.__name__}.{field.name}"
        for model in apps.get_app_config("runs").get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, models.ForeignKey)
        and issubclass(field.related_model, Row)
        and (model.__name__, field.name) not in carried
    ]
    assert missing == []


def test_each_of_them_is_in_the_database(world: World) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT conname FROM pg_constraint WHERE contype = 'f' AND array_length(conkey, 1) = 2")
        stored = {name for (name,) in cursor.fetchall()}
    assert {constraint.name for constraint in _same_workspace().values()} <= stored


def _now() -> None:
    """Check deferred constraints here instead of at the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def _refused_by(name: str, insert: Any) -> None:
    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        insert()
        _now()
    assert refused.value.__cause__.diag.constraint_name == name  # type: ignore[union-attr]


def test_a_row_of_one_workspace_never_points_into_another(world: World) -> None:
    """Invariant 14, by plain inserts."""
    run = make.accept(world)
    effect = make.effect_in(world, run, "unknown")
    stranger = {"workspace_id": world.other.pk}
    effect_row = make.effect_row(world, run, "ready", dependency_id=world.other_dependency.pk)
    _refused_by("effect_run_same_workspace", lambda: Effect.objects.create(**{**effect_row, **stranger}))
    _refused_by(
        "effect_dependency_same_workspace",
        lambda: Effect.objects.create(**make.effect_row(world, run, "ready", dependency_id=world.other_dependency.pk)),
    )
    _refused_by(
        "attempt_same_workspace",
        lambda: Attempt.objects.create(**{**make.attempt_row(world, run, effect.pk), **stranger}),
    )
    _refused_by(
        "evidence_same_workspace",
        lambda: Evidence.objects.create(**{**make.evidence_row(world, run, effect.pk), **stranger}),
    )
    _refused_by(
        "signal_same_workspace",
        lambda: Signal.objects.create(run_id=run, name="x", payload={}, received_at=clock.now(), **stranger),
    )


def test_the_writer_does_not_reach_into_another_workspace(world: World) -> None:
    run = make.accept(world)
    with pytest.raises(errors.NotFound):
        record.commit(record.Commit(world.other.pk, run, []))
    _refused_by(
        "signal_same_workspace",
        lambda: make.write(
            world,
            run,
            record.new(
                "signal",
                {"workspace_id": world.other.pk, "run_id": run, "name": "x", "payload": {}},
                {"received_at": 0},
            ),
        ),
    )


def test_a_run_has_its_end_exactly_when_it_ended(world: World) -> None:
    for state in RunState:
        ended = state in RUN_ENDED
        given = {"ended_at": None if ended else clock.now()}
        with pytest.raises(IntegrityError), transaction.atomic():
            row = make.run_in(world, state)
            # An UPDATE cannot take an ended run's end away (another rule), so it is inserted without one.
            Run.objects.bulk_create([_copy(row, **given)])


def _copy(run: Run, **other: Any) -> Run:
    fields = {f.attname: getattr(run, f.attname) for f in Run._meta.concrete_fields}
    return Run(**{**fields, "id": uuid4(), **other})


def test_an_effect_has_its_settling_exactly_when_settled(world: World) -> None:
    run = make.accept(world)
    for state in EffectState:
        row = make.effect_row(world, run, state)
        row["settled_at"] = None if state in EFFECT_SETTLED else clock.now()
        with pytest.raises(IntegrityError, match="effect_settled_at_iff_settled"), transaction.atomic():
            Effect.objects.create(**row)


@pytest.mark.parametrize(("model", "name"), [(Run, "run_state_known"), (Effect, "effect_state_known")])
def test_a_state_that_the_code_does_not_know_is_refused(world: World, model: type[models.Model], name: str) -> None:
    make.effect_in(world, make.accept(world), "ready")
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        model._default_manager.update(state="nearly_done")


def test_a_waiting_run_says_on_what(world: World) -> None:
    run = make.accept(world)
    with pytest.raises(IntegrityError, match="run_waiting_says_on_what"), transaction.atomic():
        Run.objects.filter(pk=run).update(state="waiting", waiting_on="")


def test_the_second_person_is_another_person(world: World) -> None:
    """Invariant 4: whoever proposed a verdict does not confirm it."""
    run = make.accept(world)
    effect = make.effect_in(world, run, "unknown")
    row = {
        "workspace_id": world.ws,
        "run_id": run,
        "effect_id": effect.pk,
        "effect_version": 1,
        "says": "did_not_happen",
        "state": "recorded",
        "person": world.person,
        "reason": "r",
        "digest": "d",
        "at": clock.now(),
    }
    with pytest.raises(IntegrityError, match="verdict_two_people"), transaction.atomic():
        Verdict.objects.create(**row, confirmed_by=world.person)
    Verdict.objects.create(**row, confirmed_by=world.second)


def test_capacity_does_not_go_below_nothing(world: World) -> None:
    with pytest.raises((IntegrityError, DatabaseError)), transaction.atomic():
        Capacity.objects.update(in_flight=-1)
