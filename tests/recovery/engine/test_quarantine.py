"""Authors' mistakes and damaged rows: the run stands still with the evidence, nothing is lost, nothing runs twice."""

from __future__ import annotations

import pytest

from runs.models import Checkpoint, Review
from runs.states import EffectState, EventKind, ReviewKind, RunState, WaitingOn
from tests.recovery.engine.world import World
from tests.recovery.stage import later
from tests.runs.make import forget

MISTAKES = {
    "raises": ("step_raised", "the author's own words"),
    "nonsense": ("step_raised", "returned str, not a transition"),
    "homeless": ("undeclared", "no dependency 'nowhere'"),
    "keyless": ("contract_raised", "its own words"),
    "no_such_step": ("step_raised", "no step 'nowhere'"),
    "no_such_signal": ("step_raised", "declares no signal 'never.declared'"),
    "unserialisable": ("data_unserialisable", "$.strange.deep[1].inside"),
    "huge": ("data_unserialisable", "ending.facts.count"),
}


@pytest.mark.parametrize("mode", MISTAKES)
def test_a_mistake_quarantines_the_run_with_its_evidence(w: World, mode: str) -> None:
    """Bad input: a clear reason, a review, and the lease is free. Nothing of the mistaken step is carried out."""
    code, said = MISTAKES[mode]
    run = w.accept("test.broken", mode=mode)
    assert w.advance(run) == "quarantined"
    row = w.run(run)
    (why,) = row.gate
    assert (row.state, row.lease_owner, row.wake_at) == (RunState.QUARANTINED, None, None)
    assert why["code"] == code
    assert said in why["facts"]["said"]
    review = Review.objects.get(run_id=run, kind=ReviewKind.QUARANTINED, state="open")
    assert review.why["code"] == code and review.severity == "high"
    assert w.effects(run) == []
    w.drive()
    assert w.run(run).state == RunState.QUARANTINED


@pytest.mark.parametrize("mode", ["raises", "nonsense", "keyless"])
def test_the_traceback_is_kept(w: World, mode: str) -> None:
    run = w.accept("test.broken", mode=mode)
    w.drive()
    (line,) = w.events(run, EventKind.RUN_QUARANTINED)
    assert "Traceback (most recent call last)" in line.data["evidence"]
    assert "contracts.py" in line.data["evidence"] or "runs.py" in line.data["evidence"]


def test_what_cannot_be_stored_is_named_by_its_path(w: World) -> None:
    """DESIGN section 3: the field's path, never a damaged checkpoint."""
    run = w.accept("test.broken", mode="unserialisable")
    w.drive()
    assert w.run(run).gate[0]["facts"]["path"] == "$.strange.deep[1].inside"
    assert w.run(run).checkpoint_seq == 1


@pytest.mark.parametrize("mode", MISTAKES)
def test_the_outcome_of_the_effect_before_it_is_kept(w: World, mode: str) -> None:
    """If the step raises, the outcome is committed all the same: nothing is asked or sent again for it."""
    run = w.accept("test.broken", "pay", mode=mode)
    w.drive()
    effect = w.effects(run)[0]
    assert w.run(run).state == RunState.QUARANTINED
    assert (effect.state, len(w.effects(run))) == (EffectState.SUCCEEDED, 1)
    assert w.applied(effect) == 1


def test_three_tries_without_progress(w: World) -> None:
    """Fault 40: a run that kills every worker that touches it; the try is counted before the work."""
    run = w.accept("test.broken", mode="exits")
    for _ in range(3):
        gone = w.worker()
        with w.as_worker(gone), pytest.raises(SystemExit):
            w.advance(run)
        w.dies(gone)
    assert w.advance(run) == "quarantined"
    assert w.run(run).gate == [{"code": "no_progress", "facts": {"tries": 3}}]
    assert w.reviews(run) == [ReviewKind.QUARANTINED]


def test_progress_begins_the_count_anew(w: World) -> None:
    """Tries are set to 0 by the next progress, so an old run that met three deaths in its life goes on."""
    from recovery import failpoints

    run = w.accept("test.chain", *["pay"] * 4)

    class Death(BaseException):
        pass

    def die() -> None:
        raise Death

    for _ in range(4):
        gone = w.worker()
        failpoints.arm("advance.before_outcome", die)
        with w.as_worker(gone), pytest.raises(Death):
            w.advance(run)
        failpoints.disarm()
        w.dies(gone)
        w.pass_once()  # gives the attempt up
        w.pass_once()  # finds out
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert [w.applied(e) for e in w.effects(run)] == [1] * 4


def test_a_damaged_checkpoint(w: World) -> None:
    """The digest is verified on every read; nothing is guessed from what is left."""
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    newest = Checkpoint.objects.filter(run_id=run).order_by("-seq")[0]
    Checkpoint.objects.filter(pk=newest.pk).update(sealed=bytes(newest.sealed)[:-1] + b"!")
    forget(run)
    later(minutes=11)
    w.drive()
    row = w.run(run)
    assert (row.state, row.gate[0]["code"]) == (RunState.QUARANTINED, "unreadable")
    assert w.reviews(run) == [ReviewKind.QUARANTINED]
    assert row.step == "over", "what the run was about to do is still told"


def test_a_checkpoint_from_the_future_is_not_touched(w: World) -> None:
    """Fault 58: released and visible; a worker that knows the schema takes it."""
    run = w.accept("test.waiter", mode="timer")
    w.drive()
    later(minutes=11)
    newest = Checkpoint.objects.filter(run_id=run).order_by("-seq")[0]
    Checkpoint.objects.filter(pk=newest.pk).update(schema=99)
    assert w.advance(run) == "from_future"
    row = w.run(run)
    assert (row.state, row.waiting_on, row.lease_owner) == (
        RunState.WAITING,
        WaitingOn.VERSION_MISSING,
        None,
    )
    assert row.gate[0]["facts"]["schema"] == 99
    assert row.checkpoint_seq == newest.seq, "nothing is written over it"
    w.drive()
    Checkpoint.objects.filter(pk=newest.pk).update(schema=newest.schema)
    later(minutes=2)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_a_version_that_this_worker_does_not_know_waits_for_one_that_does(w: World) -> None:
    """DESIGN section 6: a run keeps the version it began with."""
    from recovery.contract import registry

    run = w.accept("test.waiter", mode="timer")
    w.drive()
    later(minutes=11)
    known = registry._registry._run_types.pop(("test.waiter", 1))
    assert w.advance(run) == "unknown_run_type"
    assert w.run(run).waiting_on == WaitingOn.VERSION_MISSING
    registry._registry._run_types["test.waiter", 1] = known
    later(minutes=2)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_a_fault_of_the_engine_gives_the_run_back_and_ends_in_quarantine(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that fails and lives on holds no lease; the tries are counted all the same."""
    from recovery.engine import finish

    def broken(*args: object, **kwargs: object) -> str:
        raise RuntimeError("our own fault")

    run = w.accept("test.waiter", mode="timer")
    with monkeypatch.context() as patch:
        patch.setattr(finish, "wait", broken)
        for tries in (1, 2, 3):
            with pytest.raises(RuntimeError):
                w.advance(run)
            row = w.run(run)
            assert (row.lease_owner, row.tries) == (None, tries)
            later(seconds=2)
    assert "our own fault" in w.events(run, EventKind.RUN_ADVANCED)[0].data["evidence"]
    assert w.advance(run) == "quarantined"
