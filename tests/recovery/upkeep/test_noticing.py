"""Noticing an older record: what is compared, what is kept outside, and what an ordinary day looks like."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from recovery.upkeep import outside, restore
from recovery.upkeep.outside import Marker
from runs import epochs, record
from runs.models import Epoch, Event, Restore, Workspace
from runs.states import EventKind
from tests.recovery.upkeep.backups import keep_outside

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(settings: Settings, tmp_path: Path) -> Path:
    Workspace.objects.create(slug="acme-pay", name="Acme Pay", environment="SANDBOX")
    return keep_outside(settings, tmp_path)


def line() -> None:
    """Something happens."""
    workspace = Workspace.objects.get()
    record.note(workspace.pk, EventKind.PERSON_SIGNED_OUT, actor=None, data={})


def kept(path: Path) -> Marker:
    marker = outside.read(path)
    assert marker is not None
    return marker


def test_the_mark_grows_with_what_happens_and_the_file_follows_the_record(path: Path) -> None:
    watch = restore.Watch()
    assert watch.look() == 0
    first = kept(path)
    assert (first.mark, epochs.current().mark) == (1, 1)
    line()
    watch.look()
    second = kept(path)
    assert second.mark == epochs.current().mark == 2
    assert second.heads[str(Workspace.objects.get().pk)][0] == 1
    assert path.stat().st_mode & 0o777 == 0o600


def test_where_nothing_happens_nothing_is_written_each_second(path: Path) -> None:
    watch = restore.Watch()
    watch.look()
    watch.look()
    assert kept(path).mark == 1
    watch.at -= restore.MARK_EVERY
    watch.look()
    assert kept(path).mark == 2, "only now and then"


def test_a_mark_that_was_not_written_outside_any_more_is_no_alarm(path: Path) -> None:
    """The process died between the two writes: the record knows more than the file, never less."""
    restore.Watch().look()
    Epoch.objects.update(mark=5)
    assert restore.Watch().look() == 0
    assert kept(path).mark == 6


def test_a_server_that_was_started_anew_sends_again_once_it_was_compared(path: Path) -> None:
    restore.Watch().look()
    Epoch.objects.update(identity="another start")
    assert restore.Watch().look() == 0
    assert epochs.current().identity == epochs.here().identity
    assert not Restore.objects.exists()


@pytest.mark.parametrize(
    ("cause", "changed"),
    [
        ("other_system", {"system_identifier": "1"}),
        ("other_timeline", {"timeline": 99}),
        ("older_record", {"mark": 0}),
    ],
)
def test_what_differs_freezes_and_begins_an_epoch(path: Path, cause: str, changed: dict[str, object]) -> None:
    line()
    restore.Watch().look()
    Epoch.objects.update(**changed)
    assert restore.Watch().look() == 1
    assert (Restore.objects.get().cause, epochs.current().pk) == (cause, 2)
    assert restore.Watch().look() == 0, "once"
    assert (kept(path).epoch, Restore.objects.count()) == (2, 1)


def test_another_history_behind_the_same_mark_is_noticed(path: Path) -> None:
    line()
    restore.Watch().look()
    marker = kept(path)
    workspace = str(Workspace.objects.get().pk)
    outside.write(path, replace(marker, heads={workspace: (1, "0" * 64)}))
    Epoch.objects.update(identity="another start")
    assert restore.Watch().look() == 1
    assert Restore.objects.get().cause == "other_history"


def test_a_mark_that_is_gone_freezes_rather_than_guess(path: Path) -> None:
    restore.Watch().look()
    restore.Watch().look()
    path.unlink()
    assert restore.Watch().look() == 1
    row = Restore.objects.get()
    assert (row.cause, row.outside) == ("marker_missing", None)
    assert row.epoch > 1 + restore.UNSEEN, "above every token that may have been given out"


def test_a_place_that_cannot_be_written_is_told_and_freezes_nothing(
    path: Path, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = path.parent.parent / "a file"
    blocked.write_text("")
    settings.RECOURSE_OUTSIDE = blocked / "record.json"
    for _ in range(3):
        assert restore.Watch().look() == 0
    assert "cannot be kept" in caplog.text
    assert not Restore.objects.exists()


@pytest.mark.parametrize("text", ["", "{}", '{"v": 1, "epoch": 1}', "[]", '{"heads": []}'])
def test_a_mark_that_cannot_be_read_freezes_too(path: Path, text: str) -> None:
    restore.Watch().look()
    restore.Watch().look()
    path.write_text(text)
    assert restore.Watch().look() == 1
    assert Restore.objects.get().cause == "marker_unreadable"


def test_epochs_that_were_lost_are_never_given_out_again(path: Path) -> None:
    """Fault 39: the file knows of an epoch that the restored record does not."""
    restore.Watch().look()
    outside.write(path, replace(kept(path), epoch=7))
    restore.Watch().look()
    assert epochs.current().pk == 8


def test_without_a_place_outside_the_clusters_words_are_compared(path: Path, settings: Settings) -> None:
    settings.RECOURSE_OUTSIDE = None
    assert restore.Watch().look() == 0
    Epoch.objects.update(timeline=99)
    assert restore.Watch().look() == 1
    assert Event.objects.get(kind=EventKind.EPOCH_BEGUN).data["outside"] is None
