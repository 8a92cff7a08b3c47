"""Every reason code that a decision or a waiting run can carry, with the four lines of the gate.

The record keeps code and facts; the reader's language is chosen when the lines are made. Placeholders are the
decision's facts and ``people`` (who may act, named by the screen). Tone and words: calm, present, no blame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
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

_NOBODY_NEEDS: Final = _("Nobody needs to; Recourse does it.")
_NOBODY_SPEEDS: Final = _("Nobody can make it faster.")
_PEOPLE: Final = _("{people}")
_ENDED: Final = _("Nothing.")
_NOTHING_SENT: Final = _("Nothing is sent again.")
_PROOF: Final = _("proof whether this happened at {dependency}: {what}")
_SHOWN_OR_DECIDED: Final = _("{dependency} shows it, or a person decides")
_CHECKS_GO_ON: Final = _("Nothing is sent again. Recourse checks at {at}.")
_RUN_EXPIRES: Final = _("The run expires {run_deadline}.")

_R, _D, _P, _N = Turn.RECOURSE, Turn.DEPENDENCY, Turn.PERSON, Turn.NOBODY


def _own(waiting_for: Any, ends_when: Any, if_nobody_acts: Any, expires: bool = False) -> Reason:
    return Reason(_R, waiting_for, ends_when, _NOBODY_NEEDS, if_nobody_acts, expires)


def _person(waiting_for: Any, ends_when: Any, if_nobody_acts: Any, expires: bool = True) -> Reason:
    return Reason(_P, waiting_for, ends_when, _PEOPLE, if_nobody_acts, expires)


def _ended(says: Any) -> Reason:
    return Reason(_N, _ENDED, says, _ENDED, _("Nothing happens."))


REASONS: Final[dict[str, Reason]] = {
    # Before and at the send
    "send_now": _own(_("its turn to be sent"), _("it is sent"), _("Recourse sends it now.")),
    "pause": _own(_("a pause after the last try"), _("the pause ends at {at}"), _("Recourse sends it at {at}.")),
    "not_sent": _own(
        _("{dependency} to be reachable; nothing has left yet"),
        _("a connection is made"),
        _("Recourse sends it at {at}, with the same key."),
    ),
    "never_claimed": _own(
        _("another worker; the last one ended before anything left"),
        _("another worker sends it"),
        _("Recourse sends it at {at}."),
    ),
    "not_taken": _own(
        _("{dependency} to take it; the last try was turned away before anything was done"),
        _("{dependency} takes it"),
        _("Recourse sends it at {at}, with the same key."),
    ),
    "overloaded": _own(
        _("{dependency} to have room; it asked to come later"),
        _("{dependency} takes it"),
        _("Recourse sends it at {at}, with the same key."),
    ),
    "planned": Reason(
        _R,
        _("its turn in the plan: {what}"),
        _("what comes before it is done"),
        _NOBODY_NEEDS,
        _("It is asked for when its turn comes, and expires at {deadline}."),
    ),
    "contract_missing": _own(
        _("a worker that knows {operation} version {version}"),
        _("such a worker starts"),
        _("Nothing is sent. Recourse looks again at {at}."),
        True,
    ),
    "run_paused": Reason(
        _P,
        _("the run to go on; a person paused it"),
        _("a person lets the run go on"),
        _PEOPLE,
        _("It waits unsent and expires at {deadline}."),
    ),
    "dependency_held": Reason(
        _D,
        _("sending to {dependency} to be possible again"),
        _("sending to {dependency} is released"),
        _PEOPLE,
        _("It waits unsent and expires at {deadline}."),
    ),
    "budget_used_up": _own(
        _("calls that are no repeats; too many of the last ones to {dependency} were"),
        _("there is room for repeats again"),
        _("Recourse looks again at {at}. It waits unsent and expires at {deadline}."),
    ),
    "signatures_needed": _person(
        _("signatures of {group}: {what}"),
        _("enough people have signed, or one rejects it"),
        _("Nothing is sent. The request ends at {at}."),
    ),
    "approval_expired": _person(
        _("new signatures; the earlier ones ran out"),
        _("it is asked for again and signed"),
        _("Nothing is sent. It expires at {at}."),
    ),
    "in_flight": Reason(
        _D,
        _("{dependency} to answer: {what}"),
        _("the answer comes, or the time for it ends at {at}"),
        _NOBODY_SPEEDS,
        _("At {at} Recourse finds out how it ended."),
    ),
    # Nobody knows
    "check_first": _own(
        _PROOF,
        _SHOWN_OR_DECIDED,
        _("Recourse asks {dependency} before anything else is sent."),
    ),
    "check_unanswered": _own(_PROOF, _("{dependency} answers a check, or a person decides"), _CHECKS_GO_ON, True),
    "not_found_yet": _own(
        _PROOF,
        _("{dependency} answers two checks after its lag of {lag_s} s, or a person decides"),
        _CHECKS_GO_ON,
        True,
    ),
    "not_found_once": _own(
        _("a second look at {dependency}: {what}"),
        _("a second check finds it or does not, or a person decides"),
        _CHECKS_GO_ON,
        True,
    ),
    "still_pending": Reason(
        _D,
        _("{dependency} to finish it: {what}"),
        _("{dependency} says how it ended, or a person decides"),
        _NOBODY_SPEEDS,
        _CHECKS_GO_ON,
        True,
    ),
    "pause_same_key": _own(
        _PROOF,
        _("{dependency} answers the same key, or a person decides"),
        _("Recourse sends it again with the same key at {at}; that cannot make it happen twice."),
    ),
    "run_stopped": _person(
        _("an answer whether its run goes on: {what}"),
        _("a person lets the run go on, or does not"),
        _NOTHING_SENT,
    ),
    "same_key_again": _own(
        _PROOF,
        _("{dependency} answers the same key"),
        _("Recourse sends it again with the same key now; that cannot make it happen twice."),
    ),
    "cancelling_checks": _own(
        _PROOF,
        _("{dependency} answers two checks, {apart_s} s apart, or a person decides"),
        _("Recourse only checks now. It does not send again while cancelling. Next check at {at}."),
    ),
    "checks_go_on": _person(_PROOF, _SHOWN_OR_DECIDED, _CHECKS_GO_ON),
    "agrees_not_proof": _person(
        _("a decision: {dependency} shows facts that agree, which is no proof: {what}"),
        _("a person decides, or {dependency} shows our reference"),
        _CHECKS_GO_ON,
    ),
    "no_way_to_check": _person(
        _("word from a person whether this happened: {what}"),
        _("a person decides; {dependency} offers no way to check"),
        _NOTHING_SENT,
    ),
    "window_closed": _person(
        _PROOF,
        _("a person decides; the same-key window closed at {closed}"),
        _("Recourse will never send this again by itself."),
    ),
    "key_not_compared": _person(
        _PROOF,
        _("a person decides; {dependency} does not compare what is sent under one key"),
        _NOTHING_SENT,
    ),
    "promise_ended": _person(
        _PROOF, _("a person decides; what {dependency} promised about keys has ended"), _NOTHING_SENT
    ),
    "approval_over": _person(_PROOF, _("a person decides; the signatures do not cover another send"), _NOTHING_SENT),
    "own_moves_used_up": _person(_PROOF, _("a person decides; Recourse has used up its {tries} tries"), _NOTHING_SENT),
    "cancelling_reads_only": _person(
        _PROOF,
        _("a person decides"),
        _("Recourse does not send again while cancelling, and {dependency} offers nothing to read."),
    ),
    "key_mismatch": _person(
        _("a person to look: {dependency} knows the key {key} with other content"),
        _("a person decides"),
        _("Nothing is sent. Nobody picks a new key by hand."),
    ),
    "evidence_disagrees": _person(
        _("a decision: the evidence disagrees: {what}"),
        _("a person decides on the evidence"),
        _NOTHING_SENT,
    ),
    "taken": Reason(
        _D,
        _("{dependency} to say how it ended; it took it: {what}"),
        _("{dependency} says how it ended"),
        _NOBODY_SPEEDS,
        _("Recourse looks again at {at}."),
    ),
    "taken_and_silent": _person(
        _("word from {dependency}, which took it and has been silent: {what}"),
        _SHOWN_OR_DECIDED,
        _NOTHING_SENT,
    ),
    # Settled
    "settled": _ended(_("It is settled.")),
    "answered": _ended(_("Settled by the answer of {dependency}.")),
    "answered_in_part": _ended(_("Happened in part, as {dependency} answered.")),
    "refused_by_dependency": _ended(_("Refused by {dependency}.")),
    "not_authorised": _ended(_("Refused by {dependency}: not authorised.")),
    "request_invalid": _ended(_("Refused by {dependency}: it could not read the request.")),
    "state_moved_on": _ended(_("Refused by {dependency}: its state is not the one that this was asked for.")),
    "proved": _ended(_("Settled by the own record of {dependency} at {seen}.")),
    "refusal_proved": _ended(_("Refused, by the own record of {dependency} at {seen}.")),
    "proved_in_part": _ended(_("Happened in part, by the own record of {dependency} at {seen}.")),
    "not_found_twice": _ended(
        _("Did not happen: not found {first} and {second}, after the promised lag of {lag_s} s.")
    ),
    "turned_away": _ended(_("Did not happen: {dependency} turned it away before anything was done.")),
    "refused_meanwhile": _ended(
        _("Did not happen: nothing is sent to {dependency} at the moment, and new work is refused meanwhile.")
    ),
    "tries_used_up": _ended(_("Did not happen: nothing was taken in {tries} tries.")),
    "deadline_passed": _ended(_("Expired unsent.")),
    "cancelled_before_sending": _ended(_("Cancelled before sending.")),
    # Runs: made by the reader from the run's own columns, or stored by advance
    "not_started": _own(_("a worker to start it"), _("a worker takes it"), _("Recourse starts it."), True),
    "running": _own(_("nothing; it is being worked on"), _("the step is done"), _("Recourse goes on."), True),
    "timer": _own(_("a time"), _("it is {at}"), _("Recourse goes on at {at}."), True),
    "computing": _own(
        _("the answer of a computation"),
        _("it is recorded"),
        _("Recourse looks again when its limit is over."),
    ),
    "event": Reason(
        _D,
        _("the event {event}"),
        _("{event} arrives"),
        _("Whoever sends the event."),
        _("Nothing happens."),
        True,
    ),
    "child": _own(
        _("the run it started: {title}"),
        _("that run ends"),
        _("It goes on with how that run ended."),
        True,
    ),
    "child_stands": _person(
        _("the run it started, which stands still: {title}"),
        _("a person looks after that run, and it ends"),
        _("Nothing happens."),
    ),
    "pausing": _own(
        _("what is in flight to settle; then it is paused"),
        _("nothing of it is in flight"),
        _("It stays paused until a person lets it go on."),
        True,
    ),
    "paused": _person(
        _("a person to let it go on"),
        _("a person lets it go on, or cancels it"),
        _("Nothing is sent."),
    ),
    "quarantined": _person(
        _("a person to look at what stopped it"),
        _("a person takes it out of quarantine or cancels it"),
        _("Nothing happens."),
        False,
    ),
    "checks_ask": _person(
        _("an answer whether it goes on; the nine checks found something"),
        _("a person lets it go on, or does not"),
        _("Nothing is sent."),
    ),
    "record_restored": _person(
        _("two people to let things be sent again; the record was restored from a backup of {backup_at}"),
        _("one person asks, once what had happened was read, and another one lets it"),
        _("Nothing is sent."),
        False,
    ),
    "after_restore": _own(
        _("word whether this was sent between {since} and {until}, which the restored record does not know"),
        _("it is found, or not found twice"),
        _("Recourse looks again."),
        True,
    ),
    "recovered": _ended(_("It had happened before the record was restored; found {since}.")),
    "released": _own(
        _("the checks; {by} took it out of quarantine"),
        _("the checks pass"),
        _("Recourse makes the checks and goes on."),
        True,
    ),
    "class_asks": _person(
        _("an answer whether it goes on; {operation} ended as {failure}"),
        _("a person lets it go on, or does not"),
        _("Nothing is sent."),
    ),
    "authority_silent": _own(
        _("{dependencies} to say whether earlier results are still valid"),
        _("it answers"),
        _("Recourse asks again at {at}."),
        True,
    ),
    "unknown_run_type": _own(
        _("a worker that knows {type} version {version}"),
        _("such a worker starts"),
        _("Recourse looks again each minute."),
        True,
    ),
    "from_future": _own(
        _("a newer worker; this was written by a newer version"),
        _("such a worker starts"),
        _("Recourse looks again each minute."),
        True,
    ),
    "undecryptable": _own(
        _("the sealing key {key}, which opens its checkpoint"),
        _("the key is in RECOURSE_SEAL_KEYS again"),
        _("Recourse looks again each minute. Nothing is lost while the key exists."),
        True,
    ),
    "archive_away": _own(
        _("the archive, which holds its checkpoint"),
        _("the archive answers"),
        _("Recourse looks again each minute."),
        True,
    ),
}

OF_RUNS: Final = frozenset(
    {
        "not_started",
        "running",
        "timer",
        "event",
        "computing",
        "child",
        "child_stands",
        "pausing",
        "paused",
        "quarantined",
        "undecryptable",
        "archive_away",
    }
)
"""Codes that no decision carries: a run's state and columns, or what its checkpoint was refused with."""


def gate(decision: Mapping[str, Any], *, people: str, show_time: Callable[[datetime], str]) -> Gate:
    """The four lines of a stored decision (``Decision.as_json()``) or of a stored reason (``code`` and
    ``facts``).

    ``people``: who may act, as text. ``show_time``: a time as the reader sees it. Raises KeyError for a code
    or a fact that nobody declared: a test holds that none is missing.
    """
    reason = REASONS[decision["code"] if "code" in decision else decision["reason"]]
    facts: dict[str, Any] = {
        name: show_time(datetime.fromisoformat(value)) if name in TIMES else value
        for name, value in decision.get("facts", {}).items()
    }
    facts["people"] = people
    last = str(reason.if_nobody_acts).format(**facts)
    if reason.expires and "run_deadline" in facts:
        last = f"{last} {str(_RUN_EXPIRES).format(**facts)}"
    return Gate(
        reason.turn,
        str(reason.waiting_for).format(**facts),
        str(reason.ends_when).format(**facts),
        str(reason.who_can).format(**facts),
        last,
    )
