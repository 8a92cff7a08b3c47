"""What people, clocks and other workers do in a scene: by the test itself, or by a worker that may die meanwhile."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock
from uuid import UUID

import psycopg
from django.db import connection

from recovery import bells, failpoints
from recovery.actions import approvals as approval_actions
from recovery.actions import drains, pauses, quarantine, resumption, verdicts
from recovery.actions import runs as run_actions
from recovery.actions.common import Done
from recovery.contract import registry
from recovery.engine.reconcile import lose, reconcile
from recovery.traffic import callbacks
from recovery.upkeep.recover import carry_on
from recovery.upkeep.sweep import Sweep
from runs import clock, doorbells
from runs.models import Approval, Attempt, Dependency, Effect, Person, Restore, Run, Workspace
from runs.record import Act
from runs.restored import RestoreState
from runs.states import ATTEMPT_LIVE, EffectState, Scope
from tests.recovery.engine import versions
from tests.recovery.stage import SAW

NEWER = "newer"
"""Instead of a module: code that knows only version 2 of ``test.versions``."""

Deed = Callable[[dict[str, Any]], object]


def know(contracts: str) -> None:
    """Register the contracts of a module."""
    if contracts == NEWER:
        versions.use(versions.second())
    else:
        registry.register_module(importlib.import_module(contracts), "tests")


def know_only(start: str) -> None:
    """Of all operations only those that begin so are declared."""
    declared = [contract for contract in registry.effects() if contract.operation.startswith(start)]
    registry.effects = lambda: iter(declared)


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


def pause(asked: dict[str, Any]) -> object:
    """Oncall A asks for the first run to be paused, with its children."""
    run = Run.objects.order_by("id")[0]
    given = {"reason": "an outage over there", "scope": Scope.CHILDREN}
    return pauses.pause(run.pk, actor=person("oncall-a"), act=act(asked), **given)


def go_on(asked: dict[str, Any]) -> object:
    """Oncall G lets the run go on over what the checks found."""
    given = {"reason": "known, she moved teams", "report": asked["report"]}
    return resumption.go_on(UUID(asked["run"]), actor=person("oncall-g"), act=act(asked), **given)


def release(asked: dict[str, Any]) -> object:
    """Oncall G takes the run out of quarantine."""
    given = {"reason": "try again", "version": asked["version"]}
    return quarantine.release(UUID(asked["run"]), actor=person("oncall-g"), act=act(asked), **given)


def drain(asked: dict[str, Any]) -> object:
    """Oncall A begins to drain what waits for payments."""
    (one,) = Dependency.objects.filter(workspace__slug="acme-pay", name="payments")
    return drains.start(one.pk, actor=person("oncall-a"), act=act(asked), reason="they are back")


def hear(asked: dict[str, Any]) -> object:
    """The web takes a genuine message of payments in; the same message again where they heard no answer."""
    (one,) = Dependency.objects.filter(workspace__slug="acme-pay", name="payments")
    return callbacks.receive(one, f"msg_{asked['act']}", asked["body"].encode(), datetime.now(UTC))


def recover(asked: dict[str, Any]) -> object:
    """Sweep until the restore is noticed and everything after it was looked through; what it rings is lost."""
    doorbells._ringers.clear()
    sweep = Sweep()
    for _ in range(40):
        with mock.patch.object(bells, "publish", lambda task, *args: True):
            sweep.run_once()
        (restore,) = Restore.objects.filter(workspace__slug="acme-pay")
        if restore.state != RestoreState.FROZEN:
            return restore
        carry_on(restore.pk)
        for effect in Effect.objects.filter(state=EffectState.UNKNOWN):
            reconcile(effect.pk)
        clock.shift(timedelta(seconds=40))
    raise AssertionError("it is not swept")


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
    "pause": pause,
    "go_on": go_on,
    "release": release,
    "drain": drain,
    "hear": hear,
    "recover": recover,
    "fail": fail,
    "cut": cut,
}
