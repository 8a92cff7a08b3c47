"""decide over very many snapshots: what must hold in each of them (invariants 4, 8, 10), and that the gate
can speak."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from recovery.contract import OutcomeKind, hours
from recovery.engine import reasons
from recovery.engine.decide import Decision, Snapshot, Verb, decide
from recovery.engine.reasons import OF_RUNS, REASONS, Turn, gate
from runs.states import (
    EFFECT_SETTLED,
    TRANSITIONS,
    AttemptState,
    Claim,
    EffectState,
    EvidenceKind,
    Strength,
)
from tests.unit.samples import (
    KEYS,
    at,
    attempt,
    evidence,
    facts_only,
    keyed,
    keys_only,
    neither,
    snap,
)

CONTRACTS = [keyed(), facts_only(), keys_only(), neither(), keys_only(promise=replace(KEYS, window=hours(1)))]
E, A = EffectState, AttemptState
SENT = {OutcomeKind.SUCCEEDED, OutcomeKind.REJECTED, OutcomeKind.PARTIAL}


def history(rng: random.Random, now_s: float) -> Snapshot:
    """A snapshot with up to four attempts and six pieces of evidence, as a record could hold it."""
    attempts = []
    for n in range(1, rng.randint(0, 4) + 1):
        began = (n - 1) * 60 + rng.random() * 20
        state = rng.choice([A.LOST, A.LOST, A.ANSWERED, A.NOT_SENT, A.LATE])
        kind = rng.choice(list(OutcomeKind)) if state in (A.ANSWERED, A.LATE) else OutcomeKind.UNKNOWN
        kind = OutcomeKind.NOT_SENT if state == A.NOT_SENT else kind
        attempts.append(attempt(n, state, began, kind=kind, retry_after=rng.choice([None, 5, 500])))
    if attempts and rng.random() < 0.3:
        live = rng.choice([A.COMMITTED, A.CLAIMED])
        last = attempts.pop()
        attempts.append(replace(last, state=live, ended_at=None, outcome=None, sender_alive=rng.random() < 0.5))
    seen = [
        evidence(
            now_s * (1 - rng.random() ** 2) + k / 1000,
            rng.choice(list(Claim)),
            rng.choice(list(Strength)),
            rng.choice(list(EvidenceKind)),
        )
        for k in range(rng.randint(0, 6))
    ]
    if rng.random() < 0.2:  # an authority that only ever finds nothing
        seen = [evidence(now_s * share / 10, Claim.NOT_FOUND) for share in range(rng.randint(1, 10))]
    if rng.random() < 0.2:  # lost, and nothing heard since
        times = rng.randint(1, 2)
        gone = [attempt(n, A.LOST, now_s * n / 9, kind=OutcomeKind.UNKNOWN) for n in range(1, times + 1)]
        quiet = [evidence(now_s, Claim.UNAVAILABLE, Strength.NONE)]
        return snap(
            E.UNKNOWN,
            *gone,
            seen=quiet,
            deadline=at(rng.choice([2_000, 100_000])),
            needs_approval=rng.random() < 0.4,
            execute_by=at(50_000),
            approval_good=rng.random() < 0.8,
            cancelling=rng.random() < 0.2,
        )
    state = rng.choice([E.READY, E.AWAITING_APPROVAL] if not attempts else list(E))
    return snap(
        state,
        *attempts,
        seen=seen,
        deadline=at(rng.choice([200, 2_000, 100_000])),
        needs_approval=rng.random() < 0.4,
        execute_by=rng.choice([None, at(100), at(50_000)]),
        approve_by=rng.choice([None, at(300)]),
        approval_good=rng.random() < 0.8,
        cancelling=rng.random() < 0.3,
        not_before=rng.choice([None, at(30)]),
        unknown_since=at(10),
        settled_at=rng.choice([None, at(400)]),
        run_deadline=rng.choice([None, at(100_000)]),
        budget_left=rng.random() < 0.9,
        held=rng.random() < 0.1,
    )


def all_cases(seed: int):
    rng = random.Random(seed)
    for _ in range(1_500):
        now_s = rng.choice([5, 12, 45, 90, 400, 1_000, 3_700, 90_000])
        case = history(rng, now_s)
        contract = rng.choice(CONTRACTS)
        now = at(now_s)
        yield case, contract, now, decide(case, contract, now)


@pytest.mark.parametrize("seed", range(4))
def test_what_must_hold_in_every_case(seed: int) -> None:
    """Each rule below over thousands of snapshots; the counts show that every verb was met."""
    met: dict[Verb, int] = dict.fromkeys(Verb, 0)
    for case, contract, now, got in all_cases(seed):
        met[got.verb] += 1
        legal_move(case, got)
        unknown_needs_evidence(case, got)
        nothing_is_sent_that_must_not_be(case, contract, now, got)
        cancelling_only_reads(case, got)
        gate_can_speak(got)
    assert all(met.values()), met


def legal_move(case: Snapshot, got: Decision) -> None:
    """Every change of state is in the transition table."""
    if got.becomes is not None:
        assert (str(case.state), str(got.becomes)) in TRANSITIONS["effect"], (case.state, got)
    assert (got.verb == Verb.SETTLE) == (got.settle_as is not None)
    if got.settle_as is not None:
        assert got.settle_as in EFFECT_SETTLED | {E.PARTIAL}


def unknown_needs_evidence(case: Snapshot, got: Decision) -> None:
    """Invariant 4: what may have been sent is settled only on evidence, or on its own attempt's answer."""
    if got.verb != Verb.SETTLE or not case.attempts:
        return
    last = max(case.attempts, key=lambda one: one.n)
    if got.settle_as == E.SUCCEEDED:
        assert got.evidence or (last.outcome is not None and last.outcome.kind == OutcomeKind.SUCCEEDED)
    if case.state in (E.UNKNOWN, E.ACCEPTED) and got.reason != "turned_away":
        assert got.evidence
    if got.settle_as == E.NOT_APPLIED and got.reason == "not_found_twice":
        assert len(set(got.evidence)) == 2


def nothing_is_sent_that_must_not_be(case: Snapshot, contract, now: datetime, got: Decision) -> None:
    """Invariants 8 and 10, R10: no send past the deadline, the approval, the tries, the window; none
    overlaps."""
    if got.verb not in (Verb.SEND, Verb.RESEND):
        return
    assert not case.cancelling
    assert not case.held
    assert now < case.deadline - contract.reserve
    if case.needs_approval:
        assert case.execute_by is not None and now < case.execute_by and case.approval_good
    counted = [a for a in case.attempts if a.outcome is None or a.outcome.kind != OutcomeKind.OVERLOADED]
    assert len(counted) < contract.retry.attempts
    if got.verb == Verb.RESEND:
        assert contract.promise.keys and contract.promise.compares == "body"
        first = min(a.committed_at for a in case.attempts)
        assert contract.promise.window is not None
        assert now + contract.timeout < first + contract.promise.window
        for one in case.attempts:
            assert one.ended_at is not None or not one.sender_alive or now >= one.expires_at


def cancelling_only_reads(case: Snapshot, got: Decision) -> None:
    """DESIGN: while cancelling, reconcile only reads."""
    if case.cancelling:
        assert got.verb not in (Verb.SEND, Verb.RESEND)


def gate_can_speak(got: Decision) -> None:
    """Screens 0: the four lines are filled from code and facts, never by hand, for every decision there
    is."""
    stored = json.loads(json.dumps(got.as_json()))
    lines = gate(stored, people="Oncall A", show_time=lambda when: when.strftime("%H:%M"))
    for line in (lines.waiting_for, lines.ends_when, lines.who_can, lines.if_nobody_acts):
        assert line and "{" not in line


def test_a_person_is_asked_only_with_a_review_and_a_turn() -> None:
    """Every question opens a review, and its gate says that it is a person's turn (or says what Recourse
    does)."""
    for _case, _contract, _now, got in all_cases(99):
        if got.verb == Verb.ASK:
            assert got.review
        if got.verb in (Verb.READ_BACK, Verb.SEND, Verb.RESEND):
            assert REASONS[got.reason].turn != Turn.NOBODY


def test_every_reason_is_known_and_none_is_left_over() -> None:
    """A code without a sentence cannot be shown; a sentence that no code uses is dead text."""
    used = {got.reason for seed in range(3) for *_rest, got in all_cases(seed)}
    assert used <= set(REASONS)
    engine = Path(reasons.__file__).parent.parent
    code = "".join(path.read_text() for path in engine.rglob("*.py") if "reasons" not in path.name)
    assert [name for name in set(REASONS) - OF_RUNS if f'"{name}"' not in code] == []


def test_decisions_end() -> None:
    """Liveness: from a lost answer, doing what decide says always comes to an end or to a person, in few
    moves."""
    for contract, dead, silent in itertools.product(CONTRACTS, [True, False], [True, False]):
        case = snap(E.IN_FLIGHT, attempt(state=A.CLAIMED, sender_alive=not dead))
        now = at(15)
        for _move in range(60):
            got = decide(case, contract, now)
            if got.verb in (Verb.SETTLE, Verb.ASK):
                break
            case = replace(case, state=got.becomes or case.state, unknown_since=case.unknown_since or now)
            case = replace(
                case,
                attempts=tuple(replace(a, state=A.LOST, ended_at=a.ended_at or now) for a in case.attempts),
            )
            if got.verb == Verb.READ_BACK:
                claim = Claim.UNAVAILABLE if silent else Claim.NOT_FOUND
                look = evidence((now - at(0)).total_seconds(), claim, Strength.NONE)
                case = replace(case, evidence=(*case.evidence, look))
            elif got.verb == Verb.RESEND:
                again = attempt(len(case.attempts) + 1, A.LOST, (now - at(0)).total_seconds())
                case = replace(case, attempts=(*case.attempts, again))
                now = again.ended_at or now
            else:
                assert got.not_before is not None and got.not_before > now, got
                now = got.not_before
        else:
            pytest.fail(f"no end with {contract.dependency}")
