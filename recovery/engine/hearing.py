"""Before a step hears how its effects ended: what their contracts answer to a failure, and what the authority's version
was.

Most failures are the step's to decide on. Where the class's answer is to get authority, or the contract asks for it, a
person says first whether the run goes on; where the contract says so, the run is taken out.
"""

from __future__ import annotations

from collections.abc import Sequence

from recovery.contract import canonical, registry
from recovery.contract.errors import ContractError
from recovery.contract.failures import ASKS_FIRST, RULES, Answer, FailureClass
from recovery.contract.runs import RunType
from recovery.engine import authority, classes, finish, resuming
from recovery.engine.changes import reason
from recovery.engine.session import Session
from runs.models import Effect
from runs.states import EffectState


def before_step(s: Session, run_type: RunType, settled: Sequence[Effect]) -> str:
    """Note the authority's versions, and stop the run where a contract says so. Returns why, or an empty text.

    ``settled``: what the step is about to hear of. An effect that was not signed is no failure of this kind: people
    have decided it.
    """
    s.memory.authority |= authority.seen(settled)
    wrong = [
        (e, classes.failure_of(e)) for e in settled if e.state not in (EffectState.SUCCEEDED, EffectState.DECLINED)
    ]
    for effect, failure in wrong:
        if failure is None:
            continue
        answer = answer_to(effect, failure)
        facts = {"operation": effect.operation, "failure": str(failure), "effect": str(effect.pk)}
        if answer == Answer.QUARANTINE and not resuming.released(s.run):
            return finish.quarantine(s, reason("class_quarantines", **facts))
        if answer in ASKS_FIRST:
            report = canonical.digest({**facts, "state": str(effect.state)})
            if not resuming.told(s.run, report):
                return resuming.ask_person(s, run_type, reason("class_asks", report=report, **facts))
    return ""


def answer_to(effect: Effect, failure: FailureClass) -> Answer:
    """What the effect's contract answers; the class's default where this code does not have that contract."""
    try:
        contract = registry.effect_contract(effect.operation, effect.contract_version)
    except ContractError:
        return RULES[failure].answer
    return contract.outcomes.answer_to(failure)
