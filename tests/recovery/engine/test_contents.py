"""What a checkpoint holds: everything another process needs to go on safely (checklist 10)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from recovery.engine import memory
from recovery.engine.memory import Child, Mending
from runs.checkpoints import codec, load
from runs.models import Approval
from runs.models.base import new_id
from runs.states import EffectState, RunState
from tests.recovery.engine.world import World


def content(w: World, run: UUID, seq: int | None = None) -> dict[str, Any]:
    row = w.run(run)
    return load.at(row.workspace_id, run, row.checkpoint_seq if seq is None else seq).content


def test_who_which_versions_and_which_budgets(w: World) -> None:
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    held = content(w, run)
    assert (held["run"], held["workspace"]) == (str(run), str(w.s.here.pk))
    assert (held["principal"], held["owner"]) == (w.s.oncall_a.email, str(w.s.oncall_a.pk))
    assert held["versions"]["type"] == 1 and held["versions"]["contract"] == w.run(run).contract_digest
    assert {"schema", "code"} <= set(held["versions"])
    assert held["versions"]["config"] == w.run(run).config, "what is pinned: workflow and schema always"
    assert held["budgets"]["tries"] == {"used": 1, "left": 2}
    for name in ("deadline", "cancel", "mending", "child", "computing", "evidence", "settled", "done"):
        assert name in held


def test_a_timer_says_when_and_what_then(w: World) -> None:
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    to_come = content(w, run)["next"]
    assert (to_come["state"], to_come["then"]) == (RunState.WAITING, "over")
    assert to_come["when"] == {"event": None, "until": content(w, run)["waiting"]["until"]}
    assert RunState.RUNNING in to_come["legal"] and RunState.COMPLETED not in to_come["legal"]


def test_an_attempt_in_flight_is_named_before_a_byte_leaves(w: World) -> None:
    """Failure mode 7: a checkpoint without what was in flight."""
    run = w.accept("test.many", "pay")
    w.drive()
    (attempt,) = w.attempts(w.effect(run))
    held = content(w, run, 2)
    (one,) = held["open"]
    assert (one["id"], one["attempt"], one["state"]) == (str(w.effect(run).pk), str(attempt.pk), EffectState.IN_FLIGHT)
    assert held["next"]["when"] == {"settled": [one["id"]]} and held["next"]["then"] == "done"


def test_signatures_are_named_with_scope_and_expiry(w: World) -> None:
    run = w.accept("test.many", "pay", amount=500_000)
    w.drive()
    asked = Approval.objects.get(run_id=run)
    (one,) = content(w, run)["open"]
    assert one["state"] == EffectState.AWAITING_APPROVAL
    assert one["approval"]["id"] == str(asked.pk) and one["approval"]["digest"] == asked.digest
    assert one["approval"]["revision"] == 1 and one["approval"]["approve_by"]


def test_an_unknown_outcome_is_named(w: World) -> None:
    w.sandbox.dial("cards-eu", reply="drop", times=1)
    run = w.accept("test.many", "card")
    assert w.advance(run) == "waits: unknown"
    held = content(w, run)
    assert held["unknown"] == [str(w.effect(run).pk)]


def test_what_steps_were_shown_is_referred_to(w: World) -> None:
    run = w.accept("test.chain", "pay", "pay")
    w.drive()
    held = content(w, run)
    first, second = w.effects(run)
    assert [one["id"] for one in held["settled"]][0] == str(first.pk)
    assert held["evidence"] and all(UUID(id) for id in held["evidence"])
    assert second.settled


def test_it_survives_being_read_back(w: World) -> None:
    """What rooms of the engine keep in memory comes back as it was."""
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    row = {**vars(w.run(run))}
    _, kept = memory.restore(row)
    plan = child = new_id()
    kept.waiting, kept.evidence, kept.spent = None, ["e"], {"tokens": 12}
    kept.child, kept.mending = Child(child, "k", "after"), Mending([child], "after", plan)
    sealed = memory.seal(row, kept, "test")
    held = codec.unseal(sealed.blob, workspace=w.s.here.pk, run=run, seq=sealed.seq)
    assert held["versions"]["config"] == row["config"] and held["budgets"]["spent"] == {"tokens": 12}
    assert held["child"] == {"id": str(child), "key": "k", "then": "after"} and held["evidence"] == ["e"]
    assert held["mending"] == {"effects": [str(child)], "then": "after", "plan": str(plan)}
    assert held["next"]["when"] == {"plan": str(plan)} and held["next"]["then"] == "after"
