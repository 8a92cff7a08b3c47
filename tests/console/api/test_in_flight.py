"""The same key at the same moment, over two real connections."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.test import Client

from console.management.commands import demo_people
from runs.models import Run, Workspace
from tests.console.api.conftest import RUNS, START, Cast, problem


def test_a_repeat_while_the_first_is_being_recorded_gets_409_and_then_its_answer(fresh_db: Any, valkey: str) -> None:
    """Invariant 15: in flight 409, afterwards the one run."""
    del valkey
    demo_people.make("http://127.0.0.1:1", lambda email: email)
    cast = Cast(Workspace.objects.get(slug="acme-pay"), Workspace.objects.get(slug="other-pay"))
    caller, key = cast.caller("Oncall A"), uuid4()
    with fresh_db.connect(autocommit=False) as first:
        # the lock that the writer's function takes for this action while it records it
        first.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
            [f"{key}runs.accept{cast.person('Oncall A').pk}"],
        )
        problem(caller.post(RUNS, START, key), 409, "action_in_flight")
        assert not Run.objects.exists()
        first.rollback()
    assert caller.post(RUNS, START, key).status_code == 202
    assert Client().get("/api/v1/schema/").status_code == 401
    assert Run.objects.count() == 1
