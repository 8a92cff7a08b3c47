"""The History and Checkpoints tabs: every line as it is stored, and whether the chain holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console.pills import PILLS
from console.preview import Link, Result
from runs.history import chain
from runs.models import Checkpoint, Event, Run
from runs.states import RunState


@dataclass(frozen=True, slots=True)
class Line:
    """One event: who, on whose behalf, and what moved from which state to which."""

    event: Event

    @property
    def who(self) -> str:
        return self.event.actor.name if self.event.actor is not None else _("Recourse")

    @property
    def behalf(self) -> str:
        return str(self.event.body.get("behalf") or "")

    @property
    def reason(self) -> str:
        return str(self.event.body.get("reason") or "")

    @property
    def moves(self) -> list[tuple[str, str, str]]:
        """Thing, state before, state after; "-" where there was nothing."""
        return [
            (step["t"], _words(step["t"], step["from"]) or "-", _words(step["t"], step["to"]))
            for step in self.event.body["moves"]
        ]


def _words(thing: str, state: str) -> str:
    if (thing, state) == ("run", RunState.WAITING):
        return _("Waiting")
    look = PILLS.get(thing, {}).get(state)
    return look.text() or state if look is not None else state


WRITTEN: Final[dict[str, str | Promise]] = {
    "accepted": gettext_lazy("when the run was accepted"),
    "before_effect": gettext_lazy("before an effect was sent"),
    "effects_met": gettext_lazy("when another run's effect was met"),
    "wait": gettext_lazy("before it waits"),
    "hand_over": gettext_lazy("before another worker takes it"),
    "end": gettext_lazy("at its end"),
}
"""Why a checkpoint was written, by the engine's word for it."""


def checkpoints(rows: Iterable[Checkpoint]) -> list[tuple[Checkpoint, str]]:
    """Each checkpoint and why it was written."""
    return [(one, str(WRITTEN.get(one.why, one.why))) for one in rows]


def lines(events: Iterable[Event]) -> list[Line]:
    """The lines of a page, in sequence."""
    return [Line(event) for event in events]


def verified(run: Run) -> Result:
    """Read the whole chain and say what holds. Queries in pages of 2,000 lines."""
    report, subject = chain.verify_run(run), Link(f"/runs/{run.pk}/?tab=history", run.title)
    if report.ok:
        n = report.good
        said = ngettext("{n} event, no gaps.", "{n} events, no gaps.", n).format(n=n)
        return Result(f"{said} " + _("Each matches its hash and names the one before."), subject=subject)
    said = _("The chain does not hold: {why}.").format(why=report.why)
    good = ngettext("{n} event before it is good.", "{n} events before it are good.", report.good)
    rest = _("Nothing after it can be relied on.")
    return Result(said, lines=[good.format(n=report.good), rest], tone="bad", subject=subject)
