"""Every reason code that a decision or a waiting run can carry, with the four lines of the gate.

The record keeps code and facts; the reader's language is chosen when the lines are made. Placeholders are the
decision's facts and ``people`` (who may act, named by the screen). Tone and words: calm, present, no blame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from recovery.engine.reason_lines import (
    CHECKS_GO_ON as _CHECKS_GO_ON,
)
from recovery.engine.reason_lines import (
    NOBODY_NEEDS as _NOBODY_NEEDS,
)
from recovery.engine.reason_lines import (
    NOBODY_SPEEDS as _NOBODY_SPEEDS,
)
from recovery.engine.reason_lines import (
    NOTHING_SENT as _NOTHING_SENT,
)
from recovery.engine.reason_lines import (
    PEOPLE as _PEOPLE,
)
from recovery.engine.reason_lines import (
    PROOF as _PROOF,
)
from recovery.engine.reason_lines import (
    RUN_EXPIRES as _RUN_EXPIRES,
)
from recovery.engine.reason_lines import (
    SHOWN_OR_DECIDED as _SHOWN_OR_DECIDED,
)
from recovery.engine.reason_lines import (
    TIMES,
    Gate,
    Reason,
    Turn,
)
from recovery.engine.reason_lines import (
    ended as _ended,
)
from recovery.engine.reason_lines import (
    own as _own,
)
from recovery.engine.reason_lines import (
    person as _person,
)
from recovery.engine.reasons_of_runs import RUNS

_R, _D, _P, _N = Turn.RECOURSE, Turn.DEPENDENCY, Turn.PERSON, Turn.NOBODY

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
    **RUNS,
}
"""Every code, with its four lines."""

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
