"""Rows that tests of the record begin from. What a test is about goes through ``record.commit``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from django.db.models.functions import Now

from runs import clock, record
from runs.checkpoints import codec, tiers
from runs.models import Capacity, Dependency, Effect, Group, Person, Run, Worker, Workspace
from runs.record import Change, Commit, Entry, Lease
from runs.states import EFFECT_SETTLED, RUN_ENDED, AttemptState, EffectState, EventKind, RunState

_ordinals = count()


@dataclass
class World:
    """A workspace with people, a group, a dependency and a live worker; ``other`` is the neighbour."""

    workspace: Workspace
    other: Workspace
    person: Person
    second: Person
    group: Group
    dependency: Dependency
    other_dependency: Dependency
    worker: Worker

    @property
    def ws(self) -> UUID:
        return self.workspace.pk


def world(permits: int = 4) -> World:
    """Two workspaces; ``permits`` is the capacity that both dependencies share."""
    here = Workspace.objects.create(slug="acme-pay", name="Acme Pay", environment="SANDBOX")
    there = Workspace.objects.create(slug="other-pay", name="Other Pay", environment="SANDBOX")
    capacity = Capacity.objects.create(name="payments", max_in_flight=permits)
    group = Group.objects.create(workspace=here, slug="payments-approvers", name="Payments approvers")
    first, last = (
        Dependency.objects.create(
            workspace=w,
            name="payments",
            base_url="http://127.0.0.1:1",
            credential="payments",
            capacity=capacity,
        )
        for w in (here, there)
    )
    return World(
        workspace=here,
        other=there,
        person=Person.objects.create_user("oncall-a@acme.example", "Oncall A"),
        second=Person.objects.create_user("approver-b@acme.example", "Approver B"),
        group=group,
        dependency=first,
        other_dependency=last,
        worker=worker(),
    )


def worker() -> Worker:
    """A worker whose heartbeat is fresh."""
    now = clock.now()
    return Worker.objects.create(pool="advance", host="here", pid=1, code="c", started_at=now, seen_at=now)


def silence(worker: Worker, seconds: float) -> None:
    """Let the worker's last heartbeat be ``seconds`` ago, by the real clock that measures heartbeats."""
    Worker.objects.filter(pk=worker.pk).update(seen_at=Now() - timedelta(seconds=seconds))


def checkpoint(w: World, run: UUID, seq: int, data: Mapping[str, Any] | None = None) -> record.Sealed:
    """A sealed checkpoint number ``seq`` of ``run``."""
    blob = codec.seal({"data": dict(data or {"a": 1})}, workspace=w.ws, run=run, seq=seq)
    return record.Sealed(seq, "test", codec.SCHEMA, blob)


def forget(run: UUID) -> None:
    """No near copy of the run's checkpoints is left: another process reads them, minutes later."""
    tiers.memory.clear()
    tiers.hot.drop(run)


def accept(w: World, **row: Any) -> UUID:
    """Accept a run through the writer, due now, with its first checkpoint."""
    run = record.new_id()
    given = {
        "id": run,
        "workspace_id": w.ws,
        "type": "orders.cancel",
        "type_version": 1,
        "contract_digest": "d",
        "title": "Cancel order 1",
        "principal": "shop",
        "state": RunState.ACCEPTED,
        "step": "begin",
        **row,
    }
    first = Commit(w.ws, run, [Entry(EventKind.RUN_ACCEPTED)], actor=w.person.pk, checkpoint=checkpoint(w, run, 1))
    record.accept(first, given, {"accepted_at": 0, "wake_at": 0})
    return run


def run_in(w: World, state: str, **fields: Any) -> Run:
    """A run that stands in ``state`` without having got there: no history, for tests of one move."""
    now = clock.now()
    return Run.objects.create(
        workspace=w.workspace,
        type="orders.cancel",
        type_version=1,
        contract_digest="d",
        title="Cancel order 1",
        principal="shop",
        state=state,
        waiting_on="timer" if state == RunState.WAITING else "",
        accepted_at=now,
        ended_at=now if state in RUN_ENDED else None,
        **fields,
    )


def leased(w: World, run: UUID, worker: UUID | None = None, epoch: int = 1) -> Lease:
    """Take the lease of a due run; fails the test where it is refused."""
    lease = record.lease(w.ws, run, worker=worker or w.worker.pk, epoch=epoch)
    assert isinstance(lease, Lease), lease
    return lease


def effect_row(w: World, run: UUID, state: str, **fields: Any) -> dict[str, Any]:
    """The columns of an effect; its key is its own unless ``key`` is given."""
    now = clock.now()
    key = str(uuid4())
    return {
        "id": record.new_id(),
        "workspace_id": w.ws,
        "run_id": run,
        "dependency_id": w.dependency.pk,
        "ordinal": next(_ordinals),
        "operation": "payments.refund",
        "contract_version": 1,
        "contract_digest": "d",
        "target": "ch_1",
        "params": {"amount": 8400},
        "key": key,
        "sent_key": key,
        "intent_digest": "d",
        "state": state,
        "request": {},
        "body": "{}",
        "describe": "Refund EUR 84.00",
        "deadline": now + timedelta(hours=1),
        "requested_at": now,
        "settled_at": now if state in EFFECT_SETTLED else None,
        **fields,
    }


def effect_in(w: World, run: UUID, state: str, **fields: Any) -> Effect:
    """An effect that stands in ``state`` without having got there."""
    return Effect.objects.create(**effect_row(w, run, state, **fields))


def attempt_row(w: World, run: UUID, effect: UUID, n: int = 1, state: str = AttemptState.COMMITTED) -> dict[str, Any]:
    """The columns of an attempt."""
    now = clock.now()
    return {
        "id": record.new_id(),
        "workspace_id": w.ws,
        "run_id": run,
        "effect_id": effect,
        "n": n,
        "state": state,
        "token": 1,
        "worker": w.worker.pk,
        "committed_at": now,
        "expires_at": now + timedelta(seconds=20),
    }


def evidence_row(w: World, run: UUID, effect: UUID, **fields: Any) -> dict[str, Any]:
    """The columns of a piece of evidence."""
    now = clock.now()
    return {
        "workspace_id": w.ws,
        "run_id": run,
        "effect_id": effect,
        "kind": "answer",
        "strength": "proves",
        "claim": "happened",
        "digest": "d",
        "observed_at": now,
        "received_at": now,
        **fields,
    }


def write(
    w: World, run: UUID, *changes: Change, kind: EventKind = EventKind.RUN_ADVANCED, **of: Any
) -> record.Committed:
    """One commit with one entry."""
    return record.commit(Commit(w.ws, run, [Entry(kind, {}, changes)], **of))


def send(w: World, run: UUID, **of: Any) -> tuple[UUID, UUID]:
    """A new effect with its attempt already in flight, in one commit. Returns their ids."""
    effect = effect_row(w, run, EffectState.IN_FLIGHT)
    attempt = attempt_row(w, run, effect["id"])
    write(w, run, record.new("effect", effect), record.new("attempt", attempt), kind=EventKind.EFFECT_SENT, **of)
    return effect["id"], attempt["id"]


def kinds(run: UUID) -> list[str]:
    """The kinds of a run's events, in order."""
    from runs.models import Event

    return list(Event.objects.filter(run_id=run).order_by("seq").values_list("kind", flat=True))


def other_of(states: Iterable[str], state: str) -> list[str]:
    """``states`` without ``state``."""
    return [s for s in states if s != state]
