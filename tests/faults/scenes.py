"""What goes on while a worker dies: orders and notices of the demonstration against the sandbox, and what must be
true when all is over.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from recovery.actions import runs as actions
from runs.models import Approval
from runs.record import Act
from runs.states import RUN_ENDED, EffectState, RunState
from tests.chaos import oracle
from tests.recovery.engine.world import World
from tests.recovery.signers import sign

PROVIDERS = {"order": "payments", "signed": "payments", "cards": "cards-eu"}


def start(w: World, scene: str) -> UUID:
    """Begin ``scene`` and set the dials: ``order`` loses an answer, and its e-mail is not taken at first."""
    if scene == "notice":
        return accept(w, "notices.send", {"to": "board", "text": "Sale ends"})
    w.sandbox.dial(PROVIDERS[scene], reply="drop", times=1)
    w.sandbox.dial("mail", reply="refuse", times=1)
    amount = 120_500 if scene == "signed" else 8400
    run = accept(w, "orders.cancel", order(PROVIDERS[scene], amount))
    if scene == "signed":
        w.drive()
        approval = Approval.objects.get()
        sign(approval, w.s.approver_b)
        sign(approval, w.s.approver_c)
    return run


def order(provider: str, amount: int = 8400) -> dict[str, Any]:
    return {
        "order": "A-1",
        "charge": "ch_1",
        "amount": amount,
        "currency": "EUR",
        "email": "a@b.example",
        "provider": provider,
    }


def accept(w: World, type: str, input: dict[str, Any]) -> UUID:
    act = Act(uuid4(), "runs", "digest")
    return actions.accept(w.s.here, type, input, actor=w.s.oncall_a, act=act).run


def finish(w: World) -> None:
    """Others go on: the dead one's leases and attempts are found, and what is due within a quarter of an hour comes.

    The record's clock is moved and the sandbox's is not: by its word its readbacks are old then, and a "not found" of
    theirs counts for nothing.
    """
    w.drive(jump=timedelta(minutes=15))


def end_of(w: World, run: UUID) -> tuple[str, list[tuple[str, str, int]]]:
    """The run's state, and its effects by key with how often each took effect by the ledger."""
    effects = [(e.sent_key, str(e.state), w.applied(e)) for e in w.effects(run)]
    return str(w.run(run).state), effects


def judge(w: World, run: UUID) -> bool:
    """Nothing took effect twice, nothing is told that is not so, and the run ended or visibly waits. True if it
    completed.
    """
    row = w.run(run)
    for key, state, applied in end_of(w, run)[1]:
        assert applied <= 1, f"{key} took effect {applied} times"
        if state == EffectState.SUCCEEDED:
            assert applied == 1, f"{key} happened by the record, not by the ledger"
        if state in (EffectState.NOT_APPLIED, EffectState.CANCELLED, EffectState.EXPIRED):
            assert applied == 0, f"{key} is {state} by the record, and it happened"
    if row.state not in RUN_ENDED:
        assert oracle.visibly_waits(row) == "a person", f"{row.state} {row.waiting_on} and nobody is told"
    return bool(row.state == RunState.COMPLETED)
