"""Advancing a run: take the lease, check what must be checked, call steps, commit, until it waits or ends.

n effects in a row cost n + 2 writing transactions: the lease, the first intent, and one for each outcome, which
carries the next intent with its attempt already in flight. The first byte leaves after that commit returns.
"""

from __future__ import annotations

import logging
import time
from typing import Any
from uuid import UUID

from django.db import Error as DatabaseError

from recovery import failpoints
from recovery.contract import Compensate, Compute, Perform, Start, Wait
from recovery.contract.errors import ContractError
from recovery.contract.runs import RunType, StepSignal
from recovery.engine import (
    children,
    compensating,
    computing,
    endings,
    finish,
    hearing,
    intents,
    letting_go,
    memory,
    mending,
    mending_runs,
    perform,
    resuming,
    standing,
    stepping,
    workers,
)
from recovery.engine.changes import UNCHECKED, reason
from recovery.engine.memory import Mending, Pending, Waiting
from recovery.engine.session import Session, Superseded
from runs import clock, record
from runs.checkpoints import codec, tokens
from runs.errors import (
    ArchiveAway,
    IllegalMove,
    KeyMismatch,
    LostRace,
    StaleOwner,
    StaleVersion,
    Undecryptable,
    Unreadable,
)
from runs.models import Effect, Signal
from runs.record import Entry
from runs.states import EffectState, EventKind, RunState, WaitingOn

log = logging.getLogger("recourse.advance")


def advance(workspace: UUID, run: UUID) -> str:
    """Advance ``run`` if it is due and nobody has it. Returns what came of it, for the log.

    A message that says "advance this run" is a hint: everything is read from the record, a second one does nothing.
    """
    me = workers.me("advance")
    failpoints.hit("advance.before_lease")
    began = clock.elapsed()
    try:
        lease = record.lease(workspace, run, worker=me.id, epoch=me.epoch)
    except DatabaseError:
        # Nobody knows whether it was taken. Under another name this process holds nothing for sure.
        workers.rename()
        raise
    if isinstance(lease, str):
        if lease == "old_epoch":
            workers.forgotten(me.id)
        return lease
    session = Session(me, dict(lease.row), clock.Watch(lease.at, began))
    try:
        failpoints.hit("advance.leased")
        with tokens.within(workspace):
            came = _Advance(session).go()
    except StaleOwner as error:
        # Somebody took over. An old token changes no state; the answer it brings is kept as evidence (invariant 6).
        log.warning("run %s: nothing was written, %s", run, error)
        letting_go.keep_answer(session)
        letting_go.note_refused(session)
        return "stale"
    except (LostRace, StaleVersion, IllegalMove) as error:
        # A row that this commit relied on moved meanwhile. Nothing was written; the run is looked at anew.
        log.warning("run %s: another was first, %s", run, error)
        letting_go.let_go(session, error)
        return "another was first"
    except Exception as error:
        # A lease is live while its worker is, so a worker that fails and lives on must give the run back itself.
        letting_go.let_go(session, error)
        raise
    if mending.concerns(session):
        mending_runs.tell(run)
    return came


class _Advance:
    def __init__(self, session: Session) -> None:
        self.s = session
        self.began = time.monotonic()
        self.transitions = 0
        self.run_type: RunType

    def go(self) -> str:
        s = self.s
        try:
            return self._go()
        except Superseded:
            # A request came first; what is known is kept, then the run is settled.
            s.reload()
            return standing.settle(s)

    def _go(self) -> str:
        s = self.s
        if s.run["state"] in standing.STATES:
            return standing.settle(s)
        if s.run["state"] == RunState.COMPENSATING:
            stops = compensating.look(s)
            if stops:
                return stops
        try:
            restored, s.memory = memory.restore(s.run)
        except Undecryptable as error:
            # Not lost while the key exists somewhere: it waits for a worker that has it, and is never failed for it.
            return self._wait_for_version("undecryptable", key=error.facts["key"])
        except ArchiveAway:
            return self._wait_for_version("archive_away", on=WaitingOn.DEPENDENCY)
        except Unreadable as error:
            return finish.quarantine(s, reason(error.code, why=str(error), **error.facts))
        found = resuming.run_type_of(s, restored)
        if isinstance(found, resuming.Missing):
            return self._wait_for_version(found.code, **found.facts)
        if isinstance(found, str):
            return found
        self.run_type = found
        if int(s.run["tries"]) > self.run_type.contract.lease.tries:
            return finish.quarantine(s, reason("no_progress", tries=int(s.run["tries"]) - 1))
        answer = resuming.check(s, self.run_type, restored)
        failpoints.hit("advance.after_checks")
        if answer:
            return answer
        while True:
            try:
                answer = self._turn()
            except stepping.StepRaised as error:
                code = {"path": error.path} if error.path else {}
                return finish.quarantine(
                    s, reason(error.code, step=error.step, said=str(error), **code), evidence=error.evidence
                )
            except (ContractError, KeyMismatch) as error:
                return finish.quarantine(s, reason(error.code, said=str(error), **error.facts))
            except intents.ContractRaised as error:
                why = reason("contract_raised", operation=error.operation, said=str(error))
                return finish.quarantine(s, why, evidence=error.evidence)
            except intents.Undeclared as error:
                return finish.quarantine(s, reason("undeclared", said=str(error)))
            except codec.Unserialisable as error:
                why = reason("data_unserialisable", step=s.memory.step, path=error.path, said=str(error))
                return finish.quarantine(s, why)
            if answer:
                return answer
            self.transitions += 1
            lease = self.run_type.contract.lease
            over = time.monotonic() - self.began >= lease.slice.total_seconds()
            if self.transitions >= lease.transitions or over:
                return self._hand_back()

    def _turn(self) -> str:
        """One transition. Returns why the run stops here, or an empty text to go on."""
        s = self.s
        m = s.memory
        if m.ending is not None:
            return finish.end(s, m.ending)
        if m.mending is not None:
            return self._mending(m.mending)
        deadline = s.deadline
        if deadline is not None and s.watch.now() >= deadline:
            return finish.expire(s)
        if m.pending is not None:
            return self._pending(m.pending)
        if m.computing is not None:
            return self._computed(computing.go(s))
        if m.waiting is not None:
            return self._waiting(m.waiting)
        if m.child is not None:
            then = m.child.then
            ended, word = children.turn(s, m.child)
            return word if ended is None else self._step(then, ended)
        return self._step(m.step, None)

    def _mending(self, mending: Mending) -> str:
        told = compensating.go(self.s, mending)
        if isinstance(told, str):
            return told
        assert mending.then is not None, "a run without a step after it ends there"
        self.s.memory.mending = None
        return self._step(mending.then, told)

    def _pending(self, pending: Pending) -> str:
        s = self.s
        if mending.concerns(s):
            stops = mending.hold(s, pending)
            if stops:
                return stops
        if s.fresh is not None and [s.fresh.pk] == pending.effects:
            effects = [s.fresh]
        else:
            found = Effect.objects.in_bulk(pending.effects)
            effects = [found[id] for id in pending.effects]
        signal = self._amending(pending, effects)
        if signal is not None:
            return self._amend(signal, pending, effects)
        settled = [e for e in effects if e.settled or e.state == EffectState.PARTIAL]
        went_wrong = [e for e in settled if e.state != EffectState.SUCCEEDED]
        if len(settled) < len(effects) and not went_wrong:
            return finish.wait_for_effects(s, effects)
        asked = hearing.before_step(s, self.run_type, settled)
        if asked:
            return asked
        known = {s.fresh.pk: s.shown} if s.fresh is not None else None
        outcomes = endings.step_outcomes(effects, known)
        given = outcomes if pending.many else outcomes[0]
        s.memory.remember_settled(settled)
        s.memory.remember_shown(id for one in outcomes for id in one.evidence)
        s.memory.done.append({"step": pending.then, "effects": [str(e.pk) for e in settled]})
        del s.memory.done[: -memory.SETTLED_KEPT]
        s.memory.pending = None
        s.fresh = None
        return self._step(pending.then, given)

    def _amending(self, pending: Pending, effects: list[Effect]) -> Signal | None:
        if not pending.on or any(e.attempts or e.run_id != self.s.id for e in effects):
            # What was attempted stays as it is, and another run's effect is not this run's to change (invariant 3).
            return None
        if any(e.state not in (EffectState.AWAITING_APPROVAL, EffectState.READY) for e in effects):
            return None
        waiting = Signal.objects.filter(run_id=self.s.run["id"], consumed_at=None, name__in=list(pending.on))
        return waiting.order_by("id").first()

    def _amend(self, signal: Signal, pending: Pending, effects: list[Effect]) -> str:
        s = self.s
        transition, data = self._call(pending.on[signal.name], StepSignal(signal.name, signal.payload, signal.reason))
        if not isinstance(transition, Perform):
            raise stepping.StepRaised(
                pending.on[signal.name],
                "amend_needs_perform",
                f"the step that answers {signal.name} returned {type(transition).__name__}; it must ask for the same"
                " effects again\n",
            )
        s.memory.data = data
        return perform.amend(s, transition, pending, effects, signal)

    def _waiting(self, waiting: Waiting) -> str:
        s = self.s
        now = s.watch.now()
        if waiting.event is not None:
            signal = (
                Signal.objects.filter(run_id=s.run["id"], consumed_at=None, name=waiting.event).order_by("id").first()
            )
            if signal is not None:
                s.memory.waiting = None
                s.consume = signal
                return self._step(waiting.then, StepSignal(signal.name, signal.payload, signal.reason))
        if waiting.until is not None and now >= waiting.until:
            s.memory.waiting = None
            return self._step(waiting.then, None)
        return finish.wait(
            s,
            WaitingOn.EVENT if waiting.event else WaitingOn.TIMER,
            wake_at=waiting.until,
            event=waiting.event or "",
        )

    def _call(self, step: str, given: Any) -> tuple[Any, dict[str, Any]]:
        s = self.s
        return stepping.call(
            self.run_type,
            s.run,
            s.memory,
            step,
            given,
            now=s.watch.now(),
            when_slow=s.flush if s.buffer else None,
        )

    def _step(self, step: str, given: Any) -> str:
        s = self.s
        s.memory.step = step
        transition, data = self._call(step, given)
        s.memory.data = data
        if isinstance(transition, Perform):
            return mending.ask_for(s, transition) if mending.concerns(s) else perform.perform(s, transition)
        if isinstance(transition, Compensate):
            return compensating.asked(s, transition)
        if isinstance(transition, Wait):
            return self._wait(transition)
        if isinstance(transition, Start):
            return children.start(s, transition)
        if isinstance(transition, Compute):
            return self._computed(computing.begin(s, transition))
        # Kept: what is still open may take its time, and the step has had its say.
        s.memory.ending = transition
        return finish.end(s, transition)

    def _computed(self, came: str | computing.Delivered) -> str:
        return came if isinstance(came, str) else self._step(came.then, came.given)

    def _wait(self, transition: Wait) -> str:
        s = self.s
        until = transition.until
        if transition.timeout is not None:
            until = s.watch.now() + transition.timeout
        s.memory.waiting = Waiting(transition.then, until, transition.event)
        s.memory.step = transition.then
        return self._waiting(s.memory.waiting)

    def _hand_back(self) -> str:
        """Give others a turn: the lease is released, the run stays due."""
        s = self.s
        s.commit(
            [Entry(EventKind.RUN_ADVANCED, {"transitions": self.transitions})],
            run={"lease_owner": None, "tries": 0},
            times={"wake_at": 0},
            why="hand_over",
        )
        return "handed back"

    def _wait_for_version(self, code: str, *, on: WaitingOn = WaitingOn.VERSION_MISSING, **facts: Any) -> str:
        """Not touched: a worker that knows the version, or has the key, will take it. The checkpoint stays as it is."""
        s = self.s
        # What stopped it before still does: its checks were not made (invariant 13).
        stands = [line for line in s.run["gate"] if line.get("code") in UNCHECKED]
        s.commit(
            [Entry(EventKind.RUN_WAITED, reason(code, **facts))],
            run={
                "state": RunState.WAITING,
                "waiting_on": on,
                "lease_owner": None,
                "tries": 0,
                "gate": [reason(code, **facts), *stands],
            },
            times={"wake_at": 60},
            checkpoint=False,
        )
        return code
