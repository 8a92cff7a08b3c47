"""How each state of the record looks and reads: word, tone, form, icon. Pure data beside ``runs/states.py``.

``tone`` is a colour token of ``static/css/tokens.css``. ``form`` carries what colour cannot: *plain* has
ended, *soft* is Recourse's or the other side's turn, *solid* a person's, *dashed* ends only by evidence.
A test walks ``runs/states.py`` and finds a pill for every state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

Tone = Literal["quiet", "moving", "ok", "person", "unknown", "bad", "repair"]
Form = Literal["plain", "soft", "solid", "dashed"]


@dataclass(frozen=True)
class Pill:
    """One look. ``words`` may name facts in braces; ``bare`` is what is said when a fact is not at hand."""

    words: str | Promise
    tone: Tone
    form: Form
    icon: str
    bare: str | Promise = ""

    def text(self, **facts: object) -> str:
        """The words with the facts filled in; ``bare`` when they need a fact that is missing or empty."""
        given = {name: value for name, value in facts.items() if value not in (None, "")}
        try:
            return str(self.words).format(**given)
        except KeyError:
            return str(self.bare)


def _p(words: Promise, tone: Tone, form: Form, icon: str, bare: Promise | str = "") -> Pill:
    return Pill(words, tone, form, icon, bare)


PILLS: Final[dict[str, dict[str, Pill]]] = {
    "run": {
        "accepted": _p(_("Accepted, not started"), "quiet", "soft", "inbox-arrow-down"),
        "running": _p(_("Running"), "moving", "soft", "play"),
        "quarantined": _p(_("Quarantined"), "bad", "solid", "lock-closed"),
        "cancelling": _p(_("Cancelling"), "moving", "soft", "stop"),
        "completed": _p(_("Completed"), "ok", "plain", "check-circle"),
        "completed_unresolved": _p(_("Ended, not all settled"), "person", "plain", "exclamation-circle"),
        "failed": _p(_("Failed"), "bad", "plain", "x-circle"),
        "cancelled": _p(pgettext_lazy("run", "Cancelled"), "quiet", "plain", "no-symbol"),
        "expired": _p(pgettext_lazy("run", "Expired"), "quiet", "plain", "calendar-days"),
    },
    "waiting": {
        "timer": _p(_("Waiting: until {until}"), "quiet", "soft", "clock", _("Waiting: a timer")),
        "event": _p(_("Waiting: {event}"), "quiet", "soft", "signal", _("Waiting: an event")),
        "in_flight": _p(_("Waiting: answer in flight"), "moving", "soft", "paper-airplane"),
        "approval": _p(
            _("Waiting: {signatures} signatures"),
            "person",
            "solid",
            "pencil-square",
            _("Waiting: signatures"),
        ),
        "unknown": _p(_("Waiting: outcome unknown"), "unknown", "dashed", "question-mark-circle"),
        "dependency": _p(
            _("Waiting: {dependency} not sending"),
            "quiet",
            "soft",
            "signal-slash",
            _("Waiting: a dependency"),
        ),
        "person": _p(_("Waiting: a person"), "person", "solid", "user"),
        "version_missing": _p(_("Waiting: a worker that knows its version"), "quiet", "soft", "puzzle-piece"),
    },
    "effect": {
        "awaiting_approval": _p(_("Signatures needed"), "person", "solid", "pencil-square"),
        "ready": _p(_("Ready to send"), "quiet", "soft", "queue-list"),
        "in_flight": _p(_("Sent, no answer yet"), "moving", "soft", "paper-airplane"),
        "accepted": _p(_("Taken, result to come"), "moving", "soft", "ellipsis-horizontal-circle"),
        "unknown": _p(_("Outcome unknown"), "unknown", "dashed", "question-mark-circle"),
        "partial": _p(_("Happened in part"), "unknown", "dashed", "chart-pie"),
        "disputed": _p(_("Evidence disagrees"), "unknown", "dashed", "scale"),
        "succeeded": _p(_("Happened"), "ok", "plain", "check-circle"),
        "rejected": _p(_("Refused by {dependency}"), "bad", "plain", "hand-raised", _("Refused by the other side")),
        "declined": _p(_("Not signed"), "quiet", "plain", "hand-thumb-down"),
        "not_applied": _p(_("Did not happen"), "quiet", "plain", "minus-circle"),
        "cancelled": _p(_("Cancelled before sending"), "quiet", "plain", "no-symbol"),
        "expired": _p(_("Expired unsent"), "quiet", "plain", "calendar-days"),
    },
    "approval": {
        "pending": _p(_("Signatures needed"), "person", "solid", "pencil-square"),
        "granted": _p(_("Signed, not used yet"), "ok", "soft", "shield-check"),
        "rejected": _p(pgettext_lazy("approval", "Rejected"), "bad", "plain", "hand-thumb-down"),
        "revoked": _p(pgettext_lazy("approval", "Withdrawn"), "quiet", "plain", "minus-circle"),
        "superseded": _p(
            _("Replaced by revision {revision}"),
            "quiet",
            "plain",
            "arrows-right-left",
            _("Replaced by a newer revision"),
        ),
        "consumed": _p(pgettext_lazy("approval", "Used"), "quiet", "plain", "check-badge"),
        "expired": _p(pgettext_lazy("approval", "Expired"), "quiet", "plain", "calendar-days"),
        "unsatisfiable": _p(_("Nobody can sign"), "bad", "solid", "exclamation-triangle"),
    },
    "review": {
        "outcome_unknown": _p(_("Outcome unknown"), "unknown", "dashed", "question-mark-circle"),
        "evidence_disagrees": _p(_("Evidence disagrees"), "unknown", "dashed", "scale"),
        "partial_outcome": _p(_("Happened in part"), "unknown", "dashed", "chart-pie"),
        "signatures_needed": _p(_("Signatures needed"), "person", "solid", "pencil-square"),
        "confirm_decision": _p(_("Confirm a decision"), "person", "solid", "users"),
        "resumption": _p(_("Go on or not"), "person", "solid", "play-pause"),
        "quarantined": _p(_("Quarantined"), "bad", "solid", "lock-closed"),
    },
    "attempt": {
        "committed": _p(_("Recorded, being sent"), "moving", "soft", "paper-airplane"),
        "claimed": _p(_("Being sent"), "moving", "soft", "paper-airplane"),
        "answered": _p(_("Answered"), "ok", "plain", "check-circle"),
        "lost": _p(_("No answer"), "unknown", "dashed", "question-mark-circle"),
        "not_sent": _p(_("Not sent"), "quiet", "plain", "minus-circle"),
        "late": _p(_("Answered late"), "quiet", "plain", "clock"),
    },
    "verdict": {
        "proposed": _p(_("Proposed, second person needed"), "person", "solid", "users"),
        "recorded": _p(pgettext_lazy("verdict", "Recorded"), "quiet", "plain", "check-circle"),
        "refused": _p(pgettext_lazy("verdict", "Not confirmed"), "quiet", "plain", "hand-thumb-down"),
    },
}

STRENGTHS: Final[dict[str, Pill]] = {
    "proves": _p(_("Proves it by our reference"), "ok", "plain", "check-badge"),
    "agrees": _p(_("Agrees, not proof"), "moving", "plain", "scale"),
    "word": _p(_("A person's word"), "person", "plain", "user"),
    "contradicts": _p(_("Contradicts"), "bad", "plain", "exclamation-triangle"),
    "none": _p(_("Says nothing"), "quiet", "plain", "minus-circle"),
}
"""How well evidence supports its claim, always in these words."""

TURNS: Final[dict[str, str | Promise]] = {
    "recourse": _("Recourse's turn"),
    "other": _("{dependency}'s turn"),
    "person": _("Needs a person"),
}
"""Whose turn it is, said beside the state of each open thing; an ended thing has none."""


def pill_for(thing: str, code: str, waiting_on: str = "") -> Pill:
    """The pill of ``thing`` ("run", "effect", ...) in state ``code``; a waiting run shows what it waits on.

    Raises KeyError for a state that has no pill: a new state needs its words first.
    """
    if thing == "strength":
        return STRENGTHS[code]
    if thing == "run" and code == "waiting":
        return PILLS["waiting"][waiting_on]
    return PILLS[thing][code]
