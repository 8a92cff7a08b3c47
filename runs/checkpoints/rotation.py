"""A new sealing key: everything that an older one sealed is sealed anew, one row at a time, in pages.

Each row is changed by one guarded statement, so this may be stopped and begun again, run twice at once, and run while
the engine works. What is inside a checkpoint stays as it is: only the seal is new. An older key may leave
RECOURSE_SEAL_KEYS when nothing needs it any more, which is what the end of this says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from runs import record, secret_text
from runs.checkpoints import archive, codec, keeping, keys, tiers, tokens
from runs.errors import Undecryptable, Unreadable
from runs.models import Checkpoint, Dependency, FieldKey, NoticeTarget
from runs.states import EventKind

SECRETS: Final = ((Dependency, "callback_secrets"), (NoticeTarget, "secret"))
"""Columns whose texts are sealed by ``runs.secret_text`` for ``table|id|column``."""


@dataclass(slots=True)
class Rotated:
    """What was done. ``missing``: keys that are not in the ring, with how much they alone open. ``unreadable``: rows
    whose bytes are damaged or away. ``left``: by older key, what still needs it."""

    done: int = 0
    changed_meanwhile: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)
    by_workspace: Counter[UUID] = field(default_factory=Counter)

    def count(self, workspace: UUID, done: bool) -> None:
        """One row was sealed anew, or had changed meanwhile."""
        if done:
            self.done += 1
            self.by_workspace[workspace] += 1
        else:
            self.changed_meanwhile += 1


def rotate(*, page: int = 200, at_most: int | None = None, after_row: Callable[[int], None] | None = None) -> Rotated:
    """Seal everything anew that the current key did not seal; at most ``at_most`` rows. ``after_row`` is told each
    row's id."""
    told, beyond, looked = Rotated(), 0, 0
    now = keys.current()
    for row in FieldKey.objects.exclude(key=now):
        _field_key(row, told)
    for model, column in SECRETS:
        for owner, workspace, sealed in _secrets(model, column):
            _secret(model, column, owner, workspace, sealed, told)
    while True:
        rows = Checkpoint.objects.filter(id__gt=beyond).exclude(key=now).order_by("id")
        found = list(rows.values_list("id", "run_id", "seq")[:page])
        for id, run, seq in found:
            if at_most is not None and looked >= at_most:
                break
            looked += 1
            kept = tiers.row(run, seq)
            assert kept is not None
            _one(kept, told)
            if after_row is not None:
                after_row(id)
        else:
            if len(found) == page:
                beyond = found[-1][0]
                continue
        told.left = _left(now)
        _note(told, now)
        return told


def _field_key(row: FieldKey, told: Rotated) -> None:
    try:
        done = keeping.rewrapped(row.workspace_id, row.key, tokens.rewrap(row), keys.current())
    except Undecryptable as error:
        told.missing[error.facts["key"]] += 1
    except Unreadable as error:
        told.unreadable.append(f"the field key of workspace {row.workspace_id}: {error}")
    else:
        told.count(row.workspace_id, done)


def _secrets(model: type[Dependency] | type[NoticeTarget], column: str) -> list[tuple[UUID, UUID, str]]:
    """Id, workspace and text of the sealed secrets that another key sealed."""
    rows = model._default_manager.exclude(**{column: ""}).values_list("pk", "workspace_id", column)
    return [row for row in rows if secret_text.key_of(row[2]) != keys.current()]


def _secret(
    model: type[Dependency] | type[NoticeTarget],
    column: str,
    id: UUID,
    workspace: UUID,
    sealed: str,
    told: Rotated,
) -> None:
    table = model._meta.db_table
    place = f"{table}|{id}|{column}"
    try:
        fresh = secret_text.seal(secret_text.unseal(sealed, place), place)
    except Undecryptable as error:
        if "key" in error.facts:
            told.missing[error.facts["key"]] += 1
        else:
            told.unreadable.append(str(error))
    else:
        told.count(workspace, keeping.secret(table, column, id, sealed, fresh))


def _note(told: Rotated, now: str) -> None:
    """One line in the chain of each workspace of which something is sealed anew."""
    for workspace, n in told.by_workspace.items():
        data = {"key": now, "sealed": n, "missing": sorted(told.missing)}
        record.note(workspace, EventKind.KEYS_ROTATED, actor=None, data=data)


def _one(kept: tiers.Kept, told: Rotated) -> None:
    try:
        blob = tiers.fetch(kept)
        if codec.head(blob, run=kept.run, seq=kept.seq).key == keys.current():
            told.done += keeping.named(kept.id, kept.digest, keys.current())
            return
        fresh = codec.resealed(blob, workspace=kept.workspace, run=kept.run, seq=kept.seq)
        _keep(kept, fresh, told)
    except Undecryptable as error:
        told.missing[error.facts["key"]] += 1
    except (Unreadable, archive.Away) as error:
        told.unreadable.append(f"checkpoint {kept.seq} of run {kept.run}: {error}")


def _keep(kept: tiers.Kept, fresh: bytes, told: Rotated) -> None:
    address = ""
    if kept.address:
        # The new bytes stand beside the old ones until the row names them.
        address = archive.address_of(kept.workspace, kept.run, kept.seq, tiers.digest(fresh))
        archive.put(address, fresh)
    done = keeping.resealed(kept.id, kept.digest, fresh, keys.current(), address)
    told.count(kept.workspace, done)
    if done:
        tiers.memory.drop(kept.digest)
    if kept.address:
        archive.drop(kept.address if done else address)


def _left(now: str) -> dict[str, int]:
    counts: Counter[str] = Counter(Checkpoint.objects.exclude(key=now).values_list("key", flat=True).iterator())
    counts.update(FieldKey.objects.exclude(key=now).values_list("key", flat=True))
    for model, column in SECRETS:
        counts.update(secret_text.key_of(sealed) for _, _, sealed in _secrets(model, column))
    return dict(counts)
