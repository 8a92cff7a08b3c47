"""One rehearsal: break, start work, wait until all has ended or asks a person, judge by the other side's own ledger."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from recovery.drills.catalogue import Fault, Hands
from recovery.drills.judge import judge, wait_until_settled
from recovery.sandbox.client import SandboxClient

PATIENCE = 180.0
"""Seconds until whatever still moves is judged as it stands."""


@dataclass(frozen=True)
class Rehearsed:
    """``verdict`` is kept with the drill and in its event."""

    passed: bool
    verdict: dict[str, Any]


def rehearse(fault: Fault, hands: Hands, start: Callable[[], UUID], sandbox: SandboxClient, *, runs: int) -> Rehearsed:
    """Carry ``fault`` out while ``runs`` runs are started by ``start``. It passes when the fault bit, at least one run
    completed, and nothing is lost, done twice, untrue or stuck.
    """
    began = time.monotonic()
    fault.before(hands)
    ids = []
    for n in range(1, runs + 1):
        ids.append(start())
        fault.between(hands, n)
    settled = wait_until_settled(ids, PATIENCE)
    bit = fault.bit(hands, ids)
    found = judge(ids, sandbox, only_theirs=True)
    wrong = list(found.wrong)
    if not bit:
        wrong.append("the fault did not bite: nothing passed the place where it was laid")
    if not found.counts["completed"]:
        wrong.append("no run completed: safety without progress proves nothing")
    verdict = {
        "counts": dict(found.counts),
        "wrong": wrong,
        "bit": bit,
        "settled_after_s": round(settled, 1),
        "took_s": round(time.monotonic() - began, 1),
        "runs": [str(id) for id in ids],
    }
    return Rehearsed(not wrong, verdict)
