"""What a reason is, and the phrases that many of them share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.utils.translation import gettext_lazy as _


class Turn(StrEnum):
    """Whose turn it is."""

    RECOURSE = "recourse"
    DEPENDENCY = "dependency"
    PERSON = "person"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Reason:
    """The four lines as lazily translated templates. ``expires``: the last line also tells the run's
    deadline."""

    turn: Turn
    waiting_for: Any
    ends_when: Any
    who_can: Any
    if_nobody_acts: Any
    expires: bool = False


@dataclass(frozen=True, slots=True)
class Gate:
    """The four lines in the active language."""

    turn: Turn
    waiting_for: str
    ends_when: str
    who_can: str
    if_nobody_acts: str


TIMES: Final = frozenset(
    {"at", "deadline", "run_deadline", "next_check", "closed", "seen", "first", "second"}
    | {"backup_at", "since", "until"}
)
"""Facts that are times in ISO 8601; the screen shows them in the reader's zone."""

NOBODY_NEEDS: Final = _("Nobody needs to; Recourse does it.")
NOBODY_SPEEDS: Final = _("Nobody can make it faster.")
PEOPLE: Final = _("{people}")
ENDED: Final = _("Nothing.")
NOTHING_SENT: Final = _("Nothing is sent again.")
PROOF: Final = _("proof whether this happened at {dependency}: {what}")
SHOWN_OR_DECIDED: Final = _("{dependency} shows it, or a person decides")
CHECKS_GO_ON: Final = _("Nothing is sent again. Recourse checks at {at}.")
RUN_EXPIRES: Final = _("The run expires {run_deadline}.")

_R, _D, _P, _N = Turn.RECOURSE, Turn.DEPENDENCY, Turn.PERSON, Turn.NOBODY


def own(waiting_for: Any, ends_when: Any, if_nobody_acts: Any, expires: bool = False) -> Reason:
    """Recourse does it by itself."""
    return Reason(_R, waiting_for, ends_when, NOBODY_NEEDS, if_nobody_acts, expires)


def person(waiting_for: Any, ends_when: Any, if_nobody_acts: Any, expires: bool = True) -> Reason:
    """A person has to act."""
    return Reason(_P, waiting_for, ends_when, PEOPLE, if_nobody_acts, expires)


def ended(says: Any) -> Reason:
    """It is over; nothing happens."""
    return Reason(_N, ENDED, says, ENDED, _("Nothing happens."))
