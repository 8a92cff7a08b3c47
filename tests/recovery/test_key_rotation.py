"""Keys rotate under running runs: in pages, resumably; a key that is missing makes a run visibly undecryptable."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from recovery.actions import runs as run_actions
from recovery.contract import registry
from runs import clock, secret_text
from runs.checkpoints import codec, moving, tiers, tokens
from runs.checkpoints.rotation import rotate
from runs.models import Checkpoint, Dependency, Event, FieldKey
from runs.states import EventKind, RunState, WaitingOn
from tests.recovery import sealing
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later
from tests.runs.make import forget

OLD, NEW = "old:" + "A" * 43, "new:" + "B" * 42 + "A"


@pytest.fixture(autouse=True)
def ring(w: World, settings: Any, tmp_path: Path) -> None:
    settings.RECOURSE_SEAL_KEYS = OLD
    settings.RECOURSE_ARCHIVE_URL = (tmp_path / "archive").as_uri()
    registry.register_module(sealing, "tests")
    tokens._ciphers.clear()


def begin(w: World) -> UUID:
    """A run with a sealed field that waits for a signal."""
    given = {"charge": w.charge(), "pin": "5521", "limit": 1, "wait": True}
    run = run_actions.accept(w.s.here, "test.sealed", given, actor=w.s.oncall_a, act=act("accept")).run
    w.drive()
    return run


def go_on(w: World, run: UUID) -> None:
    """Minutes later, in a process that remembers nothing."""
    forget(run)
    tokens._ciphers.clear()
    w.signal(run, "pin.changed", pin="9034")
    w.drive()


def by_key() -> dict[str, int]:
    found: dict[str, int] = {}
    for key in Checkpoint.objects.values_list("key", flat=True):
        found[key] = found.get(key, 0) + 1
    return found


def test_a_run_goes_on_with_the_new_key_alone(w: World, settings: Any) -> None:
    run = begin(w)
    settings.RECOURSE_SEAL_KEYS = f"{NEW},{OLD}"
    told = rotate()
    assert (told.done, told.left) == (3, {}), "two checkpoints and the workspace's field key"
    settings.RECOURSE_SEAL_KEYS = NEW
    go_on(w, run)
    assert w.run(run).state == RunState.COMPLETED
    assert set(by_key()) == {"new"}
    (line,) = Event.objects.filter(run=None, kind=EventKind.KEYS_ROTATED)
    assert line.data == {"key": "new", "sealed": 3, "missing": []}


def test_a_run_in_the_middle_of_a_rotation_goes_on(w: World, settings: Any) -> None:
    """Some of it under the old key, some under the new one."""
    runs = [begin(w) for _ in range(3)]
    settings.RECOURSE_SEAL_KEYS = f"{NEW},{OLD}"
    rotate(at_most=3)
    assert by_key() == {"new": 3, "old": 3}
    for run in runs:
        go_on(w, run)
    assert {w.run(run).state for run in runs} == {RunState.COMPLETED}


def test_a_rotation_that_is_stopped_goes_on_where_it_was(w: World, settings: Any) -> None:
    for _ in range(4):
        begin(w)
    settings.RECOURSE_SEAL_KEYS = f"{NEW},{OLD}"
    seen: list[int] = []

    def stop(id: int) -> None:
        seen.append(id)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rotate(page=2, after_row=stop)
    assert by_key() == {"new": 3, "old": 5}
    first = set(seen)
    told = rotate(page=2, after_row=seen.append)
    assert (told.done, told.left) == (5, {})
    assert len(seen) == len(set(seen)) == 8 and len(first) == 3, "nothing is done twice"
    assert rotate().done == 0


def test_what_was_sealed_stays_as_it_is(w: World, settings: Any) -> None:
    """Deltas still fit their base, tokens and digests of intents are the same."""
    run = begin(w)
    before = [(row.seq, row.base, row.why, row.at) for row in Checkpoint.objects.filter(run_id=run).order_by("seq")]
    with tokens.within(w.s.here.pk):
        token = tokens.seal("5521")
    settings.RECOURSE_SEAL_KEYS = f"{NEW},{OLD}"
    rotate()
    tokens._ciphers.clear()
    settings.RECOURSE_SEAL_KEYS = NEW
    with tokens.within(w.s.here.pk):
        assert tokens.seal("5521") == token
    rows = Checkpoint.objects.filter(run_id=run).order_by("seq")
    assert [(row.seq, row.base, row.why, row.at) for row in rows] == before
    for row in rows:
        blob = bytes(row.sealed)
        assert tiers.digest(blob) == row.digest and row.size == len(blob)
        assert codec.head(blob, run=run, seq=row.seq).key == "new"


def test_the_archive_is_rotated_too(w: World, settings: Any, tmp_path: Path) -> None:
    run = begin(w)
    moving.move_due(clock.now() + timedelta(days=8))
    assert not Checkpoint.objects.filter(address="").exists()
    settings.RECOURSE_SEAL_KEYS = f"{NEW},{OLD}"
    rotate()
    files = [path for path in (tmp_path / "archive").rglob("*") if path.is_file()]
    assert len(files) == 2, "the bytes under the old key are gone"
    settings.RECOURSE_SEAL_KEYS = NEW
    go_on(w, run)
    assert w.run(run).state == RunState.COMPLETED


def test_a_missing_key_is_visible_and_fails_nothing(w: World, settings: Any) -> None:
    run = begin(w)
    settings.RECOURSE_SEAL_KEYS = NEW
    go_on_refused = w.run(run)
    forget(run)
    tokens._ciphers.clear()
    later(minutes=1)
    run_actions.look_again(run, actor=w.s.oncall_a, act=act("look"))
    assert w.advance(run) == "undecryptable"
    row = w.run(run)
    assert (row.state, row.waiting_on, row.lease_owner) == (RunState.WAITING, WaitingOn.VERSION_MISSING, None)
    assert row.gate[0] == {"code": "undecryptable", "facts": {"key": "old"}}
    assert row.checkpoint_seq == go_on_refused.checkpoint_seq, "nothing is written over it"
    told = rotate()
    assert (dict(told.missing), told.done, told.left) == ({"old": 3}, 0, {"old": 3})
    with pytest.raises(CommandError, match="Nothing of them was changed"):
        call_command("rotate_keys")
    with pytest.raises(CommandError, match="2 of 2 do not open"):
        call_command("verify_checkpoints")
    settings.RECOURSE_SEAL_KEYS = f"{NEW},{OLD}"
    later(minutes=2)
    w.drive()
    assert w.run(run).state == RunState.WAITING
    go_on(w, run)
    assert w.run(run).state == RunState.COMPLETED


def test_the_command_says_what_may_go(w: World, settings: Any, capsys: Any) -> None:
    begin(w)
    settings.RECOURSE_SEAL_KEYS = f"{NEW},{OLD}"
    call_command("rotate_keys", "--at-most", "1")
    assert "1 still need 'old'; keep it." in capsys.readouterr().out
    call_command("rotate_keys")
    assert "Nothing needs an older key any more." in capsys.readouterr().out
    assert FieldKey.objects.get().key == "new"


def test_rows_from_before_keys_were_named_are_found(w: World, settings: Any) -> None:
    begin(w)
    Checkpoint.objects.update(key="")
    assert rotate().left == {}
    assert by_key() == {"old": 2}
    Checkpoint.objects.update(key="")
    settings.RECOURSE_SEAL_KEYS = f"{NEW},{OLD}"
    assert rotate().left == {}
    assert by_key() == {"new": 2}


def test_two_rotations_at_once_do_not_undo_each_other(w: World, settings: Any) -> None:
    begin(w)
    settings.RECOURSE_SEAL_KEYS = f"{NEW},{OLD}"
    inside: list[int] = []

    def other(id: int) -> None:
        if not inside:
            inside.append(rotate().done)

    outer = rotate(after_row=other)
    assert inside == [1] and outer.left == {}
    assert set(by_key()) == {"new"}


def test_secrets_in_columns_are_rotated_too(w: World, settings: Any) -> None:
    """What callbacks are signed with opens under the new key alone; an altered one is named and left."""
    good, bad = Dependency.objects.filter(workspace=w.s.here).order_by("name")[:2]
    sealed = {
        row.pk: secret_text.seal("whsec_" + row.name, f"runs_dependency|{row.pk}|callback_secrets")
        for row in (good, bad)
    }
    for id, text in sealed.items():
        Dependency.objects.filter(pk=id).update(callback_secrets=text if id == good.pk else text[:-8] + "AAAAAAA=")
    settings.RECOURSE_SEAL_KEYS = f"{NEW},{OLD}"
    told = rotate()
    assert (told.done, len(told.unreadable), told.left) == (1, 1, {"old": 1})
    settings.RECOURSE_SEAL_KEYS = NEW
    good.refresh_from_db()
    assert secret_text.unseal(good.callback_secrets, f"runs_dependency|{good.pk}|callback_secrets").endswith(good.name)
