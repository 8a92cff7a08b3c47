"""Reasons of runs: what they wait for when it is not an effect, and what mends them. Read as ``reasons.REASONS``."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from recovery.engine.reason_lines import (
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

_R, _D, _P, _N = Turn.RECOURSE, Turn.DEPENDENCY, Turn.PERSON, Turn.NOBODY

RUNS: Final[dict[str, Reason]] = {
    # Compensation: of the original, of the item, of the runs
    "mended": _ended(_("It happened, and this mended it: {by}.")),
    "mending_in_doubt": _person(
        _("a decision whether it still stands; what mended it is in doubt: {by}"),
        _("a person decides"),
        _("Nothing is sent."),
        False,
    ),
    "changed_by_others": _ended(
        _("Not touched: {what} was changed by somebody else (now {now}, we knew {knew}). Read it again.")
    ),
    "original_moved": _ended(_("Not touched: {what} does not stand any more as the plan knew it.")),
    "original_unanswered": _own(
        _("an answer about {what}, before it is mended"),
        _("its authority shows it"),
        _("Nothing is sent before. Recourse asks again."),
        True,
    ),
    "verifying": _own(
        _("{dependency} to show what was done: {what}"),
        _("{dependency} shows it"),
        _("What comes next waits. Recourse asks again."),
        True,
    ),
    "compensating": _own(
        _("its plan to mend what happened: {of} in all"),
        _("all of it is mended, or people accept what stays"),
        _("What did not work waits for a person."),
    ),
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
    "resumed": _own(
        _("the checks; the pause was lifted"),
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
