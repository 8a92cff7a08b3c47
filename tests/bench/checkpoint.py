"""A checkpoint of a 2 MB message history after a 2 KB change: stored size and times; a byte flipped in each tier; keys
rotated in the middle of a run. On a real PostgreSQL, Valkey and archive folder of its own."""

from __future__ import annotations

import base64
import os
import random
import statistics
import string
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from console.stack import environment
from console.stack.services import Services

STATE, CHANGE, ROUNDS = 2_000_000, 2_000, 15
_WORDS = ["".join(random.Random(n).choices(string.ascii_lowercase, k=3 + n % 8)) for n in range(6000)]


def main() -> None:
    """Start what is needed, measure, print."""
    with tempfile.TemporaryDirectory(prefix="rc-") as folder:
        services = Services(Path(folder), durable=True)
        os.environ.update(environment.build(services, address="http://testserver", sandbox="http://127.0.0.1:1"))
        with services:
            import django

            django.setup()
            from django.core.management import call_command

            call_command("migrate", interactive=False, verbosity=0)
            _measure()


def messages(size: int, seed: int) -> list[dict[str, str]]:
    """About ``size`` bytes of a conversation, the same for the same seed."""
    chance, told, weight = random.Random(seed), [], 0
    while weight < size:
        text = " ".join(chance.choices(_WORDS, k=chance.randint(30, 300)))[: max(size - weight, 40)]
        told.append({"role": chance.choice(["user", "assistant", "tool"]), "content": text})
        weight += len(text) + 30
    return told


def _measure() -> None:
    from runs.checkpoints import codec, load, tiers
    from tests.runs import make

    world = make.world()
    run = make.accept(world)
    state = messages(STATE, 1)
    first = _store(world, run, 2, state, None)
    changed = [*state[:-1], *messages(CHANGE, 2)]
    place: dict[str, Any] = {"workspace": world.ws, "run": run, "seq": 3}
    content = {"data": changed}
    written = codec.write(content, **place, base=first.next_base)
    raw = len(codec.encode(content))
    encode = _median(lambda: codec.write(content, **place, base=first.next_base))
    base = first.next_base
    assert base is not None
    decode = _median(lambda: codec.unseal(written.blob, **place, base=base.raw))
    full = _median(lambda: codec.write(content, **place, base=None))
    print(f"state of {raw:,} bytes, {CHANGE:,} bytes changed, {ROUNDS} rounds, medians")
    print(f"  stored {len(written.blob):,} bytes (the full one before it: {len(first.blob):,})")
    print(f"  encoded, compressed and sealed in {encode:.1f} ms (as a full one: {full:.1f} ms)")
    print(f"  opened in {decode:.1f} ms")
    began = time.perf_counter()
    _store(world, run, 3, changed, first.next_base)
    print(f"  encoded and committed in {(time.perf_counter() - began) * 1000:.1f} ms")
    for name, forget in (("near copies", lambda: None), ("PostgreSQL alone", lambda: make.forget(run))):
        forget()
        began = time.perf_counter()
        assert load.at(world.ws, run, 3).content == content
        print(f"  restored from {name} in {(time.perf_counter() - began) * 1000:.1f} ms")
    _flips(world, run, content)
    _rotation(world, run, content)
    tiers.memory.clear()


def _store(world: Any, run: UUID, seq: int, state: Any, base: Any) -> Any:
    from runs import record
    from runs.checkpoints import codec, tiers
    from runs.record import Commit, Entry
    from runs.states import EventKind

    written = codec.write({"data": state}, workspace=world.ws, run=run, seq=seq, base=base)
    sealed = record.Sealed(seq, "bench", codec.SCHEMA, written.blob, written.base, written.key)
    record.commit(Commit(world.ws, run, [Entry(EventKind.RUN_ADVANCED)], checkpoint=sealed))
    tiers.newest(run, written.blob, leaving=True)
    return written


def _median(what: Callable[[], Any]) -> float:
    """Milliseconds."""
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        what()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


def _flip(blob: bytes) -> bytes:
    return blob[:-1] + bytes([blob[-1] ^ 1])


def _flips(world: Any, run: UUID, content: Any) -> None:
    """Flip a byte of the newest checkpoint's copy in one tier after the other."""
    from django.conf import settings

    from runs import clock
    from runs.checkpoints import archive, load, moving, tiers
    from runs.models import Checkpoint, Event
    from runs.states import EventKind

    row = Checkpoint.objects.get(run_id=run, seq=3)
    good = bytes(row.sealed)
    print("a byte flipped in each tier:")

    def look(tier: str) -> None:
        try:
            used = "restored" if load.at(world.ws, run, 3).content == content else "WRONG CONTENT"
        except Exception as error:
            used = f"refused: {error}"
        last = Event.objects.filter(run_id=run, kind=EventKind.CHECKPOINT_DAMAGED).order_by("-seq").first()
        print(f"  {tier}: {used}; history says {last.data if last else 'nothing'}")
        tiers._reported.clear()

    tiers.newest(run, good, leaving=True)
    tiers.memory.put(row.digest, _flip(good))
    look("process memory, Valkey good")
    tiers.memory.clear()
    assert tiers.hot.store is not None
    tiers.hot.store.put(f"recourse:checkpoint:{run}", bytes.fromhex(row.digest) + _flip(good), 60)
    Checkpoint.objects.filter(pk=row.pk).update(size=tiers.COMES_ALONG + 1)  # its bytes are asked for apart
    look("Valkey, PostgreSQL good")
    Checkpoint.objects.filter(pk=row.pk).update(size=row.size, sealed=_flip(good))
    tiers.memory.clear()
    tiers.hot.put(run, good)
    look("PostgreSQL, Valkey good")
    tiers.memory.clear()
    tiers.hot.drop(run)
    moved, _ = moving.move_due(clock.now() + timedelta(days=8))
    row.refresh_from_db()
    print(f"  {moved} checkpoints moved to {settings.RECOURSE_ARCHIVE_URL.partition('://')[0]}://…")
    archive.put(row.address, _flip(good))
    tiers.memory.clear()
    look("archive, no other copy")
    archive.put(row.address, good)


def _rotation(world: Any, run: UUID, content: Any) -> None:
    """A new key while the run stands in the middle; stopped half-way and begun again; then without the old key."""
    from django.conf import settings

    from runs.checkpoints import load
    from runs.checkpoints.rotation import rotate
    from runs.checkpoints.verify import verify
    from tests.runs import make

    fresh = f"fresh:{base64.b64encode(os.urandom(32)).decode()}"
    settings.RECOURSE_SEAL_KEYS = f"{fresh},{settings.RECOURSE_SEAL_KEYS}"
    first = rotate(at_most=1)
    make.forget(run)
    between = load.at(world.ws, run, 3).content == content
    last = rotate()
    settings.RECOURSE_SEAL_KEYS = fresh
    make.forget(run)
    after = load.at(world.ws, run, 3).content == content
    print(
        f"keys: {first.done} sealed anew, stopped, restored in between: {between}; {last.done} more,"
        f" {sum(last.left.values())} left; restored with the new key alone: {after}"
    )
    found = verify()
    print(f"verified: {found.opened} of {found.looked} opened ({found.share:.0%}) in {found.seconds * 1000:.0f} ms")
