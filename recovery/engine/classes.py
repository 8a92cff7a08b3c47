"""Which of the ten failure classes an effect ended in, by its stored state and reason. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from recovery.contract.failures import FailureClass
from runs.models import Effect
from runs.states import EffectState

_REJECTED: Final = {
    "not_authorised": FailureClass.REFUSED,
    "request_invalid": FailureClass.INVALID,
    "state_moved_on": FailureClass.CONFLICT,
}
"""Why the other side refused, where it was not the business that did."""

_STATES: Final = {
    EffectState.PARTIAL: FailureClass.PARTIAL,
    EffectState.UNKNOWN: FailureClass.UNKNOWN,
    EffectState.DISPUTED: FailureClass.UNKNOWN,
    EffectState.DECLINED: FailureClass.REFUSED,
    EffectState.CANCELLED: FailureClass.CANCELLED_OR_EXPIRED,
    EffectState.EXPIRED: FailureClass.CANCELLED_OR_EXPIRED,
}


def failure_of(effect: Effect) -> FailureClass | None:
    """The class of how ``effect`` stands; None where it happened, or is not known to have failed."""
    state = EffectState(effect.state)
    why: Mapping[str, Any] = effect.reason or {}
    if state == EffectState.REJECTED:
        return _REJECTED.get(str(why.get("code")), FailureClass.REJECTED)
    if state == EffectState.NOT_APPLIED:
        # Known not to have happened: after its tries, or by two looks at the authority.
        return FailureClass((why.get("facts") or {}).get("failure", FailureClass.TRANSIENT))
    return _STATES.get(state)
