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
        "pausing": _p(_("Pausing"), "moving", "soft", "pause"),
        "paused": _p(_("Paused"), "person", "solid", "pause-circle"),
        "quarantined": _p(_("Quarantined"), "bad", "solid", "lock-closed"),
        "compensating": _p(_("Being mended"), "repair", "soft", "wrench-screwdriver"),
        "cancelling": _p(_("Cancelling"), "moving", "soft", "stop"),
        "completed": _p(_("Completed"), "ok", "plain", "check-circle"),
        "completed_unresolved": _p(_("Ended, not all settled"), "person", "plain", "exclamation-circle"),
        "failed": _p(_("Failed"), "bad", "plain", "x-circle"),
        "cancelled": _p(pgettext_lazy("run", "Cancelled"), "quiet", "plain", "no-symbol"),
        "compensated": _p(pgettext_lazy("run", "Mended"), "repair", "plain", "wrench-screwdriver"),
        "expired": _p(pgettext_lazy("run", "Expired"), "quiet", "plain", "calendar-days"),
        "aborted": _p(_("Ended by force"), "bad", "plain", "bolt"),
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
        "child": _p(_("Waiting: another run"), "quiet", "soft", "link"),
        "person": _p(_("Waiting: a person"), "person", "solid", "user"),
        "version_missing": _p(_("Waiting: a worker that knows its version"), "quiet", "soft", "puzzle-piece"),
    },
    "effect": {
        "planned": _p(_("Planned"), "repair", "soft", "clipboard-document-list"),
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
        "compensated": _p(_("Happened, mended since"), "repair", "plain", "wrench-screwdriver"),
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
        "compensation_incomplete": _p(_("Mended in part"), "repair", "solid", "wrench-screwdriver"),
        "callback_aside": _p(_("A message matches nothing"), "person", "solid", "inbox-arrow-down"),
        "not_sending": _p(_("Nothing is sent"), "person", "solid", "signal-slash"),
        "drain_stopped": _p(_("The backlog waits for a person"), "person", "solid", "queue-list"),
        "break_glass": _p(_("Confirm a send without signatures"), "bad", "solid", "bolt"),
        "history_alarm": _p(_("The record changed outside"), "bad", "solid", "shield-exclamation"),
    },
    "attempt": {
        "committed": _p(_("Recorded, being sent"), "moving", "soft", "paper-airplane"),
        "claimed": _p(_("Being sent"), "moving", "soft", "paper-airplane"),
        "answered": _p(_("Answered"), "ok", "plain", "check-circle"),
        "lost": _p(_("No answer"), "unknown", "dashed", "question-mark-circle"),
        "not_sent": _p(_("Not sent"), "quiet", "plain", "minus-circle"),
        "late": _p(_("Answered late"), "quiet", "plain", "clock"),
    },
    "plan": {
        "draft": _p(_("Plan made, not begun"), "repair", "soft", "clipboard-document-list"),
        "running": _p(_("Being mended"), "repair", "soft", "wrench-screwdriver"),
        "compensated": _p(pgettext_lazy("plan", "Mended"), "repair", "plain", "check-circle"),
        "incomplete": _p(_("Mended in part"), "repair", "solid", "exclamation-circle"),
        "failed": _p(_("Not mended"), "bad", "solid", "x-circle"),
        "ended": _p(_("Closed, what stays is accepted"), "quiet", "plain", "minus-circle"),
    },
    "drain": {
        "checking": _p(_("Checking what is unknown first"), "moving", "soft", "magnifying-glass"),
        "dropping": _p(_("Dropping what has expired"), "moving", "soft", "calendar-days"),
        "canary": _p(_("A few go first"), "moving", "soft", "beaker"),
        "go_ahead": _p(_("Waits for a go-ahead"), "person", "solid", "hand-raised"),
        "ramping": _p(_("Sending, slowly more"), "moving", "soft", "arrow-trending-up"),
        "steady": _p(_("Sending at the safe rate"), "moving", "soft", "forward"),
        "drained": _p(_("Nothing is left"), "ok", "plain", "check-circle"),
        "held": _p(_("Held"), "person", "solid", "pause-circle"),
        "stopped": _p(_("Stopped"), "quiet", "plain", "stop"),
    },
    "breaker": {
        "closed": _p(_("It is called"), "ok", "plain", "check-circle"),
        "open": _p(_("It is not called"), "bad", "solid", "signal-slash"),
        "half_open": _p(_("One call tries"), "moving", "soft", "signal"),
    },
    "call": {
        "ready": _p(_("To be asked"), "quiet", "soft", "queue-list"),
        "committed": _p(_("Being asked"), "moving", "soft", "paper-airplane"),
        "answered": _p(_("Answered"), "ok", "plain", "check-circle"),
        "lost": _p(_("No answer"), "quiet", "plain", "question-mark-circle"),
        "refused": _p(_("Refused"), "bad", "plain", "hand-raised"),
        "not_sent": _p(_("Not sent"), "quiet", "plain", "minus-circle"),
    },
    "callback": {
        "matched": _p(_("Belongs to an effect"), "ok", "plain", "check-circle"),
        "aside": _p(_("Matches nothing"), "person", "solid", "inbox-arrow-down"),
        "dismissed": _p(_("Put away"), "quiet", "plain", "archive-box"),
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
