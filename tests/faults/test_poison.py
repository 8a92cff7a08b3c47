"""Fault 40: a run that kills every worker that touches it. The try is counted before the work, so it ends in quarantine
after three of them, and everything else goes on.
"""

from __future__ import annotations

from recovery.actions import quarantine
from runs.states import ReviewKind, RunState
from tests.faults import scenes
from tests.faults.conftest import Workers
from tests.recovery.engine.world import World
from tests.recovery.stage import act

TRIES = 3

CONTRACTS = "tests.recovery.engine.contracts"


def test_it_is_quarantined_after_three_workers_and_the_others_go_on(w: World, forks: Workers) -> None:
    """Safety: no fourth worker dies. Liveness: the runs behind it complete, each effect once."""
    poison = w.accept("test.broken", mode="kills")
    orders = [scenes.accept(w, "orders.cancel", {**scenes.order("payments"), "charge": f"ch_{n}"}) for n in range(3)]
    died = sum(forks.kill(contracts=CONTRACTS) for _ in range(TRIES))
    assert died == TRIES
    assert w.run(poison).tries == TRIES
    assert forks.wait(forks.start(contracts=CONTRACTS)) == {"code": 0}, "the fourth worker lives"
    row = w.run(poison)
    assert (row.state, row.gate) == (RunState.QUARANTINED, [{"code": "no_progress", "facts": {"tries": TRIES}}])
    assert (row.lease_owner, w.reviews(poison)) == (None, [ReviewKind.QUARANTINED])
    scenes.finish(w)
    for order in orders:
        assert scenes.judge(w, order)
        assert w.run(order).state == RunState.COMPLETED


def test_released_without_a_cure_it_kills_three_more_and_no_fourth(w: World, forks: Workers) -> None:
    """A person's word gives it three new tries, not an endless loop."""
    poison = w.accept("test.broken", mode="kills")
    for _ in range(TRIES):
        assert forks.kill(contracts=CONTRACTS)
    assert forks.wait(forks.start(contracts=CONTRACTS)) == {"code": 0}
    version = w.run(poison).version
    quarantine.release(poison, actor=w.s.oncall_g, act=act("release"), reason="try again", version=version)
    died = 0
    while forks.kill(contracts=CONTRACTS):
        died += 1
        assert died <= TRIES
    assert died == TRIES
    assert w.run(poison).state == RunState.QUARANTINED
