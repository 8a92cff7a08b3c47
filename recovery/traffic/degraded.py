"""What is done with new work while a dependency cannot be called, as its row says. Guards fail closed.

Waiting is always safe. Going somewhere else, or being refused, is decided here and nowhere else: what cannot be
reversed, and what somebody has to sign, only ever waits.
"""

from __future__ import annotations

from recovery.contract import EffectContract
from runs.models import Degraded, Dependency
from runs.states import BreakerState


def closed_off(one: Dependency) -> bool:
    """Whether nothing is sent to it: a person holds it, or its breaker is open. Its capacity is loaded."""
    return one.held_at is not None or one.capacity.state == BreakerState.OPEN


def may_degrade(contract: EffectContract) -> bool:
    """Whether an effect of ``contract`` may do anything but wait.

    Not one that is irreversible, and not one whose contract asks for signatures: they were given, or will be, for this
    dependency and these bytes.
    """
    return contract.irreversible is None and contract.approval is None


def route(one: Dependency, contract: EffectContract) -> Dependency:
    """Where a new effect goes: ``one``, or its failover target while ``one`` is closed off and that is safe.

    The target must have been evaluated, must itself be callable, and is of the same workspace (the database sees to
    that). An effect that exists stays where it is: its key is known there.
    """
    target = one.failover
    if one.degraded != Degraded.FAILOVER or target is None or not closed_off(one) or not may_degrade(contract):
        return one
    if one.failover_evaluated_at is None or closed_off(target):
        return one
    return target


def refuses(one: Dependency, contract: EffectContract) -> bool:
    """Whether new work for ``one`` is refused now instead of waiting."""
    return one.degraded == Degraded.REFUSE and closed_off(one) and may_degrade(contract)
