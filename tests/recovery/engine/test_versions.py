"""Check 1 and check 6: newer versions, newer data, and configuration that moved on while a run was away."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from recovery.actions import quarantine
from recovery.contract import Migration, OnChange, Pin, StateSchema, registry
from runs.models import WorkspaceUserPermission
from runs.states import EventKind, RunState, WaitingOn
from tests.recovery.engine.versions import first, go_on, second, use, waiting
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later


def migrate(on_change: OnChange = OnChange.MIGRATE) -> Pin:
    return Pin("workflow", None, on_change, frozenset(), None)


# --- versions of the run type


def test_a_run_keeps_its_version_while_its_code_is_there(w: World) -> None:
    use(first())
    run = waiting(w)
    use(first(), second())
    w.signal(run, "told")
    w.drive()
    assert w.heard(run)[0][0] == "first"
    assert w.run(run).type_version == 1


def test_code_that_has_only_the_newer_version_takes_it_over(w: World) -> None:
    """By the declared path: data, step, row, checkpoint and one event in one commit; then the checks."""
    use(first())
    run = waiting(w)
    use(second())
    w.signal(run, "told")
    w.drive()
    row = w.run(run)
    assert (row.state, row.type_version) == (RunState.COMPLETED, 2)
    assert row.contract_digest == registry.run_type("test.versions", 2).digest
    assert (row.config["workflow"], row.config["schema"]) == ("2", "2")
    assert w.heard(run) == [["second", ["a"]]]
    (line,) = w.events(run, EventKind.RUN_MIGRATED)
    assert line.data["steps"] == {"over": "close"}
    assert [e.data["why"] for e in w.events(run, EventKind.RUN_CHECKED)] == ["migrated"]


def test_what_was_moved_is_checked_until_the_checks_have_passed(w: World) -> None:
    """A migration writes a checkpoint; that it is fresh does not make the run one that was never away."""
    use(first())
    run = waiting(w)
    use(second())
    w.signal(run, "told")
    WorkspaceUserPermission.objects.filter(user=w.s.oncall_a).delete()
    for _look in range(2):
        w.advance_anyway(run)
        assert (w.run(run).type_version, w.run(run).waiting_on) == (2, WaitingOn.PERSON)
    go_on(w, run)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_a_newer_version_may_take_it_over_at_once(w: World) -> None:
    use(first())
    run = waiting(w)
    use(first(), second(pinned=("type", "contract", migrate())))
    w.signal(run, "told")
    w.drive()
    assert w.run(run).type_version == 2


def test_a_newer_version_that_is_pinned_waits_for_the_older_code(w: World) -> None:
    use(first())
    run = waiting(w)
    use(second(pinned=("type", "contract", migrate(OnChange.PIN))))
    w.signal(run, "told")
    w.drive()
    assert (w.run(run).waiting_on, w.run(run).type_version) == (WaitingOn.VERSION_MISSING, 1)
    use(first())
    later(minutes=2)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


@pytest.mark.parametrize("gone", [True, False], ids=["older code gone", "older code there"])
def test_a_newer_version_may_ask_a_person(w: World, gone: bool) -> None:
    """Asked, and moved when the person lets it go on."""
    use(first())
    run = waiting(w)
    newer = second(pinned=("type", "contract", migrate(OnChange.ASK)))
    use(*([newer] if gone else [first(), newer]))
    w.signal(run, "told")
    later(seconds=61)
    w.drive()
    assert w.run(run).waiting_on == WaitingOn.PERSON
    assert w.run(run).gate[0]["facts"]["checks"] == ["compatibility"]
    go_on(w, run)
    w.drive()
    assert (w.run(run).state, w.run(run).type_version) == (RunState.COMPLETED, 2)


def test_a_run_of_a_newer_version_is_not_touched_by_older_code(w: World) -> None:
    """Never a downgrade write: released, visible, its checkpoint as it was (fault 58)."""
    use(second())
    run = w.accept("test.versions", notes=["a"])
    w.drive()
    before = w.run(run)
    use(first())
    w.advance_anyway(run)
    row = w.run(run)
    assert (row.waiting_on, row.lease_owner) == (WaitingOn.VERSION_MISSING, None)
    assert (row.checkpoint_seq, row.type_version) == (before.checkpoint_seq, 2)


@pytest.mark.parametrize(
    "path",
    [
        lambda step, data: 1 / 0,
        lambda step, data: ("nowhere", data),
        lambda step, data: ("close", {"notes": 7}),
        lambda step, data: ("close", {"notes": [float("nan")]}),
        lambda step, data: None,
    ],
    ids=["raises", "unknown step", "data that does not fit", "data that cannot be kept", "nonsense"],
)
def test_a_path_that_breaks_quarantines_and_writes_nothing(w: World, path: Any) -> None:
    """Check 1: by a tested path or not at all; a person takes it out when there is one that works."""
    use(first())
    run = waiting(w)
    before = w.run(run)
    use(second(by=path))
    w.signal(run, "told")
    w.drive()
    row = w.run(run)
    assert (row.state, row.gate[0]["code"]) == (RunState.QUARANTINED, "migration_broke")
    assert (row.checkpoint_seq, row.type_version) == (before.checkpoint_seq, 1)
    assert "Traceback" in w.events(run, EventKind.RUN_QUARANTINED)[0].data["evidence"]
    use(second())
    quarantine.release(run, actor=w.s.oncall_g, act=act("release"), reason="path mended", version=row.version)
    w.drive()
    assert (w.run(run).state, w.run(run).type_version) == (RunState.COMPLETED, 2)


# --- the schema of the data


def test_older_data_of_the_same_version_is_brought_to_the_newer_schema(w: World) -> None:
    use(first())
    run = waiting(w)
    path = Migration(by=lambda d: {**d, "note": d["note"] + "!"}, sample={"note": "a", "heard": []})
    use(first(schema=StateSchema(version=2, migrates_from={1: path}), pinned=("type",)))
    w.signal(run, "told")
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert w.run(run).config["schema"] == "2"
    assert w.events(run, EventKind.RUN_MIGRATED)[0].data == {
        "what": "schema",
        "from": 1,
        "to": 2,
        "digest": registry.run_type("test.versions").digest,
    }


def test_what_else_changed_in_place_is_not_taken_over_with_the_data(w: World) -> None:
    """The contract is pinned: its path moves the data, and a person still hears that it is another contract."""
    use(first())
    run = waiting(w)
    path = Migration(by=dict, sample={"note": "a", "heard": []})
    use(first(schema=StateSchema(version=2, migrates_from={1: path})))
    w.signal(run, "told")
    w.drive()
    assert (w.run(run).config["schema"], w.run(run).waiting_on) == ("2", WaitingOn.PERSON)
    go_on(w, run)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED


def test_older_data_without_a_path_is_quarantined(w: World) -> None:
    use(first())
    run = waiting(w)
    use(first(schema=StateSchema(version=3, migrates_from={}), pinned=("type",)))
    w.signal(run, "told")
    w.drive()
    assert w.run(run).gate[0] == {"code": "no_migration", "facts": {"kept": 1, "now": 3}}


def test_data_of_a_later_schema_is_not_touched(w: World) -> None:
    use(first(schema=StateSchema(version=2, migrates_from={})))
    run = waiting(w)
    before = w.run(run).checkpoint_seq
    use(first(pinned=("type",)))
    w.signal(run, "told")
    w.drive()
    row = w.run(run)
    assert (row.waiting_on, row.gate[0]["code"], row.checkpoint_seq) == (
        WaitingOn.VERSION_MISSING,
        "from_future",
        before,
    )


# --- model, prompt, policy, interface


def model(now: str, on_change: OnChange, **rule: Any) -> type:
    given = {"keeps": frozenset(), "shown_by": None, **rule}
    return first(pinned=("type", Pin("model", now, on_change, given["keeps"], given["shown_by"])))


def after_a_gap(w: World, was: type, now: type) -> UUID:
    use(was)
    run = waiting(w)
    assert w.run(run).config["model"] == "m-1"
    use(now)
    w.signal(run, "told")
    later(seconds=61)
    w.drive()
    return run


def test_a_pinned_model_stays(w: World) -> None:
    """Pin: the older one is still served, the run keeps it, and its steps are told which."""
    run = after_a_gap(w, model("m-1", OnChange.PIN), model("m-2", OnChange.PIN, keeps=frozenset({"m-1"})))
    assert w.run(run).state == RunState.COMPLETED
    assert w.heard(run)[0][1]["model"] == "m-1"


def test_a_pinned_model_that_is_not_served_any_more_asks(w: World) -> None:
    run = after_a_gap(w, model("m-1", OnChange.PIN), model("m-2", OnChange.PIN))
    assert w.run(run).waiting_on == WaitingOn.PERSON


def test_a_model_migrates_on_evidence(w: World) -> None:
    """Migrate: the report names what shows that it is right."""
    shown = {"m-1": "evaluation 2026-11 of 400 orders"}
    run = after_a_gap(
        w, model("m-1", OnChange.MIGRATE, shown_by={"m-0": "-"}), model("m-2", OnChange.MIGRATE, shown_by=shown)
    )
    assert w.run(run).config["model"] == "m-2"
    assert w.heard(run)[0][1]["model"] == "m-2"
    (line,) = w.events(run, EventKind.RUN_CHECKED)
    (moved,) = line.data["checks"][5]["facts"]["moved"]
    assert (moved["answer"], moved["shown_by"]) == ("migrate", shown["m-1"])


def test_a_model_asks_and_the_answer_is_kept(w: World) -> None:
    """Ask: with the person's word the run takes the newer one, and is not asked about it again."""
    run = after_a_gap(w, model("m-1", OnChange.ASK), model("m-2", OnChange.ASK))
    assert w.run(run).waiting_on == WaitingOn.PERSON
    assert w.run(run).config["model"] == "m-1"
    go_on(w, run)
    w.drive()
    assert (w.run(run).state, w.run(run).config["model"]) == (RunState.COMPLETED, "m-2")


def test_a_contract_changed_in_place_asks(w: World) -> None:
    """The declarative part is pinned: another one under the same version is not gone on with in silence."""
    use(first())
    run = waiting(w)
    use(first(schema=StateSchema(version=1, migrates_from={2: Migration(by=dict, sample={})})))
    w.signal(run, "told")
    later(seconds=61)
    w.drive()
    assert w.run(run).waiting_on == WaitingOn.PERSON
    go_on(w, run)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert w.run(run).contract_digest == registry.run_type("test.versions").digest
