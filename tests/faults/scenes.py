"""What goes on while a worker dies: orders and notices of the demonstration against the sandbox, and what must be
true when all is over.

A scene says how it begins, what the worker does that may be broken, and how it ends when nothing is: the runs, and
their effects by key with how often each took effect by the sandbox's ledger.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from recovery.actions import verdicts
from recovery.drills import judge as oracle
from runs.errors import ActionInFlight
from runs.models import Approval, Effect, Run, Verdict
from runs.record import Act
from runs.states import RUN_ENDED, EffectState, RunState
from tests.faults import deeds
from tests.faults.scene import COMPLETED, REFUNDED, Ends, Scene, accept, order, plain
from tests.faults.wider import WIDER
from tests.recovery.engine.world import World
from tests.recovery.signers import sign
from tests.recovery.stage import later

PROVIDERS = {"order": "payments", "signed": "payments", "cards": "cards-eu"}


def start(w: World, scene: str) -> UUID:
    """Begin a plain scene; ``order`` and ``signed`` lose an answer, and their e-mail is not taken at first."""
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


def _asked_for_signatures(w: World, *signers: str) -> None:
    accept(w, "orders.cancel", order("payments", 120_500))
    w.drive()
    for name in signers:
        sign(Approval.objects.get(), getattr(w.s, name))


def _half_signed(w: World) -> None:
    _asked_for_signatures(w, "approver_b")


def _run_out(w: World) -> None:
    _asked_for_signatures(w)
    later(hours=9)


def _nobody_left(w: World) -> None:
    _asked_for_signatures(w)
    w.s.approvers.members.remove(w.s.approver_b, w.s.approver_c)


def _signer_left(w: World) -> None:
    _asked_for_signatures(w, "approver_b", "approver_c")
    w.s.approvers.members.remove(w.s.approver_c)


def _cancelled(w: World) -> None:
    plain(w)
    deeds.cancel({"what": "cancel", "act": str(uuid4())})


def _not_known(w: World) -> dict[str, Any]:
    start(w, "cards")
    w.drive(jump=timedelta(minutes=15))
    effect = Effect.objects.get()
    return {"effect": str(effect.pk), "version": effect.version}


def _two(w: World) -> None:
    """The second run waits on the first one's effect, which nobody knows for a moment."""
    w.sandbox.dial("payments", reply="drop", times=1)
    plain(w)
    plain(w)


_INPUT = {"what": "accept", "type": "orders.cancel", "input": order("payments")}
_DIFFERENT = ("refund:ch_1", "awaiting_approval", 0)

SCENES: dict[str, Scene] = {
    one.name: one
    for one in (
        Scene("order", lambda w: start(w, "order"), COMPLETED),
        Scene("signed", lambda w: start(w, "signed"), COMPLETED),
        Scene("cards", lambda w: start(w, "cards"), [("waiting", [("refund:ch_1", "unknown", 1)])], asks=True),
        Scene("notice", lambda w: start(w, "notice"), [("completed", [("notice", "succeeded", 1)])], asks=True),
        Scene("two", _two, [*COMPLETED, ("completed", [])]),
        Scene("cancelled", _cancelled, [("cancelled", [])]),
        Scene("overtaken", plain, [("cancelled", [REFUNDED])], meanwhile={"send.after": "cancel"}, or_else=COMPLETED),
        Scene("late", plain, COMPLETED, meanwhile={"send.after": "give_up"}),
        Scene("late signed", lambda w: start(w, "signed"), COMPLETED, meanwhile={"send.after": "give_up"}),
        Scene("broken", plain, COMPLETED, meanwhile={"advance.after_step": "fail"}),
        Scene("run out", _run_out, [("waiting", [_DIFFERENT])]),
        Scene("nobody left", _nobody_left, [("waiting", [_DIFFERENT])]),
        Scene("signer left", _signer_left, [("waiting", [_DIFFERENT])]),
        Scene("computed", lambda w: w.accept("test.thinker", mode="twice", again=1), [("completed", [])]),
        Scene("accept", lambda w: None, COMPLETED, asked=_INPUT),
        Scene("sign", _half_signed, COMPLETED, asked={"what": "sign"}),
        Scene("decide", _not_known, COMPLETED, asked={"what": "decide"}),
        Scene("cancel", plain, [("cancelled", [])], asked={"what": "cancel"}),
        Scene("change", lambda w: _asked_for_signatures(w), [("waiting", [_DIFFERENT])], asked={"what": "change"}),
        *WIDER,
    )
}


def finish(w: World) -> None:
    """Others go on: the dead one's leases and attempts are found, and what is due within a quarter of an hour comes.

    The record's clock is moved and the sandbox's is not: by its word its readbacks are old then, and a "not found" of
    theirs counts for nothing.
    """
    w.drive(jump=timedelta(minutes=15))


def go_on(w: World, scene: Scene, asked: dict[str, Any]) -> None:
    """After whatever happened: the person who got no answer asks again under the same act, a second one confirms."""
    if asked["what"] in deeds.DEEDS:
        _ask_again(asked)
    scene.then(w)
    for one in Verdict.objects.filter(state="proposed"):
        given = {"confirm": True, "reason": "so it is", "digest": one.digest}
        verdicts.confirm(one.pk, actor=w.s.oncall_g, act=Act(uuid4(), "confirm", "digest"), **given)
    finish(w)


def _ask_again(asked: dict[str, Any]) -> None:
    """Until it is answered: whoever stands still in the middle of the same act holds it until PostgreSQL ends that."""
    until = time.monotonic() + 30
    while True:
        try:
            deeds.DEEDS[asked["what"]](asked)
        except ActionInFlight:
            assert time.monotonic() < until, "nobody ended the transaction that stands still"
            time.sleep(0.1)
        else:
            return


def end_of(w: World, run: UUID) -> tuple[str, list[tuple[str, str, int]]]:
    """The run's state, and its own effects by key with how often each took effect by the ledger."""
    effects = [(_named(e.sent_key), str(e.state), w.applied(e)) for e in w.effects(run)]
    return str(w.run(run).state), effects


def _named(key: str) -> str:
    """Keys that hold an id of the record are other ones each time."""
    name, _, rest = key.partition(":")
    return name if name in ("notice", "compensate") and rest else key


def ends(w: World) -> Ends:
    """Of every run, in the order they were accepted."""
    return [end_of(w, run) for run in Run.objects.order_by("id").values_list("pk", flat=True)]


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


def judge_all(w: World) -> None:
    """The same of every run."""
    for run in Run.objects.values_list("pk", flat=True):
        judge(w, run)
