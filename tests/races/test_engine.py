"""Workers, senders and people at the same run or effect at once.

The seam is the run's row: the test holds it until both wait there, in the order it wants, and lets go. Where one
of them must come while the other is in the middle of its work, the seam is a failpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from recovery import failpoints
from runs.models import Evidence, Signal
from runs.states import EffectState, EventKind, RunState, WaitingOn
from tests.databases import FreshDatabase
from tests.races.test_decisions import arrive, the_runs_row
from tests.recovery.engine.fixtures import w
from tests.recovery.engine.world import World

__all__ = ["w"]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


def both(database: FreshDatabase, pool: ThreadPoolExecutor, run: Any, *works: Callable[[], Any]) -> list[Any]:
    """Each waits at the run's row, in this order; then all go on. Returns what each gave."""
    with the_runs_row(database, run):
        at_work = [arrive(pool, work) for work in works]
    return [one.result(timeout=30) for one in at_work]


def test_two_workers_at_one_run(w: World, fresh_db: FreshDatabase, pool: ThreadPoolExecutor) -> None:
    """Fault 22: one lease, the other goes away; nothing is done twice."""
    run = w.accept("test.chain", "pay", "pay")
    came = both(fresh_db, pool, run, lambda: w.advance(run), lambda: w.advance(run))
    assert came.count("completed") == 1
    assert set(came) - {"completed"} <= {"leased", "not_due"} or came == ["completed", RunState.COMPLETED]
    assert len(w.events(run, EventKind.RUN_LEASED)) == 1
    assert [w.applied(e) for e in w.effects(run)] == [1, 1]


def test_two_senders_at_one_effect(w: World, fresh_db: FreshDatabase, pool: ThreadPoolExecutor) -> None:
    """Faults 22 and 43: the claim is a guarded change; the second sends nothing."""
    run = w.accept("test.many", "slow")
    w.advance(run)
    effect = w.effect(run)
    came = both(fresh_db, pool, run, lambda: w.dispatch(effect), lambda: w.dispatch(effect))
    assert sorted(came) == ["another was first", EffectState.SUCCEEDED]
    assert len(w.sandbox.requests()) == 1
    assert len(w.attempts(effect)) == 1


def test_two_resends_of_one_unknown(w: World, fresh_db: FreshDatabase, pool: ThreadPoolExecutor) -> None:
    """Two sends of one effect never overlap, even where the key would bear it."""
    from tests.recovery.stage import later

    w.sandbox.dial("mail", reply="drop", times=1)
    run = w.accept("test.many", "mail")
    w.advance(run)
    later(seconds=10)
    effect = w.effect(run)
    came = both(fresh_db, pool, run, lambda: w.reconcile(effect), lambda: w.reconcile(effect))
    assert sorted(came) == ["another was first", EffectState.SUCCEEDED]
    assert len(w.sandbox.requests()) == 2 and w.applied(effect) == 1


def test_two_looks_at_one_unknown(w: World) -> None:
    """Both ask; one settles, the other's answer changes nothing any more."""
    w.sandbox.dial("payments", reply="drop", times=1)
    run = w.accept("test.many", "pay")
    w.advance(run)
    effect = w.effect(run)

    def settled() -> None:
        failpoints.disarm()
        assert w.reconcile(effect) == EffectState.SUCCEEDED

    failpoints.arm("reconcile.before_commit", settled)
    assert w.reconcile(effect) == "another was first"
    assert Evidence.objects.filter(effect=effect).count() == 1
    assert w.effect(run).checks == 1


def test_cancel_before_the_send(w: World, fresh_db: FreshDatabase, pool: ThreadPoolExecutor) -> None:
    """Fault 34, cancel first: the sender looked before, and is stopped at its claim."""
    run = w.accept("test.many", "slow")
    w.advance(run)
    effect = w.effect(run)
    came = both(fresh_db, pool, run, lambda: w.cancel(run), lambda: w.dispatch(effect))
    assert came[1] == "another was first"
    w.drive()
    assert w.sandbox.requests() == []
    assert (w.run(run).state, w.effect(run).state) == (RunState.CANCELLED, EffectState.CANCELLED)


def test_cancel_after_the_send(w: World, fresh_db: FreshDatabase, pool: ThreadPoolExecutor) -> None:
    """Fault 34, send first: the cancel waits for the outcome and names what is left."""
    run = w.accept("test.many", "slow")
    w.advance(run)
    effect = w.effect(run)
    came = both(fresh_db, pool, run, lambda: w.dispatch(effect), lambda: w.cancel(run))
    assert came[0] == EffectState.SUCCEEDED
    w.drive()
    row = w.run(run)
    assert (row.state, len(row.ended_how["left"])) == (RunState.CANCELLED, 1)
    assert w.applied(effect) == 1


def test_cancel_before_the_resend(w: World, fresh_db: FreshDatabase, pool: ThreadPoolExecutor) -> None:
    """While cancelling only reads: also where the resend was decided a moment before."""
    from tests.recovery.stage import later

    w.sandbox.dial("mail", reply="drop", times=1)
    run = w.accept("test.many", "mail")
    w.advance(run)
    later(seconds=10)
    effect = w.effect(run)
    came = both(fresh_db, pool, run, lambda: w.cancel(run), lambda: w.reconcile(effect))
    assert came[1] == "another was first"
    assert len(w.sandbox.requests()) == 1


@pytest.mark.parametrize("first", ["send", "amendment"])
def test_a_send_and_an_amendment(w: World, fresh_db: FreshDatabase, pool: ThreadPoolExecutor, first: str) -> None:
    """Invariant 3: what is sent is one revision, whole; the other one never was or never will be."""
    run = w.accept("test.many", "slow")
    w.advance(run)
    effect = w.effect(run)
    w.signal(run, "order.changed", amount=5)
    before = effect.body

    def amend() -> str:
        return w.advance(run)

    if first == "send":
        failpoints.arm("advance.before_commit", lambda: (failpoints.disarm(), w.dispatch(effect)))  # type: ignore[func-returns-value]
        assert amend() == "another was first"
        assert w.sandbox.requests()[0]["body"] == before
    else:
        failpoints.arm("dispatch.before_claim", lambda: (failpoints.disarm(), amend()))  # type: ignore[func-returns-value]
        assert w.dispatch(effect) == "another was first"
    w.drive()
    (request,) = w.sandbox.requests()
    assert request["body"] == w.effect(run).body
    assert w.run(run).state == RunState.COMPLETED


def test_a_signal_while_the_run_lies_down(w: World) -> None:
    """The signal is committed between the step and the commit of the wait: the run is due at once, not asleep."""
    run = w.accept("test.waiter", mode="event")

    def told() -> None:
        failpoints.disarm()
        w.signal(run, "told", text="just now")

    failpoints.arm("advance.before_commit", told)
    assert w.advance(run) == "waits: event"
    assert Signal.objects.get(run_id=run).consumed_at is None
    w.drive()
    assert w.heard(run) == ["just now"]


def test_an_effect_that_settles_while_the_run_lies_down(w: World) -> None:
    """The last effect settles between the look and the commit of the wait: the run is due at once."""
    run = w.accept("test.many", "pay", "mail")
    w.advance(run)
    pay, mail = w.effects(run)
    w.dispatch(pay)

    def settled() -> None:
        failpoints.disarm()
        assert w.dispatch(mail) == EffectState.SUCCEEDED

    failpoints.arm("advance.before_commit", settled)
    assert w.advance_anyway(run) == "waits: in_flight"
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_two_runs_ask_for_the_same_key(w: World, fresh_db: FreshDatabase, pool: ThreadPoolExecutor) -> None:
    """Invariant 3 between two runs: the database says who was first, the other links and waits."""
    one, other = (w.accept("test.many", ("pay", "ch_same")) for _ in range(2))
    with the_runs_row(fresh_db, one), the_runs_row(fresh_db, other):
        at_work = [arrive(pool, lambda r=r: w.advance(r)) for r in (one, other)]  # type: ignore[misc]
    for future in at_work:
        future.result(timeout=30)
    w.drive()
    assert [w.run(r).state for r in (one, other)] == [RunState.COMPLETED] * 2
    assert len(w.sandbox.requests()) == 1
    assert sorted(len(w.effects(r)) for r in (one, other)) == [0, 1]


def test_a_wait_that_another_answer_refines(w: World) -> None:
    """What a run waits for is what its effects say under its lock, not what its owner saw before."""
    w.sandbox.dial("notices", reply="drop")
    run = w.accept("test.many", "pay", "notice")
    w.advance(run)
    notice = w.effects(run)[1]

    def lost() -> None:
        failpoints.disarm()
        w.dispatch(notice)

    failpoints.arm("advance.before_commit", lost)
    w.advance_anyway(run)
    assert w.run(run).waiting_on == WaitingOn.UNKNOWN
