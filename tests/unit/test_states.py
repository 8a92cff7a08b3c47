"""The state machines by themselves: no database."""

from __future__ import annotations

from itertools import product

import pytest

from runs import states
from runs.restored import RestoreState
from runs.states import (
    EFFECT_BLOCKS_END,
    EFFECT_FREES_KEY,
    EFFECT_OPEN,
    EFFECT_SETTLED,
    RUN_ENDED,
    START,
    TRANSITIONS,
    EffectState,
    EventKind,
    RunState,
    may_move,
)

ENUMS = {
    "run": states.RunState,
    "effect": states.EffectState,
    "attempt": states.AttemptState,
    "approval": states.ApprovalState,
    "signature": states.SignatureState,
    "verdict": states.VerdictState,
    "review": states.ReviewState,
    "plan": states.PlanState,
    "drain": states.DrainState,
    "breaker": states.BreakerState,
    "call": states.CallState,
    "callback": states.CallbackState,
    "restore": RestoreState,
    "drill": states.DrillState,
}


def test_each_thing_with_states_has_transitions() -> None:
    assert set(TRANSITIONS) == set(ENUMS)


@pytest.mark.parametrize("thing", sorted(ENUMS))
def test_transitions_name_only_known_states(thing: str) -> None:
    known = set(ENUMS[thing].values) | {START}
    assert {state for pair in TRANSITIONS[thing] for state in pair} <= known


@pytest.mark.parametrize("thing", sorted(ENUMS))
def test_every_state_can_be_reached(thing: str) -> None:
    reached, frontier = {START}, {START}
    while frontier:
        frontier = {b for a, b in TRANSITIONS[thing] if a in frontier} - reached
        reached |= frontier
    assert reached == set(ENUMS[thing].values) | {START}


@pytest.mark.parametrize("thing", sorted(ENUMS))
def test_nothing_goes_back_to_the_start_and_nothing_moves_to_itself(thing: str) -> None:
    assert not {pair for pair in TRANSITIONS[thing] if pair[1] == START or pair[0] == pair[1]}


@pytest.mark.parametrize("thing", sorted(ENUMS))
def test_may_move_agrees_with_the_table_on_every_pair(thing: str) -> None:
    values = [START, *ENUMS[thing].values]
    for source, target in product(values, values):
        assert may_move(thing, source, target) is ((source, target) in TRANSITIONS[thing])


def test_an_ended_run_has_no_way_out() -> None:
    """Invariant 5."""
    assert not {pair for pair in TRANSITIONS["run"] if pair[0] in RUN_ENDED}


def test_every_run_that_has_not_ended_can_still_end() -> None:
    for state in set(RunState) - RUN_ENDED:
        reached, frontier = {state}, {str(state)}
        while frontier:
            frontier = {b for a, b in TRANSITIONS["run"] if a in frontier} - reached
            reached |= frontier
        assert reached & RUN_ENDED, state


def test_unknown_never_becomes_failed_by_itself() -> None:
    """Invariant 4: no clock takes an effect out of unknown or disputed, so neither ends as cancelled."""
    by_clock_or_will = {EffectState.CANCELLED, EffectState.EXPIRED, EffectState.DECLINED, EffectState.READY}
    for state in (EffectState.UNKNOWN, EffectState.DISPUTED, EffectState.ACCEPTED):
        assert not {b for a, b in TRANSITIONS["effect"] if a == state} & by_clock_or_will


def test_a_settled_effect_leaves_only_by_contradiction_or_by_being_mended() -> None:
    for state in EFFECT_SETTLED:
        ways = {EffectState.DISPUTED} | ({EffectState.COMPENSATED} if state == EffectState.SUCCEEDED else set())
        assert {b for a, b in TRANSITIONS["effect"] if a == state} <= ways


def test_what_happened_keeps_its_key_and_everything_else_that_is_settled_frees_it() -> None:
    assert {EffectState.SUCCEEDED, EffectState.COMPENSATED} == EFFECT_SETTLED - EFFECT_FREES_KEY


def test_what_blocks_an_end_is_open() -> None:
    """Invariant 7: a run does not end while an outcome may still come."""
    assert EFFECT_BLOCKS_END < EFFECT_OPEN
    assert not EFFECT_OPEN & EFFECT_SETTLED
    assert EFFECT_OPEN | EFFECT_SETTLED | {EffectState.PARTIAL} == set(EffectState)


def test_event_kinds_are_noun_dot_past() -> None:
    for kind in EventKind:
        noun, dot, past = kind.partition(".")
        assert noun.isalpha() and dot and past.replace("_", "").isalpha(), kind


def test_states_fit_their_columns() -> None:
    """The transition table and the state columns hold 24 characters, event kinds 40."""
    assert max(len(value) for enum in ENUMS.values() for value in enum.values) <= 24
    assert max(len(kind) for kind in EventKind) <= 40
