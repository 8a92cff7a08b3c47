"""What is kept outside the database, so that an older one put in its place is noticed: one small file.

The file must lie where a backup of the database does not reach, and where a restore of it does not write. The sweep
writes it, whole or not at all, after the database has the same mark: the file never knows more than the database did.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings


class MarkerUnreadable(Exception):
    """The file is there and cannot be understood; nobody can say what was last seen."""


@dataclass(frozen=True, slots=True)
class Marker:
    """What was last seen.

    ``epoch``, ``mark``: of the epoch's row. ``event``: id of the last line of history, ``at`` its time. ``heads``: by
    workspace, sequence and hash of its own chain (the sealed log of the history will add its last checkpoint).
    """

    epoch: int
    mark: int
    event: int
    at: str | None
    system: str
    timeline: int
    heads: dict[str, tuple[int, str]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As an event's data and the file keep it."""
        return {"v": 1, **asdict(self)}


def place() -> Path | None:
    """Where it is kept (``RECOURSE_OUTSIDE``); None: nowhere, and only the cluster's own words are compared."""
    return settings.RECOURSE_OUTSIDE


def read(path: Path) -> Marker | None:
    """What was last seen; None where nothing was ever kept. Raises MarkerUnreadable."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MarkerUnreadable(f"{path}: {error.strerror}") from error
    try:
        kept = json.loads(text)
        heads = {str(ws): (int(seq), str(hash)) for ws, (seq, hash) in kept["heads"].items()}
        return Marker(
            epoch=int(kept["epoch"]),
            mark=int(kept["mark"]),
            event=int(kept["event"]),
            at=kept["at"],
            system=str(kept["system"]),
            timeline=int(kept["timeline"]),
            heads=heads,
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise MarkerUnreadable(f"{path}: {error}") from error


def write(path: Path, marker: Marker) -> None:
    """Keep ``marker``, whole or not at all, and on the disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(marker.as_json(), file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
