"""Checkpoints: sealed for their place, verified on reading, refused whole if they cannot be encoded."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from runs.checkpoints import codec, load
from runs.errors import Unreadable
from runs.models import Checkpoint
from tests.runs import make
from tests.runs.make import World

PLACE: dict[str, Any] = {"workspace": uuid4(), "run": uuid4(), "seq": 7}
KEYS = "old:" + "A" * 43 + ",new:" + "B" * 42 + "A"
CONTENT = {"data": {"customer": "Grace Hopper", "items": [1, 2.5, None, True]}, "step": "refunded"}


def test_what_was_sealed_comes_back() -> None:
    assert codec.unseal(codec.seal(CONTENT, **PLACE), **PLACE) == CONTENT


def test_a_sealed_checkpoint_does_not_show_its_content() -> None:
    blob = codec.seal({"data": {"customer": "Grace Hopper" * 3}}, **PLACE)
    assert b"Grace" not in blob and b"customer" not in blob


def test_sealing_twice_gives_different_bytes() -> None:
    """A nonce is never used again."""
    assert codec.seal(CONTENT, **PLACE) != codec.seal(CONTENT, **PLACE)


@pytest.mark.parametrize("other", [{"workspace": uuid4()}, {"run": uuid4()}, {"seq": 8}])
def test_a_checkpoint_moved_to_another_place_is_refused(other: dict[str, Any]) -> None:
    """Invariant 14: workspace, run and sequence are part of what is sealed."""
    blob = codec.seal(CONTENT, **PLACE)
    with pytest.raises(Unreadable, match="damaged or not of this run"):
        codec.unseal(blob, **{**PLACE, **other})


def test_every_damaged_byte_is_noticed() -> None:
    blob = codec.seal(CONTENT, **PLACE)
    for at in range(len(blob)):
        broken = blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :]
        with pytest.raises(Unreadable):
            codec.unseal(broken, **PLACE)


@pytest.mark.parametrize("length", [0, 3, 4, 5, 10, 30])
def test_a_cut_checkpoint_is_unreadable_and_nothing_else(length: int) -> None:
    with pytest.raises(Unreadable):
        codec.unseal(codec.seal(CONTENT, **PLACE)[:length], **PLACE)


def test_a_key_that_is_not_in_the_ring_is_named(settings: Any) -> None:
    settings.RECOURSE_SEAL_KEYS = KEYS
    blob = codec.seal(CONTENT, **PLACE)
    settings.RECOURSE_SEAL_KEYS = KEYS.split(",")[1]
    with pytest.raises(Unreadable, match="'old' is not in RECOURSE_SEAL_KEYS"):
        codec.unseal(blob, **PLACE)


def test_keys_rotate_and_old_checkpoints_still_open(settings: Any) -> None:
    settings.RECOURSE_SEAL_KEYS = KEYS
    old = codec.seal(CONTENT, **PLACE)
    settings.RECOURSE_SEAL_KEYS = ",".join(reversed(KEYS.split(",")))
    new = codec.seal(CONTENT, **PLACE)
    assert (old[5:8], new[5:8]) == (b"old", b"new")
    assert codec.unseal(old, **PLACE) == codec.unseal(new, **PLACE) == CONTENT


def test_another_key_under_the_same_name_does_not_open_it(settings: Any) -> None:
    settings.RECOURSE_SEAL_KEYS = "k:" + "A" * 43
    blob = codec.seal(CONTENT, **PLACE)
    settings.RECOURSE_SEAL_KEYS = "k:" + "B" * 42 + "A"
    with pytest.raises(Unreadable):
        codec.unseal(blob, **PLACE)


@pytest.mark.parametrize("setting", ["", "k:", ":" + "A" * 43, "k:" + "A" * 20, "A" * 43, "k:not base64 at all"])
def test_a_wrong_setting_is_a_clear_refusal(settings: Any, setting: str) -> None:
    settings.RECOURSE_SEAL_KEYS = setting
    with pytest.raises(ImproperlyConfigured, match="RECOURSE_SEAL_KEYS"):
        codec.seal(CONTENT, **PLACE)


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({"data": {"customer": {"born": date(1906, 12, 9)}}}, "data.customer.born"),
        ({"data": {"items": [1, {"tags": {"a"}}]}}, "data.items[1].tags"),
        ({"data": {"rate": float("nan")}}, "data.rate"),
        ({"data": {"rates": [0.5, float("inf")]}}, "data.rates[1]"),
        ({"data": {"big": 2**70}}, "data.big"),
        ({"data": {1: "one"}}, "data.1"),
        ({"raw": b"bytes"}, "raw"),
        ({"data": {"name": "half \ud83d of a pair"}}, "data.name"),
    ],
)
def test_what_cannot_be_stored_is_named_by_its_path(content: dict[str, Any], path: str) -> None:
    """It fails the step, never the checkpoint: nothing is written before all of it is encoded."""
    with pytest.raises(codec.Unserialisable) as refused:
        codec.encode(content)
    assert refused.value.path == path
    assert str(refused.value).startswith(f"{path}: ")


def test_a_stored_checkpoint_is_read_with_its_digest_verified(world: World) -> None:
    run = make.accept(world)
    restored = load.at(world.ws, run, 1)
    assert (restored.seq, restored.schema, restored.content) == (1, codec.SCHEMA, {"data": {"a": 1}})
    row = Checkpoint.objects.get(run_id=run)
    assert row.size == len(bytes(row.sealed))


def test_a_missing_checkpoint_and_one_of_another_workspace_are_unreadable(world: World) -> None:
    run = make.accept(world)
    for workspace, seq in ((world.ws, 2), (world.other.pk, 1)):
        with pytest.raises(Unreadable, match="no such checkpoint"):
            load.at(workspace, run, seq)


def test_damage_in_the_database_is_noticed_by_digest_and_by_seal(world: World) -> None:
    run = make.accept(world)
    blob = bytes(Checkpoint.objects.get(run_id=run).sealed)
    broken = blob[:-1] + bytes([blob[-1] ^ 1])
    Checkpoint.objects.filter(run_id=run).update(sealed=broken)
    with pytest.raises(Unreadable, match="do not match their digest"):
        load.at(world.ws, run, 1)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_checkpoint SET digest = encode(sha256(sealed), 'hex') WHERE run_id = %s", [run])
    with pytest.raises(Unreadable, match="damaged"):
        load.at(world.ws, run, 1)


def test_a_checkpoint_of_another_run_is_not_passed_off(world: World) -> None:
    mine, theirs = make.accept(world), make.accept(world)
    foreign = Checkpoint.objects.get(run_id=theirs)
    Checkpoint.objects.filter(run_id=mine).update(sealed=foreign.sealed, digest=foreign.digest)
    with pytest.raises(Unreadable, match="not of this run"):
        load.at(world.ws, mine, 1)


def test_a_schema_from_the_future_is_reported_and_not_opened(world: World) -> None:
    run = make.accept(world)
    Checkpoint.objects.filter(run_id=run).update(schema=codec.SCHEMA + 1)
    found = load.at(world.ws, run, 1)
    assert (found.seq, found.schema, found.content) == (1, codec.SCHEMA + 1, {})
