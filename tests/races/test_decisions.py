"""Two people, or a person and the engine, at the same request or decision at once (R7 to R9, invariants 4 and
8).

The named seam is the run's row: the test holds it, lets both arrive in a chosen order, sees in PostgreSQL
that both wait, and lets go. So each pair is tried in both orders, and whichever comes second must see what
the first one did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from recovery.actions import approvals as actions
from recovery.actions import verdicts
from recovery.engine import approvals
from recovery.engine.refusals import AlreadyDone, TooLate
from runs import access, clock, doorbells, errors
from runs.models import Approval, Attempt, Effect, Event, Person, Signature, Verdict
from runs.states import ApprovalState, EffectState, EventKind
from tests.databases import FreshDatabase
from tests.recovery.stage import SAW, Stage, act, stage

ORDERS = pytest.mark.parametrize("order", ["first", "second"])


@pytest.fixture
def s(fresh_db: FreshDatabase, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Committed rows; no doorbell rings."""
    monkeypatch.setattr(doorbells, "_ringers", [])
    return stage()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


@contextmanager
def the_runs_row(database: FreshDatabase, run: UUID) -> Iterator[None]:
    """The seam: nobody gets past the run's lock until this block ends."""
    with database.connect(autocommit=False) as holder:
        holder.execute("SELECT 1 FROM runs_run WHERE id = %s FOR UPDATE", [run])
        yield
        holder.rollback()


def wait_until_blocked(pid: int, done: Future[Any]) -> None:
    """Return when PostgreSQL says that this connection waits for another one's lock."""
    until = clock.now() + timedelta(seconds=20)
    with connection.cursor() as cursor:
        while True:
            cursor.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [pid])
            if cursor.fetchone()[0]:
                return
            assert not done.done(), f"it did not wait at the run's row: {done}"
            assert clock.now() < until


def arrive(pool: ThreadPoolExecutor, work: Callable[[], Any]) -> Future[Any]:
    """Start ``work`` on a connection of its own; returns when it waits at the seam."""
    pid: Future[int] = Future()

    def run() -> Any:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                pid.set_result(cursor.fetchone()[0])
            return work()
        finally:
            connection.close()

    done = pool.submit(run)
    wait_until_blocked(pid.result(20), done)
    return done


def race(
    pool: ThreadPoolExecutor,
    database: FreshDatabase,
    run: UUID,
    one: Callable[[], Any],
    other: Callable[[], Any],
    order: str,
) -> tuple[Any, Any]:
    """Both arrive, ``one`` first or second; gives each one's result or refusal."""
    works = (one, other) if order == "first" else (other, one)
    with the_runs_row(database, run):
        futures = [arrive(pool, work) for work in works]
    outcomes = [f.exception(20) or f.result() for f in futures]
    return (outcomes[0], outcomes[1]) if order == "first" else (outcomes[1], outcomes[0])


def sign(approval: Approval, who: Person) -> Callable[[], Any]:
    return lambda: actions.sign(approval.pk, actor=who, act=act(), reason="r", digest=approval.digest, saw=SAW)


def reject(approval: Approval, who: Person) -> Callable[[], Any]:
    return lambda: actions.reject(approval.pk, actor=who, act=act(), reason="r", digest=approval.digest, saw=SAW)


def kinds(run: UUID) -> list[str]:
    return list(Event.objects.filter(run_id=run).order_by("seq").values_list("kind", flat=True))


def states(approval: Approval) -> tuple[str, str]:
    return (
        Approval.objects.get(pk=approval.pk).state,
        Effect.objects.get(pk=approval.effect_id).state,
    )


@ORDERS
def test_two_last_votes_make_one_transition(
    s: Stage, fresh_db: FreshDatabase, pool: ThreadPoolExecutor, order: str
) -> None:
    """One of two signatures stands; two more come at once: one completes the set, the other finds it
    complete.
    """
    approval = s.asked()
    sign(approval, s.approver_b)()
    one, other = race(
        pool, fresh_db, approval.run_id, sign(approval, s.approver_c), sign(approval, s.approver_f), order
    )
    late, won = (other, one) if order == "first" else (one, other)
    assert won.facts["granted"] is True
    assert isinstance(late, errors.ApprovalEnded)
    assert states(approval) == (ApprovalState.GRANTED, EffectState.READY)
    granted = [
        e
        for e in Event.objects.filter(run_id=approval.run_id)
        if any(m["to"] == ApprovalState.GRANTED for m in e.body["moves"])
    ]
    assert (len(granted), Signature.objects.count()) == (1, 2)
    s.sound(approval.run_id)


@ORDERS
def test_two_votes_that_only_together_suffice(
    s: Stage, fresh_db: FreshDatabase, pool: ThreadPoolExecutor, order: str
) -> None:
    """Neither may take the other for missing."""
    approval = s.asked()
    one, other = race(
        pool, fresh_db, approval.run_id, sign(approval, s.approver_b), sign(approval, s.approver_c), order
    )
    assert sorted([one.facts["granted"], other.facts["granted"]]) == [False, True]
    assert states(approval) == (ApprovalState.GRANTED, EffectState.READY)
    s.sound(approval.run_id)


@ORDERS
def test_a_reject_beats_a_signature_in_either_order(
    s: Stage, fresh_db: FreshDatabase, pool: ThreadPoolExecutor, order: str
) -> None:
    """R8."""
    approval = s.asked()
    sign(approval, s.approver_b)()
    signed, rejected = race(
        pool, fresh_db, approval.run_id, sign(approval, s.approver_c), reject(approval, s.approver_f), order
    )
    assert not isinstance(rejected, Exception)
    assert isinstance(signed, errors.ApprovalEnded) is (order == "second")
    assert states(approval) == (ApprovalState.REJECTED, EffectState.DECLINED)
    s.sound(approval.run_id)


@ORDERS
def test_a_signature_and_a_new_revision(
    s: Stage, fresh_db: FreshDatabase, pool: ThreadPoolExecutor, order: str
) -> None:
    """R1: whichever comes first, nothing is granted on the old revision."""
    first = s.asked()
    sign(first, s.approver_b)()
    changes = s.amendment(first, 110_000)
    signed, _ = race(
        pool,
        fresh_db,
        first.run_id,
        sign(first, s.approver_c),
        lambda: s.write(first.run_id, *changes, kind=EventKind.EFFECT_AMENDED),
        order,
    )
    assert isinstance(signed, errors.Superseded) is (order == "second")
    assert states(first) == (ApprovalState.SUPERSEDED, EffectState.AWAITING_APPROVAL)
    new = Approval.objects.get(effect_id=first.effect_id, revision=2)
    assert (new.state, new.signatures.count()) == (ApprovalState.PENDING, 0)
    s.sound(first.run_id)


@ORDERS
@pytest.mark.parametrize("how", ["withdraw", "reject"])
def test_taken_back_or_sent_but_not_both(
    s: Stage, fresh_db: FreshDatabase, pool: ThreadPoolExecutor, order: str, how: str
) -> None:
    """R7, R9, invariant 8: a send that lost to a withdrawal commits no attempt; one that won cannot be taken
    back.
    """
    approval = s.asked()
    sign(approval, s.approver_b)()
    sign(approval, s.approver_c)()
    effect = Effect.objects.get(pk=approval.effect_id)
    good = approvals.check_before_send(effect, clock.now())
    assert isinstance(good, Approval)
    claim = s.sending(effect, good)
    back = (
        reject(approval, s.approver_b)
        if how == "reject"
        else lambda: actions.withdraw(approval.pk, actor=s.approver_b, act=act())
    )
    taken_back, sent = race(
        pool,
        fresh_db,
        approval.run_id,
        back,
        lambda: s.write(approval.run_id, *claim, kind=EventKind.EFFECT_SENT),
        order,
    )
    if order == "first":
        assert isinstance(sent, errors.LostRace)
        left = {
            "withdraw": (ApprovalState.PENDING, EffectState.AWAITING_APPROVAL),
            "reject": (ApprovalState.REJECTED, EffectState.DECLINED),
        }
        assert (states(approval), Attempt.objects.count()) == (left[how], 0)
    else:
        assert isinstance(taken_back, TooLate)
        assert (states(approval), Attempt.objects.count()) == (
            (ApprovalState.CONSUMED, EffectState.IN_FLIGHT),
            1,
        )
    s.sound(approval.run_id)


@ORDERS
def test_a_signature_and_the_clock(s: Stage, fresh_db: FreshDatabase, pool: ThreadPoolExecutor, order: str) -> None:
    """R6: the person was on time when the page was sent; the database's time under the lock decides."""
    approval = s.asked()
    assert approval.approve_by is not None
    at = approval.approve_by
    with the_runs_row(fresh_db, approval.run_id):
        signing = arrive(pool, sign(approval, s.approver_b))
        clock.shift(at - clock.now() + timedelta(seconds=0 if order == "first" else -30))
    outcome = signing.exception(20)
    assert isinstance(outcome, errors.ApprovalExpired) is (order == "first")
    assert Signature.objects.count() == (0 if order == "first" else 1)


def test_a_right_taken_away_while_waiting(s: Stage, fresh_db: FreshDatabase, pool: ThreadPoolExecutor) -> None:
    """ASVS 15.4.2: the permission is asked for inside the change, after the lock."""
    approval = s.asked()
    with the_runs_row(fresh_db, approval.run_id):
        signing = arrive(pool, sign(approval, s.approver_b))
        access.grant(s.approver_b, s.here, ["auditor"])
    assert isinstance(signing.exception(20), errors.NotAllowed)
    assert Signature.objects.count() == 0


@ORDERS
def test_two_second_persons_settle_once(
    s: Stage, fresh_db: FreshDatabase, pool: ThreadPoolExecutor, order: str
) -> None:
    effect = s.unknown()
    done = verdicts.record(
        effect.pk,
        actor=s.oncall_a,
        act=act(),
        says="did_not_happen",
        reason="r",
        evidence=[],
        statement="not there",
        version=effect.version,
    )
    verdict = Verdict.objects.get(pk=done.facts["verdict"])

    def answer(who: Person, yes: bool) -> Callable[[], Any]:
        return lambda: verdicts.confirm(
            verdict.pk, actor=who, act=act(), confirm=yes, reason="r", digest=verdict.digest
        )

    one, other = race(pool, fresh_db, effect.run_id, answer(s.approver_b, True), answer(s.approver_c, True), order)
    assert isinstance(other if order == "first" else one, AlreadyDone)
    effect.refresh_from_db()
    assert effect.state == EffectState.NOT_APPLIED
    assert kinds(effect.run_id).count(EventKind.EFFECT_SETTLED) == 1
    s.sound(effect.run_id)


@ORDERS
def test_one_confirms_and_one_refuses(s: Stage, fresh_db: FreshDatabase, pool: ThreadPoolExecutor, order: str) -> None:
    effect = s.unknown()
    done = verdicts.record(
        effect.pk,
        actor=s.oncall_a,
        act=act(),
        says="happened",
        reason="r",
        evidence=[],
        statement="the customer has it",
        version=effect.version,
    )
    verdict = Verdict.objects.get(pk=done.facts["verdict"])

    def answer(who: Person, yes: bool) -> Callable[[], Any]:
        return lambda: verdicts.confirm(
            verdict.pk, actor=who, act=act(), confirm=yes, reason="r", digest=verdict.digest
        )

    yes, no = race(pool, fresh_db, effect.run_id, answer(s.approver_b, True), answer(s.approver_c, False), order)
    effect.refresh_from_db()
    assert isinstance(no if order == "first" else yes, AlreadyDone)
    assert effect.state == (EffectState.SUCCEEDED if order == "first" else EffectState.UNKNOWN)
    s.sound(effect.run_id)


@ORDERS
def test_a_decision_and_news(s: Stage, fresh_db: FreshDatabase, pool: ThreadPoolExecutor, order: str) -> None:
    """What arrived while a person decided refuses the decision; what arrives after it is later evidence."""
    effect = s.unknown()
    ticked = s.evidence(effect, "happened", detail={"item": {"id": "re_1"}})
    effect.refresh_from_db()
    decided, _ = race(
        pool,
        fresh_db,
        effect.run_id,
        lambda: verdicts.record(
            effect.pk,
            actor=s.oncall_a,
            act=act(),
            says="happened",
            reason="r",
            evidence=[ticked],
            version=effect.version,
        ),
        lambda: s.evidence(effect, "rejected", "proves", kind="callback"),
        order,
    )
    assert isinstance(decided, errors.StaleVersion) is (order == "second")
    assert Effect.objects.get(pk=effect.pk).state == (
        EffectState.SUCCEEDED if order == "first" else EffectState.UNKNOWN
    )


def test_the_same_act_twice_at_once_counts_once(s: Stage, fresh_db: FreshDatabase, pool: ThreadPoolExecutor) -> None:
    """Invariant 15: a double click."""
    approval, how = s.asked(), act()

    def press() -> Any:
        return actions.sign(approval.pk, actor=s.approver_b, act=how, reason="r", digest=approval.digest, saw=SAW)

    one, other = race(pool, fresh_db, approval.run_id, press, press, "first")
    assert (one.replayed, other.replayed) == (False, True)
    assert (one.event, one.facts) == (other.event, other.facts)
    assert Signature.objects.count() == 1
