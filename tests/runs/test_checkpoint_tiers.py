"""Four places, nearest first. A damaged copy anywhere is found by its digest, reported, and the next place is asked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from console.hot import ValkeyStore
from runs import clock
from runs.checkpoints import archive, load, moving, tiers
from runs.checkpoints.hot import Hot
from runs.checkpoints.memory import Memory
from runs.checkpoints.verify import verify
from runs.errors import ArchiveAway, Unreadable
from runs.models import Checkpoint, Event, Run
from runs.states import EventKind
from tests.runs import make
from tests.runs.make import World
from tests.runs.test_checkpoint_deltas import after, history, write


@pytest.fixture(autouse=True)
def near(valkey: str, settings: Any, tmp_path: Path) -> Iterator[None]:
    """Empty near tiers, an archive of this test alone."""
    settings.RECOURSE_ARCHIVE_URL = (tmp_path / "archive").as_uri()
    before = tiers.hot.store
    tiers.memory.clear()
    tiers.hot.register(ValkeyStore(valkey))
    tiers._reported.clear()
    yield
    tiers.hot.register(before)


def flip(blob: bytes) -> bytes:
    return blob[:-1] + bytes([blob[-1] ^ 1])


def stored(run: UUID, seq: int) -> bytes:
    return bytes(Checkpoint.objects.get(run_id=run, seq=seq).sealed)


def told(run: UUID) -> list[tuple[str, bool]]:
    """What the run's history says of damaged copies."""
    rows = Event.objects.filter(run_id=run, kind=EventKind.CHECKPOINT_DAMAGED).order_by("seq")
    return [(row.data["tier"], row.data["mended"]) for row in rows]


def large(world: World, run: UUID) -> bytes:
    """Checkpoint 2 of the run: too large to come along with its row, kept in every near tier."""
    write(world, run, 2, history(80_000), None)
    blob = stored(run, 2)
    assert len(blob) > tiers.COMES_ALONG
    tiers.newest(run, blob, leaving=True)
    return blob


def test_a_flipped_byte_in_process_memory(world: World) -> None:
    run = make.accept(world)
    blob = large(world, run)
    tiers.memory.put(tiers.digest(blob), flip(blob))
    assert load.at(world.ws, run, 2).content["data"] == history(80_000)
    assert told(run) == [("memory", True)]
    assert tiers.memory.get(tiers.digest(blob)) == blob


def test_a_flipped_byte_in_valkey(world: World) -> None:
    run = make.accept(world)
    blob = large(world, run)
    tiers.memory.clear()
    assert tiers.hot.store is not None
    key = f"recourse:checkpoint:{run}"
    tiers.hot.store.put(key, hashlib.sha256(blob).digest() + flip(blob), 60)
    assert load.at(world.ws, run, 2).content["data"] == history(80_000)
    assert told(run) == [("hot", False)]
    assert tiers.hot.store.get(key) is None, "a damaged copy is not kept"


def test_a_flipped_byte_in_postgresql_is_mended_from_a_near_copy(world: World) -> None:
    run = make.accept(world)
    good = stored(run, 1)
    tiers.newest(run, good, leaving=True)
    tiers.memory.clear()
    Checkpoint.objects.filter(run_id=run, seq=1).update(sealed=flip(good))
    assert load.at(world.ws, run, 1).content == {"data": {"a": 1}}
    assert told(run) == [("record", True)]
    assert stored(run, 1) == good


def test_a_flipped_byte_in_postgresql_and_no_other_copy(world: World) -> None:
    run = make.accept(world)
    large(world, run)
    Checkpoint.objects.filter(run_id=run, seq=2).update(sealed=flip(stored(run, 2)))
    make.forget(run)
    for _ in range(2):
        with pytest.raises(Unreadable, match="do not match their digest"):
            load.at(world.ws, run, 2)
    assert told(run) == [("record", False)], "said once a process, not with every look"


def test_the_hot_copy_is_used_where_the_process_is_another(world: World, django_assert_num_queries: Any) -> None:
    run = make.accept(world)
    large(world, run)
    tiers.memory.clear()
    with django_assert_num_queries(1):  # the row; its bytes stay where they are
        load.at(world.ws, run, 2)


def test_an_older_copy_in_valkey_is_not_taken_for_the_newest(world: World) -> None:
    """Nor one of another timeline: the row says which bytes they are."""
    run = make.accept(world)
    tiers.hot.put(run, stored(run, 1))
    write(world, run, 2, history(80_000), None)
    tiers.memory.clear()
    assert load.at(world.ws, run, 2).content["data"] == history(80_000)
    assert told(run) == [], "an older one is no damage"


def test_valkey_away_is_left_out(world: World) -> None:
    run = make.accept(world)
    large(world, run)
    tiers.memory.clear()
    tiers.hot.register(ValkeyStore("redis://127.0.0.1:1/0"))
    assert load.at(world.ws, run, 2).seq == 2
    asked: list[str] = []
    tiers.hot.store.get = lambda key: asked.append(key)  # type: ignore[union-attr, method-assign]
    tiers.memory.clear()
    load.at(world.ws, run, 2)
    assert asked == [], "it is not asked again at once"


def test_what_is_too_large_is_not_kept_in_valkey(world: World, valkey: str) -> None:
    hot = Hot()
    hot.register(ValkeyStore(valkey))
    run = make.accept(world)
    blob = b"x" * (256 * 1024 + 1)
    hot.put(run, blob)
    assert hot.get(run, tiers.digest(blob)) is None
    hot.put(run, blob[1:])
    assert hot.get(run, tiers.digest(blob[1:])) == blob[1:]


def test_process_memory_has_a_bound() -> None:
    memory = Memory(at_most=100)
    for n in range(10):
        memory.put(str(n), bytes(30))
    assert memory.size == 90 and memory.get("9") and memory.get("0") is None
    memory.put("large", bytes(101))
    assert memory.get("large") is None and memory.size == 90
    memory.put("9", bytes(10))
    assert memory.size == 70


def aged(world: World) -> UUID:
    """A run with a full checkpoint, two deltas of it and a small one, all of them eight days old."""
    run, messages = make.accept(world), history(60_000)
    base = after(write(world, run, 2, messages, None))
    write(world, run, 3, messages[1:], base)
    write(world, run, 4, messages[2:], base)
    Checkpoint.objects.filter(run_id=run).update(at=clock.now() - timedelta(days=8))
    return run


def test_after_a_week_checkpoints_move_to_the_archive(world: World, tmp_path: Path) -> None:
    run = aged(world)
    kept = {row.seq: (row.digest, row.size) for row in Checkpoint.objects.filter(run_id=run)}
    assert moving.move_due(clock.now()) == (4, 0)
    for row in Checkpoint.objects.filter(run_id=run):
        assert row.sealed is None and (row.digest, row.size) == kept[row.seq]
        file = tmp_path / "archive" / row.address
        assert tiers.digest(file.read_bytes()) == row.digest
        assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert [p.name for p in (tmp_path / "archive").rglob("*.tmp")] == []
    make.forget(run)
    restored = load.at(world.ws, run, 4)
    assert restored.content["data"] == history(60_000)[2:]
    assert restored.base is None, "what is in the archive gets no new deltas"
    assert moving.move_due(clock.now()) == (0, 0)


def test_a_full_one_waits_for_its_youngest_delta(world: World) -> None:
    run = aged(world)
    Checkpoint.objects.filter(run_id=run, seq=4).update(at=clock.now() - timedelta(days=6))
    assert moving.move_due(clock.now()) == (1, 0)
    moved = Checkpoint.objects.filter(run_id=run, sealed=None).values_list("seq", flat=True)
    assert list(moved) == [1]


def test_a_stop_between_archive_and_record_loses_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = aged(world)

    def stop(places: Any) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as m:
        m.setattr(moving.keeping, "moved", stop)
        with pytest.raises(KeyboardInterrupt):
            moving.move_due(clock.now())
    make.forget(run)
    assert load.at(world.ws, run, 4).seq == 4
    assert moving.move_due(clock.now()) == (4, 0)
    make.forget(run)
    assert load.at(world.ws, run, 4).seq == 4


def test_what_changes_while_it_is_moved_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a full one and its deltas move, or none."""
    run = aged(world)
    real = moving.keeping.moved

    def first(places: Any) -> bool:
        Checkpoint.objects.filter(run_id=run, seq=3).update(digest="0" * 64)
        return real(places)

    monkeypatch.setattr(moving.keeping, "moved", first)
    moving.move_due(clock.now())
    assert set(Checkpoint.objects.filter(run_id=run, sealed=None).values_list("seq", flat=True)) <= {1}


def test_a_damaged_one_is_not_moved(world: World) -> None:
    """The archive would keep the damage, and nobody would look there."""
    run = aged(world)
    Checkpoint.objects.filter(run_id=run, seq=3).update(sealed=flip(stored(run, 3)))
    assert moving.move_due(clock.now()) == (1, 0)
    assert told(run) == [("record", False)]


def test_a_flipped_byte_in_the_archive(world: World, tmp_path: Path) -> None:
    run = aged(world)
    moving.move_due(clock.now())
    row = Checkpoint.objects.get(run_id=run, seq=4)
    file = tmp_path / "archive" / row.address
    good = file.read_bytes()
    file.write_bytes(flip(good))
    make.forget(run)
    with pytest.raises(Unreadable, match="archive"):
        load.at(world.ws, run, 4)
    assert told(run) == [("archive", False)]
    tiers.memory.put(row.digest, good)
    assert load.at(world.ws, run, 4).seq == 4


def test_an_archive_that_is_away_is_not_called_damage(world: World, settings: Any, tmp_path: Path) -> None:
    run = aged(world)
    moving.move_due(clock.now())
    make.forget(run)
    settings.RECOURSE_ARCHIVE_URL = "s3://nowhere/at-all"
    with pytest.MonkeyPatch.context() as m:
        for name, value in {
            "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_REGION": "eu",
        }.items():
            m.setenv(name, value)
        with pytest.raises(ArchiveAway):
            load.at(world.ws, run, 4)
        with pytest.raises(archive.Away):
            archive.put("a", b"x")
    assert told(run) == []
    found = verify(workspace=world.ws)
    assert (found.looked, found.opened, len(found.away)) == (4, 0, 4)
    archive._store.cache_clear()


def test_verifying_opens_everything_that_is_kept_durably(world: World, capsys: Any) -> None:
    run, other = aged(world), make.accept(world)
    moving.move_due(clock.now())
    found = verify()
    assert (found.looked, found.opened, found.share) == (5, 5, 1.0)
    assert verify(newest=True).looked == Run.objects.count()
    assert verify(sample=2).looked == 2
    good = stored(other, 1)
    tiers.newest(other, good, leaving=True)
    Checkpoint.objects.filter(run_id=other).update(sealed=flip(good))
    found = verify(workspace=world.ws)
    assert (found.opened, found.share) == (4, 0.8), "a near copy must not hide it"
    assert str(other) in found.damaged[0]
    with pytest.raises(CommandError, match="1 of 5 do not open"):
        call_command("verify_checkpoints", "--json")
    assert f"checkpoint 1 of run {other}" in capsys.readouterr().out
    assert run != other


def test_the_archive_takes_a_name_again_and_forgets_it(tmp_path: Path) -> None:
    archive.put("w/r/1-x", b"one")
    archive.put("w/r/1-x", b"two")
    assert archive.get("w/r/1-x") == b"two"
    archive.drop("w/r/1-x")
    archive.drop("w/r/1-x")
    assert archive.get("w/r/1-x") is None
    assert os.listdir(tmp_path / "archive" / "w" / "r") == []
