"""Refusals in words: the stable code of a refusal and its facts become one sentence in the reader's language.

The same codes go out as ``code`` in problem+json. Each sentence says what did not happen, why, and what now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

REFUSALS: Final[dict[str, str | Promise]] = {
    "stale_version": _("Nothing was done. {thing} changed while you were reading ({at}, {who}). Read it again."),
    "superseded": _(
        "Not signed. Revision {revision} replaced this while you were reading ({at}, {who}). "
        "Nothing was sent. Your reason is kept."
    ),
    "already_done": _("Already {what} at {at} by {who}. Nothing was done twice."),
    "own_request": _("You cannot sign: {what}. {names} can."),
    "not_in_group": _("You can see this but not {act}. {group} can: {names}."),
    "not_allowed": _("You can see this but not {act}. {group} can: {names}."),
    "approval_expired": _("Not sent. The signatures ran out at {at}. Ask again."),
    "outcome_unknown": _("Not {what}: {n} outcome is unknown. Settle it first."),
    "run_ended": _("Nothing was done. The run ended at {at}; an ended run stays ended."),
    "evidence_needed": _(
        "Not recorded. A decision needs at least one piece of evidence. Check with {dependency} or attach one."
    ),
    "key_mismatch": _(
        "Not sent. The key {key} was already used for other content. "
        "Nobody picks a new key by hand: open the difference."
    ),
    "from_future": _(
        "Not touched. This was written by a newer version ({version}). It waits for a worker that knows it."
    ),
    "no_quorum": _("Not saved. Nobody could meet this rule: it needs {needed}, and {may} may sign."),
    "record_away": _("Not saved. Recourse cannot reach its record. What you typed is kept on this page."),
    "undecryptable": _("Not done. A secret cannot be opened: its key is not in RECOURSE_SEAL_KEYS, or it was altered."),
    "illegal_move": _("Nothing was done. {thing} is not in a state that allows this. Read it again."),
    "changed_meanwhile": _("Nothing was done. {thing} changed at the same moment. Read it again."),
    "stale_owner": _("Nothing was done. Another worker owns this run now."),
    "no_permit": _("Not sent. {dependency} takes no more at the moment. It waits."),
    "same_person": _("Not confirmed. The second person must be another person: you decided this."),
    "already_signed": _("Already answered by you at {at}. Nothing was done twice."),
    "approval_ended": _("Nothing was done. This request ended at {at} and cannot be used."),
    "reason_needed": _("Not recorded. Say why: the reason is kept with the decision."),
    "already_settled": _("Nothing was done. The outcome was settled at {at}; there is nothing to decide."),
    "nothing_sealed": _("Nothing was shown. No sealed field is at {path}."),
    "archive_away": _("Not read. The archive that holds this does not answer. Try again later."),
    "unreadable": _("Not touched. A checkpoint of this run cannot be opened. An operator has to look at it."),
    "refused": _("Nothing was done. The record refused this."),
    "action_mismatch": _("Nothing was done. This form was already used for other content. Read the page again."),
    "action_in_flight": _("Not answered yet: the same action is being recorded. Pressing again is safe."),
    "not_found": _("Nothing here that you can see."),
    "too_late": _("Too late to {act}: it was sent at {sent_at}. What can be done now: plan a compensation."),
    "nothing_to_withdraw": _("Nothing was done. You have no signature on this request."),
    "not_renewable": _("Not asked again. Only a request that ran out, or that nobody can sign, is asked for again."),
    "not_pausable": _("Not paused. The run is {state}; it ends, is being mended, or stands still already."),
    "not_paused": _("Nothing was done. The run is {state}, not paused."),
    "not_closable": _("Not closed. The run is {state}; pause or cancel it first."),
    "nothing_proposed": _("Nothing was done. Nobody has proposed to end this run."),
    "nothing_to_confirm": _("Nothing was done. Nothing here waits for a second person."),
    "too_deep": _("Not started. Runs start runs only a few generations deep."),
    "decision_waiting": _("Not recorded. {who} decided this at {at}; a second person confirms or refuses that first."),
    "item_unknown": _("Not recorded. Each item needs a word; one that is unknown keeps the whole unknown."),
    "not_asked": _("Nothing was done. Nobody asks whether this run goes on; it is {state}. Read it again."),
    "not_quarantined": _("Nothing was done. This run is not in quarantine; it is {state}. Read it again."),
    "no_way": _("Not moved. Nothing leads from version {kept} to version {now} that works. Nothing was written."),
    "drills_forbidden": _("Not rehearsed. A drill breaks what these share, and they are no sandboxes: {names}."),
    "drill_running": _("Not rehearsed. {who} rehearses {name} since {at}; one drill at a time."),
    "unknown_drill": _("Not rehearsed. No drill is called {name}."),
    "claimed": _("Not claimed. {who} has had this since {at}. You can take it over."),
    "not_claimed": _("Nothing was done. You have not claimed this."),
    "share_invalid": _("Nothing was done. A share is at least 0.001 and at most 1."),
    "nothing_to_drain": _("Nothing was done. Nothing waits for {dependency}."),
    "frozen": _("Not sent. The record was restored; nothing is sent until two people let it."),
    "not_swept": _("Not done. After the restore it is still being read what had happened, or nobody asked yet."),
    "plan_at_work": _("Nothing was done. This plan is {state}; it can be changed when nothing of it works."),
    "nothing_to_mend": _("No plan was made. Nothing happened in this run that could be mended."),
    "run_goes_on": _("Not begun. The run goes on; mending begins when it has ended, or by cancelling it."),
    "csrf": _("Nothing was done. This page was open across a sign-in. Read it again; then press once more."),
}

PLAIN: Final[dict[str, str | Promise]] = {
    "not_pausable": _("Not paused. The run ends, is being mended, or stands still already."),
    "not_paused": _("Nothing was done. The run is not paused."),
    "not_closable": _("Not closed. The run is at work; pause or cancel it first."),
    "drills_forbidden": _("Not rehearsed. A drill breaks what workspaces share, and some here are no sandboxes."),
    "drill_running": _("Not rehearsed. Another drill is at work; one at a time."),
    "unknown_drill": _("Not rehearsed. No drill has this name."),
    "nothing_sealed": _("Nothing was shown. No sealed field is there."),
    "stale_version": _("Nothing was done. This changed while you were reading. Read it again."),
    "superseded": _(
        "Not signed. A newer revision replaced this while you were reading. Nothing was sent. Your reason is kept."
    ),
    "already_done": _("Already done. Nothing was done twice."),
    "own_request": _("You cannot sign: you asked for this."),
    "not_in_group": _("You can see this but not do it."),
    "not_allowed": _("You can see this but not do it."),
    "approval_expired": _("Not sent. The signatures ran out. Ask again."),
    "outcome_unknown": _("Not done: an outcome is unknown. Settle it first."),
    "run_ended": _("Nothing was done. The run has ended; an ended run stays ended."),
    "evidence_needed": _("Not recorded. A decision needs at least one piece of evidence."),
    "key_mismatch": _("Not sent. The key was already used for other content."),
    "from_future": _("Not touched. This was written by a newer version. It waits for a worker that knows it."),
    "no_quorum": _("Not saved. Nobody could meet this rule."),
    "illegal_move": _("Nothing was done. This is not in a state that allows it. Read it again."),
    "changed_meanwhile": _("Nothing was done. This changed at the same moment. Read it again."),
    "no_permit": _("Not sent. The other side takes no more at the moment. It waits."),
    "too_late": _("Too late: it was sent."),
    "decision_waiting": _("Not recorded. A decision about this waits for a second person."),
    "nothing_to_drain": _("Nothing was done. Nothing waits there."),
    "not_asked": _("Nothing was done. Nobody asks whether this run goes on. Read it again."),
    "not_quarantined": _("Nothing was done. This run is not in quarantine. Read it again."),
    "no_way": _("Not moved. Nothing leads from the run's version to that one. Nothing was written."),
    "claimed": _("Not claimed. Somebody else has this. You can take it over."),
    "already_signed": _("You have already answered this request. Nothing was done twice."),
    "approval_ended": _("Nothing was done. This request has ended and cannot be used."),
    "already_settled": _("Nothing was done. The outcome is settled; there is nothing to decide."),
    "plan_at_work": _("Nothing was done. This plan is at work or over."),
    "bad_cursor": _("Not read. This page of the list was not made by the list. Begin at its first page."),
    "unknown_signal": _("Nothing was done. This type of run takes no event of that name."),
}
"""The same without facts, for a refusal that carries none or not all of them."""


def refusal(code: str, facts: Mapping[str, Any]) -> str:
    """The sentence of a refusal. A code without words is a gap in this table and is shown as what it is."""
    given = {name: value for name, value in facts.items() if value not in (None, "")}
    for table in (REFUSALS, PLAIN):
        if code in table:
            try:
                return str(table[code]).format(**given)
            except KeyError:
                continue
    return str(_("Nothing was done. Recourse refused this ({code}).")).format(code=code)
