"""Out of quarantine: a person, a reason, the checks, and if need be a later version."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from recovery.actions import quarantine
from recovery.engine.refusals import NotQuarantined, NoWay
from runs.errors import StaleVersion
from runs.states import EventKind, ReviewKind, RunState
from tests.recovery.engine.versions import first, second, use, waiting
from tests.recovery.engine.world import World
from tests.recovery.stage import act


def stuck(w: World) -> UUID:
    """A run of version 1 that stands in quarantine because its step breaks."""
    kind = first()
    kind.over = _breaks(kind.over)  # type: ignore[attr-defined]
    use(kind)
    run = waiting(w)
    w.signal(run, "told")
    w.drive()
    assert w.run(run).state == RunState.QUARANTINED
    return run


def _breaks(method: Any) -> Any:
    def over(self: Any, run: Any, signal: Any) -> Any:
        raise RuntimeError("broken")

    over.recourse_step = method.recourse_step  # type: ignore[attr-defined]
    return over


def release(w: World, run: UUID, **given: Any) -> Any:
    asked: dict[str, Any] = {
        "actor": w.s.oncall_g,
        "act": act("release"),
        "reason": "mended",
        "version": w.run(run).version,
        **given,
    }
    return quarantine.release(run, **asked)


def test_released_it_goes_on_after_the_checks(w: World) -> None:
    """Row, event, review; tries begin anew; a person's word is in the history."""
    run = stuck(w)
    use(first())
    done = release(w, run)
    row = w.run(run)
    assert (row.state, row.tries, w.reviews(run)) == (RunState.WAITING, 0, [])
    assert done.facts["held_for"][0]["code"] == "step_raised"
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert w.events(run, EventKind.RUN_CHECKED)[-1].data["why"] == "released"
    assert w.events(run, EventKind.RUN_RELEASED)[0].body["reason"] == "mended"


def test_released_with_another_version(w: World) -> None:
    """By that version's own path, in the same commit."""
    run = stuck(w)
    use(first(), second())
    release(w, run, type_version=2)
    assert (w.run(run).type_version, w.run(run).step) == (2, "close")
    w.drive()
    assert (w.run(run).state, w.heard(run)) == (RunState.COMPLETED, [["second", ["a"]]])


def test_what_still_breaks_is_quarantined_again(w: World) -> None:
    run = stuck(w)
    release(w, run)
    w.drive()
    assert w.run(run).state == RunState.QUARANTINED
    assert w.reviews(run) == [ReviewKind.QUARANTINED]


def test_a_release_that_cannot_be_is_refused_and_writes_nothing(w: World) -> None:
    run = stuck(w)
    before = w.s.counts()
    with pytest.raises(StaleVersion):
        release(w, run, version=1)
    use(first(), second(by=lambda step, data: ("nowhere", data)))
    for wanted, code in ((2, NoWay), (1, None)):
        if code is not None:
            with pytest.raises(code):
                release(w, run, type_version=wanted)
    assert w.s.counts() == before
    assert w.run(run).state == RunState.QUARANTINED
    release(w, run)
    with pytest.raises(NotQuarantined):
        release(w, run)


def test_never_back_to_an_older_version(w: World) -> None:
    kind = second()
    kind.close = _breaks(kind.close)  # type: ignore[attr-defined]
    use(kind)
    run = w.accept("test.versions", notes=["a"])
    w.drive()
    w.signal(run, "told")
    w.advance(run)
    assert w.run(run).state == RunState.QUARANTINED
    use(first(), second())
    with pytest.raises(NoWay):
        release(w, run, type_version=1)
