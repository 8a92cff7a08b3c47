"""A large checkpoint is a delta of the last full one: small, quick, and never more than two blobs to read."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID, uuid4

import pytest

from runs import record
from runs.checkpoints import codec, load
from runs.checkpoints.codec import Base, Written
from runs.errors import IllegalMove, Unreadable
from runs.models import Checkpoint
from runs.record import Commit, Entry
from runs.states import EventKind
from tests.runs import make
from tests.runs.make import World

PLACE: dict[str, Any] = {"workspace": uuid4(), "run": uuid4()}
WORDS = ["".join(random.Random(n).choices("abcdefghijklmnopqrstuvwxyz", k=3 + n % 7)) for n in range(4000)]


def history(size: int, seed: int = 1) -> list[dict[str, str]]:
    """About ``size`` bytes of messages."""
    chance, told, weight = random.Random(seed), [], 0
    while weight < size:
        text = " ".join(chance.choices(WORDS, k=chance.randint(20, 200)))
        told.append({"role": "user", "content": text})
        weight += len(text) + 30
    return told


def after(first: Written) -> Base:
    assert first.next_base is not None
    return first.next_base


def test_two_kilobytes_changed_in_two_megabytes_are_a_few_kilobytes_stored() -> None:
    """The figure of the design: under 10 KB."""
    messages = history(2_000_000)
    first = codec.write({"data": {"messages": messages}}, **PLACE, seq=1, base=None)
    changed = [*messages, *history(2_000, seed=2)]
    second = codec.write({"data": {"messages": changed}}, **PLACE, seq=2, base=after(first))
    assert (first.base, second.base) == (None, 1)
    assert len(second.blob) < 10_000 < len(first.blob)
    again = codec.unseal(second.blob, **PLACE, seq=2, base=after(first).raw)
    assert again == {"data": {"messages": changed}}


def test_a_small_checkpoint_is_always_a_full_one() -> None:
    small = codec.write({"data": {"a": 1}}, **PLACE, seq=1, base=None)
    assert small.next_base is None
    base = after(codec.write({"data": history(20_000)}, **PLACE, seq=1, base=None))
    assert codec.write({"data": {"a": 1}}, **PLACE, seq=2, base=base).base is None


def test_a_full_one_again_when_the_delta_does_not_pay() -> None:
    base = after(codec.write({"data": history(20_000)}, **PLACE, seq=1, base=None))
    other = codec.write({"data": history(20_000, seed=9)}, **PLACE, seq=2, base=base)
    assert other.base is None and after(other).seq == 2


def test_a_history_that_grows_stores_a_full_one_now_and_then() -> None:
    """Deltas grow with the distance from their base; together they never weigh much more than a full one."""
    messages, base, kinds, weight = history(100_000), None, [], 0
    for seq in range(1, 120):
        messages = [*messages, *history(500, seed=seq)]
        written = codec.write({"data": messages}, **PLACE, seq=seq, base=base)
        base = after(written)
        kinds.append(written.base)
        weight += len(written.blob)
    full = [n for n, kind in enumerate(kinds) if kind is None]
    assert 3 <= len(full) <= 30, full
    assert weight < 4 * len(full) * base.size


def test_a_delta_does_not_open_against_another_base() -> None:
    messages = history(30_000)
    first = codec.write({"data": messages}, **PLACE, seq=1, base=None)
    other = codec.write({"data": history(30_000, seed=5)}, **PLACE, seq=1, base=None)
    delta = codec.write({"data": messages[1:]}, **PLACE, seq=2, base=after(first)).blob
    with pytest.raises(Unreadable, match="needs number 1"):
        codec.unseal(delta, **PLACE, seq=2)
    with pytest.raises(Unreadable):
        codec.unseal(delta, **PLACE, seq=2, base=after(other).raw)


def test_every_damaged_byte_of_a_deltas_head_is_noticed() -> None:
    """The number of its base is part of what is sealed."""
    messages = history(30_000)
    first = codec.write({"data": messages}, **PLACE, seq=1, base=None)
    delta = codec.write({"data": messages[1:]}, **PLACE, seq=2, base=after(first)).blob
    for at in [*range(40), len(delta) - 1]:
        broken = delta[:at] + bytes([delta[at] ^ 1]) + delta[at + 1 :]
        with pytest.raises(Unreadable):
            codec.unseal(broken, **PLACE, seq=2, base=after(first).raw)


def write(w: World, run: UUID, seq: int, data: Any, base: Base | None) -> Written:
    """Commit checkpoint ``seq`` of ``run``."""
    written = codec.write({"data": data}, workspace=w.ws, run=run, seq=seq, base=base)
    sealed = record.Sealed(seq, "test", codec.SCHEMA, written.blob, written.base, written.key)
    record.commit(Commit(w.ws, run, [Entry(EventKind.RUN_ADVANCED)], checkpoint=sealed))
    return written


def test_a_stored_delta_is_restored_from_two_blobs(world: World, django_assert_num_queries: Any) -> None:
    run, messages = make.accept(world), history(60_000)
    base = after(write(world, run, 2, messages, None))
    write(world, run, 3, messages[1:], base)
    write(world, run, 4, messages[2:], base)
    assert list(Checkpoint.objects.filter(run_id=run).order_by("seq").values_list("base", flat=True)) == [
        None,
        None,
        2,
        2,
    ]
    make.forget(run)
    with django_assert_num_queries(3):  # two rows; the large one's bytes apart
        restored = load.at(world.ws, run, 4)
    assert restored.content == {"data": messages[2:]}
    assert restored.base == base


@pytest.mark.parametrize("base", [1, 3, 9])
def test_a_delta_of_what_is_no_full_one_of_this_run_is_refused(world: World, base: int) -> None:
    """A delta of a delta, of itself or of what was never committed could not be opened."""
    run, messages = make.accept(world), history(60_000)
    full = after(write(world, run, 2, messages, None))
    write(world, run, 3, messages[1:], full)
    wrong = Base(base, full.raw, full.size)
    if base == 1:
        Checkpoint.objects.filter(run_id=run, seq=1).update(seq=100)
    with pytest.raises(IllegalMove, match=f"checkpoint {base} is no full one"):
        write(world, run, 4, messages[2:], wrong)
