"""What people, clocks and other workers do in a scene: by the test itself, or by a worker that may die meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection

from recovery import failpoints
from recovery.actions import approvals as approval_actions
from recovery.actions import runs as run_actions
from recovery.actions import verdicts
from recovery.actions.common import Done
from recovery.engine.reconcile import lose
from runs import clock
from runs.models import Approval, Attempt, Person, Run, Workspace
from runs.record import Act
from runs.states import ATTEMPT_LIVE
from tests.recovery.stage import SAW

Deed = Callable[[dict[str, Any]], object]


def act(asked: dict[str, Any]) -> Act:
    """The act that ``asked`` names; the same in every process that does it."""
    return Act(UUID(asked["act"]), asked["what"], "digest")


def person(name: str) -> Person:
    """Somebody of the stage's first workspace: ``oncall-a``, ``approver-c``."""
    return Person.objects.get(email=f"{name}@acme-pay.example")


def accept(asked: dict[str, Any]) -> Done:
    """Oncall A starts a run."""
    workspace = Workspace.objects.get(slug="acme-pay")
    given = (workspace, asked["type"], asked["input"])
    return run_actions.accept(*given, actor=person("oncall-a"), act=act(asked))


def sign(asked: dict[str, Any]) -> object:
    """Approver C gives the last signature."""
    (one,) = Approval.objects.all()
    given = {"reason": "looks right", "digest": one.digest, "saw": SAW}
    return approval_actions.sign(one.pk, actor=person("approver-c"), act=act(asked), **given)


def decide(asked: dict[str, Any]) -> object:
    """Oncall A says that the refund happened, and that the bank said so."""
    effect = UUID(asked["effect"])
    given = {"says": "happened", "reason": "asked them", "evidence": [], "statement": "The bank, by phone."}
    return verdicts.record(effect, actor=person("oncall-a"), act=act(asked), version=asked["version"], **given)


def cancel(asked: dict[str, Any]) -> object:
    """Oncall A asks for the one run to be cancelled."""
    (run,) = Run.objects.all()
    return run_actions.cancel(run.pk, actor=person("oncall-a"), act=act(asked), reason="not wanted")


def change(asked: dict[str, Any]) -> object:
    """The order changes: a smaller refund."""
    (run,) = Run.objects.all()
    payload = {"amount": 110_000}
    return run_actions.signal(run.pk, "order.changed", payload, actor=person("oncall-a"), act=act(asked))


def give_up(asked: dict[str, Any]) -> object:
    """Whoever waits for an answer waited too long: its attempt is given up."""
    clock.shift(timedelta(minutes=1))
    return [lose(one) for one in Attempt.objects.filter(state__in=ATTEMPT_LIVE).values_list("pk", flat=True)]


def fail(asked: dict[str, Any]) -> object:
    """An error of ours, in the middle of an advance."""
    raise failpoints.Failpoint(asked["what"])


def cut(asked: dict[str, Any]) -> object:
    """The server ends this connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    with psycopg.connect(**connection.get_connection_params() | {"autocommit": True}) as other:  # type: ignore[arg-type]
        return other.execute("SELECT pg_terminate_backend(%s)", [pid]).fetchone()


DEEDS: dict[str, Deed] = {
    "accept": accept,
    "sign": sign,
    "decide": decide,
    "cancel": cancel,
    "change": change,
    "give_up": give_up,
    "fail": fail,
    "cut": cut,
}
