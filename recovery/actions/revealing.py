"""What people do with sealed fields: look at one. It takes a permission and a reason, and leaves an event."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from recovery.actions.common import Done, Locked, Plan, Subject, carry_out, require_run, who
from recovery.engine.refusals import NothingSealed
from runs.checkpoints import load, tokens
from runs.errors import NotFound
from runs.models import Effect, Person, Run
from runs.record import Act, Entry
from runs.states import EventKind

_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Revealed:
    """The value, for the one who asked. It is in no event, no log and no stored result."""

    done: Done
    value: Any

    def __repr__(self) -> str:
        return f"Revealed({self.done!r}, {tokens.MASK})"


def reveal(run_id: UUID, path: str, *, actor: Person, act: Act, reason: str, effect_id: UUID | None = None) -> Revealed:
    """Open the sealed field at ``path``: of the run's data (``card.number``), or of one effect's params.

    Permission ``reveal``. The event is committed before the value is handed out; the same act again gives it again
    without another event. Raises NothingSealed, ReasonNeeded, NotAllowed, NotFound, Undecryptable, Unreadable.
    """
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise NotFound

    def plan(at: Locked) -> Plan:
        # Opened before it is noted: what cannot be opened was not seen.
        _value(require_run(at), effect_id, path)
        told = {"path": path, "effect": None if effect_id is None else str(effect_id), "by": who(actor)}
        return Plan([Entry(EventKind.DATA_REVEALED, told)], {"run": str(run_id), "path": path})

    subject = Subject("run", run_id, run.workspace_id, run_id)
    done = carry_out(subject, "reveal", plan, actor=actor, act=act, reason=reason)
    return Revealed(done, _value(run, effect_id, path))


def _value(run: Run, effect_id: UUID | None, path: str) -> Any:
    if effect_id is None:
        within: Any = load.at(run.workspace_id, run.pk, run.checkpoint_seq).content.get("data")
    else:
        within = Effect.objects.filter(pk=effect_id, run=run).values_list("params", flat=True).first()
        if within is None:
            raise NotFound
    for name, index in _PART.findall(path):
        if index and isinstance(within, list) and int(index) < len(within):
            within = within[int(index)]
        elif name and isinstance(within, dict) and name in within:
            within = within[name]
        else:
            raise NothingSealed(path=path)
    if not tokens.is_token(within):
        raise NothingSealed(path=path)
    return tokens.reveal(run.workspace_id, within)
