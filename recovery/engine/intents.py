"""From what a step asks for to rows: effects, their first attempt, and what happens when a key is already taken."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import Error as DatabaseError
from django.utils.translation import override

from recovery.contract import EffectRequest, registry
from recovery.contract.mending import MendingRequest
from recovery.contract.runs import StepRun
from recovery.traffic import degraded
from runs.errors import KeyMismatch, RunsError
from runs.models import Dependency, Effect, Group
from runs.models.base import new_id
from runs.states import EFFECT_FREES_KEY, AttemptState, EffectState

INLINE_AT_MOST = timedelta(seconds=10)
ATTEMPT_GRACE = timedelta(seconds=5)
"""An attempt is taken for lost this long after its own timeout."""


class Undeclared(Exception):
    """A step asked for an effect whose dependency this workspace does not have."""


class ContractRaised(Exception):
    """A function of an effect contract (key, body, stake, sentence) raised; ``evidence`` has the traceback."""

    def __init__(self, operation: str, error: Exception) -> None:
        super().__init__(f"{operation}: {error!r}")
        self.operation = operation
        self.evidence = "".join(traceback.format_exception(error))


@contextmanager
def authors(operation: str) -> Iterator[None]:
    """In here functions of a contract's author are called: what they raise is theirs, and is told as theirs."""
    try:
        yield
    except (RunsError, Undeclared, ContractRaised, DatabaseError):
        raise
    except Exception as error:
        raise ContractRaised(operation, error) from error


@dataclass(frozen=True, slots=True)
class Intent:
    """An effect to be inserted: its row, and what decides how it is sent."""

    row: dict[str, Any]
    request: EffectRequest

    @property
    def needs_signatures(self) -> bool:
        return self.request.signatures() is not None


_dependencies: dict[tuple[UUID, str], tuple[float, Dependency]] = {}
_KEEP = 5.0


def dependency(workspace: UUID, name: str) -> Dependency:
    """The workspace's dependency of this name, kept for 5 s. Raises Undeclared."""
    known = _dependencies.get((workspace, name))
    if known is not None and time.monotonic() - known[0] < _KEEP:
        return known[1]
    rows = Dependency.objects.select_related("capacity", "failover__capacity")
    found = rows.filter(workspace_id=workspace, name=name).first()
    if found is None:
        raise Undeclared(f"this workspace has no dependency {name!r}")
    _dependencies[workspace, name] = (time.monotonic(), found)
    return found


_groups: dict[tuple[UUID, str], tuple[float, UUID | None]] = {}


def group_id(workspace: UUID, slug: str) -> UUID | None:
    """The workspace's group that a contract names, kept for 5 s; None where it does not exist (on-call then)."""
    known = _groups.get((workspace, slug))
    if known is None or time.monotonic() - known[0] >= _KEEP:
        found = Group.objects.filter(workspace_id=workspace, slug=slug).values_list("pk", flat=True).first()
        known = _groups[workspace, slug] = (time.monotonic(), found)
    return known[1]


def build(
    run: Mapping[str, Any],
    request: EffectRequest,
    *,
    ordinal: int,
    now: datetime,
    generation: int = 1,
    at: Dependency | None = None,
) -> Intent:
    """The row of a new effect. ``ordinal`` is its place in the run. ``at``: where it goes, whatever is closed off;
    None: where its contract says, or that one's failover target.

    Raises Undeclared, KeyInvalid, CanonicalError, and ContractRaised for what its author's functions raised.
    """
    with authors(request.contract.operation):
        return _build(run, request, ordinal=ordinal, now=now, generation=generation, at=at)


def _build(
    run: Mapping[str, Any],
    request: EffectRequest,
    *,
    ordinal: int,
    now: datetime,
    generation: int,
    at: Dependency | None,
) -> Intent:
    contract = request.contract
    contract.require_whole()
    workspace = UUID(str(run["workspace_id"]))
    where = degraded.route(dependency(workspace, contract.dependency), contract) if at is None else at
    key = key_of(run, request, now)
    prepared = contract.port.prepare(request.params, where.base_url, where.credential)
    deadline = now + contract.deadline
    if run["deadline"] is not None:
        deadline = min(deadline, _time(run["deadline"]))
    row = {
        "id": new_id(),
        "workspace_id": workspace,
        "run_id": run["id"],
        "dependency_id": where.pk,
        "ordinal": ordinal,
        "operation": contract.operation,
        "contract_version": contract.version,
        "contract_digest": contract.digest,
        "target": request.target,
        "params": request.data,
        "key": key,
        "generation": generation,
        "sent_key": key if generation == 1 else f"{key}/{generation}",
        "intent_digest": request.intent_digest,
        "request": prepared.as_json(),
        "body": prepared.body.decode(),
        "describe": request.sentence("en")[:300],
        "stake": request.stake.as_stake() if request.stake else None,
        "irreversible": _irreversible(contract.operation, contract.version, contract.irreversible),
        "group_id": group_id(workspace, contract.escalate_to),
        "deadline": deadline,
        "state": EffectState.READY,
        "mends_id": request.mends if isinstance(request, MendingRequest) else None,
    }
    return Intent(row, request)


def key_of(run: Mapping[str, Any], request: EffectRequest, now: datetime) -> str:
    """The idempotency key of ``request`` in ``run``. Raises KeyInvalid, ContractRaised."""
    seen = StepRun(
        id=UUID(str(run["id"])),
        data=None,
        now=now,
        deadline=None,
        principal=run["principal"],
        goal=run["goal"],
    )
    with authors(request.contract.operation):
        return request.key(seen)


def english(text: Any) -> str:
    """A lazily translated sentence as the record keeps it."""
    if text is None:
        return ""
    with override("en"):
        return str(text)


@lru_cache(maxsize=512)
def _irreversible(operation: str, version: int, text: Any) -> str:
    return english(text)


def may_go_inline(intent: Intent, alone: bool, now: datetime) -> bool:
    """The run's owner sends by itself: one effect, a short call, no signatures, time enough to deal with the answer.

    Everything else is handed; a sender expires what comes too late.
    """
    contract = intent.request.contract
    in_time = now < intent.row["deadline"] - contract.reserve
    return alone and in_time and contract.timeout <= INLINE_AT_MOST and not intent.needs_signatures


def attempt_row(effect: Mapping[str, Any], *, n: int, token: int, worker: UUID) -> dict[str, Any]:
    """The row of a new attempt, committed before any byte leaves (invariant 2)."""
    return {
        "id": new_id(),
        "workspace_id": effect["workspace_id"],
        "run_id": effect["run_id"],
        "effect_id": effect["id"],
        "n": n,
        "state": AttemptState.COMMITTED,
        "token": token,
        "worker": worker,
    }


def attempt_times(request_timeout: timedelta) -> dict[str, float]:
    """Instants of a new attempt: now, and when the sweep takes it for lost."""
    return {"committed_at": 0, "expires_at": (request_timeout + ATTEMPT_GRACE).total_seconds()}


@dataclass(frozen=True, slots=True)
class Taken:
    """A key that is taken: by this run's or another run's effect with the same digest."""

    effect: Effect
    own: bool


def resolve(workspace: UUID, run: UUID, request: EffectRequest, key: str) -> Taken | int:
    """Who has the key of ``request``: an effect that serves it too, or the generation to ask anew with (invariant 3).

    Raises KeyMismatch when the key stands for other content and is not free.
    """
    last = (
        Effect.objects.filter(workspace_id=workspace, operation=request.contract.operation, key=key)
        .order_by("-generation")
        .first()
    )
    if last is None:
        return 1
    if last.state in EFFECT_FREES_KEY:
        return last.generation + 1
    if last.intent_digest != request.intent_digest:
        raise KeyMismatch(
            f"the key {key} was already used for other content",
            key=key,
            effect=str(last.pk),
            run=str(last.run_id),
            operation=last.operation,
        )
    return Taken(last, last.run_id == run)


def load_request(effect: Effect) -> EffectRequest:
    """The request of a stored effect, from its contract's pinned version. Raises UnknownOperation, ParamsInvalid."""
    return registry.effect_contract(effect.operation, effect.contract_version).load(effect.params)


def _time(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))


__all__ = [
    "ATTEMPT_GRACE",
    "INLINE_AT_MOST",
    "Intent",
    "Taken",
    "Undeclared",
    "attempt_row",
    "attempt_times",
    "build",
    "dependency",
    "english",
    "key_of",
    "load_request",
    "may_go_inline",
    "resolve",
]
