"""What a restore of the record means for one workspace: its states and legal moves, beside ``runs/states.py``."""

from __future__ import annotations

from typing import Final

from django.db.models import TextChoices


class RestoreState(TextChoices):
    """Until it is released nothing is sent for the workspace."""

    FROZEN = "frozen"  # entered when a restore is noticed; left when the sweep has read what had happened
    SWEPT = "swept"  # entered by the sweep, or when a request was refused; left when a person asks
    ASKED = "asked"  # a person asked to let sending go on; left by a second person, either way
    RELEASED = "released"  # ended: a second person let it


MOVES: Final = frozenset(
    {
        ("", str(RestoreState.FROZEN)),
        (str(RestoreState.FROZEN), str(RestoreState.SWEPT)),
        (str(RestoreState.SWEPT), str(RestoreState.ASKED)),
        (str(RestoreState.ASKED), str(RestoreState.SWEPT)),
        (str(RestoreState.ASKED), str(RestoreState.RELEASED)),
    }
)
