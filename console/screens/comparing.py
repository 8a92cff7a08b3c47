"""Fact by fact: what we meant, what we sent, what the other side has, and how much that proves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console import when
from console.screens.saying import clock
from runs import queries
from runs.models import Effect, Evidence
from runs.states import Claim, Strength

FACTS: Final = {
    "amount": gettext_lazy("amount"),
    "charge": gettext_lazy("charge"),
    "made at": gettext_lazy("made at"),
    "our reference": gettext_lazy("our reference"),
    "others like it": gettext_lazy("others like it"),
}


@dataclass(frozen=True)
class Row:
    """One compared fact. ``same``: "same", "differs", "unclear", or empty where nothing is compared."""

    name: str
    meant: str
    sent: str
    theirs: str
    same: str
    note: str


def compared(evidence: Evidence) -> list[Row]:
    """The rows of a check: what we meant, what we sent, what they have."""
    return list(_rows(evidence.facts))


def _rows(facts: Sequence[dict[str, Any]]) -> Iterator[Row]:
    for fact in facts:
        name, same = fact["name"], fact["same"]
        word = {True: "same", False: "differs"}.get(same, "unclear")
        note, theirs = "", _plain(fact["theirs"])
        meant, sent = fact["meant"] or "-", _plain(fact["sent"]) or "-"
        if name == "others like it":
            count = int(fact["theirs"] or 0)
            theirs = ngettext("{n} more", "{n} more", count).format(n=count) if count else _("none")
            word = ""
        elif name == "made at":
            sent = clock(fact["sent"]) or "-"
            note = _after(fact["sent"], fact["theirs"])
            theirs = clock(_moment(theirs)) or theirs
        yield Row(str(FACTS.get(name, name)), meant, sent, theirs or _("not given"), word, note)


def _moment(text: str | None) -> datetime | None:
    """The instant that their text names; None where it names none: then their text is shown as it is."""
    try:
        return queries.moment(text or "")
    except ValueError:
        return None


def _after(sent: str | None, theirs: str | None) -> str:
    ours, made = _moment(sent), _moment(theirs)
    if ours is None or made is None:
        return ""
    seconds = (made - ours).total_seconds()
    span = when.span(seconds)
    return (_("{span} after sending") if seconds >= 0 else _("{span} before sending")).format(span=span)


def _plain(text: str | None) -> str:
    """A list of values as a reader would write it: "8400 EUR" for ``[8400,"EUR"]``."""
    if text and text.startswith("["):
        try:
            values = json.loads(text)
        except ValueError:
            return text  # not a list that we wrote down: their own word
        if all(isinstance(value, str | int) for value in values):
            return " ".join(map(str, values))
    return text or ""


def agreement(effect: Effect, check: Evidence) -> str:
    """How much a check says, in one paragraph; which of the four words it is is never left open."""
    dependency = effect.dependency.name
    if check.strength == Strength.PROVES:
        return _("Proves it by our reference.")
    if check.strength == Strength.CONTRADICTS:
        return _("Contradicts: {dependency} has our reference with other content. A person decides.").format(
            dependency=dependency
        )
    if check.claim == Claim.NOT_FOUND:
        return _("Not found is not proof by itself: it counts when two checks find nothing after the promised lag.")
    can = [fact for fact in check.facts if fact["same"] is not None]
    agree = sum(1 for fact in can if fact["same"])
    line = _(
        "Agrees in {agree} of {all} facts that can be compared. This is not proof: {dependency} does not "
        "return our reference."
    ).format(agree=agree, all=len(can), dependency=dependency)
    return line if effect.settled else f"{line} {_('A person decides.')}"
