"""What each kind of event says on the timeline, from the stored line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.pills import PILLS, STRENGTHS
from console.screens import gates
from runs.models import Effect, Event
from runs.states import Claim, EventKind, Strength

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence, and the state whose pill stands beside it (``thing`` "effect"; empty: no pill)."""

    text: str
    thing: str = ""
    state: str = ""


CLAIMS: Final[dict[str, str | Promise]] = {
    Claim.HAPPENED: gettext_lazy("it happened"),
    Claim.NOT_FOUND: gettext_lazy("not found"),
    Claim.PENDING: gettext_lazy("it took it and has not finished"),
    Claim.REJECTED: gettext_lazy("it refused it"),
    Claim.IN_PART: gettext_lazy("it happened in part"),
    Claim.UNAVAILABLE: gettext_lazy("no answer"),
}

HEARD: Final[dict[str, str | Promise]] = {
    "timeout": gettext_lazy("no answer in time"),
    "connection_closed": gettext_lazy("the connection closed without an answer"),
    "credential_missing": gettext_lazy("its credential is missing here"),
}
"""What came of a try, by its code; another code is shown as it is."""

_SAYS: Final[dict[str, str | Promise]] = {
    "happened": gettext_lazy("it happened"),
    "did_not_happen": gettext_lazy("it did not happen"),
    "in_part": gettext_lazy("it happened in part"),
}

ENDS: Final[dict[str, str | Promise]] = {
    "answered": gettext_lazy("by its own answer"),
    "proved": gettext_lazy("by the other side's own record"),
    "not_found_twice": gettext_lazy("not found twice, after the promised lag"),
    "run_cancelled": gettext_lazy("the run was cancelled"),
    "run_expired": gettext_lazy("the run's deadline passed"),
    "no_longer_wanted": gettext_lazy("the run ended without it"),
    "deadline_passed": gettext_lazy("its deadline passed"),
    "decided": gettext_lazy("decided by {who}"),
    "rejected": gettext_lazy("rejected by {by}"),
}
"""Why an effect settled, where the state alone does not say it."""


HELD: Final[dict[str, str | Promise]] = {
    "approval_expired": gettext_lazy("the signatures ran out"),
    "short_of_quorum": gettext_lazy("a signature does not count any more"),
    "approval_missing": gettext_lazy("nobody was asked to sign"),
    "not_granted": gettext_lazy("not enough people have signed"),
    "digest_differs": gettext_lazy("what would be sent is not what was signed"),
    "approval_void": gettext_lazy("it was signed before a restore"),
}
"""Why an effect was held back before its send."""


def say(event: Event, effect: Effect | None) -> Said | None:
    """The row of ``event``; None for a line that needs none."""
    body: dict[str, Any] = event.body
    data: dict[str, Any] = body["data"]
    made = _KINDS.get(event.kind)
    return made(data, effect, body) if made is not None else Said(event.kind)


def _accepted(data: Data, effect: Effect | None, body: Data) -> Said:
    behalf = body.get("behalf")
    said = _("Accepted: {type} v{version}").format(type=data["type"], version=data["version"])
    return Said(_("{said}, for {behalf}").format(said=said, behalf=behalf) if behalf else said)


def _waited(data: Data, effect: Effect | None, body: Data) -> Said:
    if data.get("on"):
        return Said(str(PILLS["waiting"][data["on"]].text(event=data.get("event"))))
    return Said(_("Waits: {why}").format(why=gates.why_of(data)))


def _woken(data: Data, effect: Effect | None, body: Data) -> Said:
    return Said(_("Looked at again") if data.get("by") == "person" else _("Goes on: {by}").format(by=data.get("by")))


def _checked_run(data: Data, effect: Effect | None, body: Data) -> Said:
    verdict = _VERDICTS.get(data.get("verdict", ""), data.get("verdict", ""))
    if data.get("dry"):
        return Said(_("Checked without going on: {verdict}").format(verdict=verdict))
    return Said(_("Checked before going on: {verdict}").format(verdict=verdict))


_VERDICTS: Final[dict[str, str | Promise]] = {
    "go_on": gettext_lazy("goes on"),
    "settle_first": gettext_lazy("what is in flight is settled first"),
    "escalate": gettext_lazy("a person is asked"),
    "end": gettext_lazy("it ends"),
    "replan": gettext_lazy("it plans anew"),
    "wait": gettext_lazy("it waits for an answer of the other side"),
    "quarantine": gettext_lazy("it is taken out"),
}


def _quarantined(data: Data, effect: Effect | None, body: Data) -> Said:
    return Said(_("Quarantined: {why}").format(why=gates.why_of(data)))


def _cancel(data: Data, effect: Effect | None, body: Data) -> Said:
    return Said(_("Asked again to be cancelled") if data.get("again") else _("Asked to be cancelled"))


def _signalled(data: Data, effect: Effect | None, body: Data) -> Said:
    return Said(_("The event {name} arrived").format(name=data["name"]))


def _asked(data: Data, effect: Effect | None, body: Data) -> Said:
    return Said(_("Asked for"))


def _amended(data: Data, effect: Effect | None, body: Data) -> Said:
    said = _("Changed to revision {n} on {signal}")
    return Said(said.format(n=data["revision"], signal=data.get("signal") or _("an event")))


def _met(data: Data, effect: Effect | None, body: Data) -> Said:
    return Said(_("The same effect is another run's: it waits for that one"))


def _sent(data: Data, effect: Effect | None, body: Data) -> Said:
    said = _("Try {n}: sent again with the same key") if data.get("how") == "again" else _("Try {n}: sent")
    return Said(said.format(n=data["n"]))


def _try_ended(data: Data, effect: Effect | None, body: Data) -> Said:
    """An attempt that ended without settling its effect."""
    moved = next((step["to"] for step in body["moves"] if step["t"] == "effect"), "")
    heard = _heard(data)
    said = _("Try {n}: {heard}").format(n=data["n"], heard=heard) if data.get("n") else heard
    return Said(said, "effect" if moved else "", moved)


def _heard(data: Data) -> str:
    code = (data.get("outcome") or {}).get("code") or data.get("lost") or ""
    lost = {
        "dead_sender": _("its sender ended before an answer was recorded"),
        "limit_passed": HEARD["timeout"],
        "after_restore": _("it may have been sent before the record was restored"),
    }
    if code:
        return str(lost.get(code) or HEARD.get(code) or code)
    return str(_("nothing new"))


def _claimed(data: Data) -> str:
    """What a check says. One that only agrees never reads as if it had proved something."""
    if data["claim"] == Claim.HAPPENED and data.get("strength") == Strength.AGREES:
        return _("found one like it")
    return str(CLAIMS[data["claim"]])


def _checked(data: Data, effect: Effect | None, body: Data) -> Said | None:
    if "claim" not in data:
        return None  # a decision was renewed; the gate shows it
    name = effect.dependency.name if effect is not None else _("the other side")
    said = _("Checked with {dependency}: {claim}").format(dependency=name, claim=_claimed(data))
    strength = data.get("strength", "none")
    return Said(said, *(("strength", strength) if strength in STRENGTHS and strength != "none" else ("", "")))


def _settled(data: Data, effect: Effect | None, body: Data) -> Said:
    code = data.get("code") or (data.get("decision") or {}).get("reason") or ""
    facts = data.get("facts") or {}
    try:
        why = str(ENDS.get(code, "")).format(**facts)
    except KeyError:
        why = ""
    tried = _("Try {n}: answered").format(n=data["n"]) if data.get("n") else ""
    said = ", ".join(part for part in (tried or _("Settled"), why) if part)
    return Said(said, "effect", data["state"])


def _disputed(data: Data, effect: Effect | None, body: Data) -> Said:
    return Said(_("Evidence came that contradicts what was known"), "effect", "disputed")


def _held_back(data: Data, effect: Effect | None, body: Data) -> Said:
    code = data.get("code") or (data.get("decision") or {}).get("reason") or ""
    return Said(_("Not sent: {why}").format(why=HELD.get(code, _("signatures are needed"))))


def _evidence(data: Data, effect: Effect | None, body: Data) -> Said:
    return Said(_("An answer came late; it is kept as evidence") if data.get("late") else _("Evidence came"))


def _approval_asked(data: Data, effect: Effect | None, body: Data) -> Said:
    revision = data.get("revision", 1)
    return Said(
        _("Signatures asked for") if revision == 1 else _("Signatures asked for, revision {n}").format(n=revision),
        "effect",
        "awaiting_approval",
    )


def _signed(data: Data, effect: Effect | None, body: Data) -> Said:
    said = _("Signed revision {revision}: {signed} of {needed}")
    return Said(said.format(revision=data["revision"], signed=data["signed"], needed=data["needed"]))


def _rejected(data: Data, effect: Effect | None, body: Data) -> Said:
    return Said(_("Rejected revision {revision}: it is not sent").format(revision=data["revision"]))


def _withdrawn(data: Data, effect: Effect | None, body: Data) -> Said:
    said = _("Took the signature back: {signed} of {needed}")
    return Said(said.format(signed=data["signed"], needed=data["needed"]))


def _proposed(data: Data, effect: Effect | None, body: Data) -> Said:
    return Said(_("Decided: {says}; a second person is needed").format(says=_SAYS[data["says"]]))


def _recorded(data: Data, effect: Effect | None, body: Data) -> Said:
    first = (data.get("proposed_by") or {}).get("name")
    if first:
        return Said(_("Confirmed what {who} decided: {says}").format(who=first, says=_SAYS[data["says"]]))
    return Said(_("Decided: {says}").format(says=_SAYS[data["says"]]))


def _not_confirmed(data: Data, effect: Effect | None, body: Data) -> Said:
    return Said(_("Took the decision back") if data.get("taken_back") else _("Did not confirm the decision"))


def _plain(text: Any) -> Callable[[Data, Effect | None, Data], Said]:
    return lambda data, effect, body: Said(str(text))


_KINDS: Final[dict[str, Callable[[Data, Effect | None, Data], Said | None]]] = {
    EventKind.RUN_ACCEPTED: _accepted,
    EventKind.RUN_WAITED: _waited,
    EventKind.RUN_WOKEN: _woken,
    EventKind.RUN_CHECKED: _checked_run,
    EventKind.RUN_COMPLETED: _plain(gettext_lazy("Completed")),
    EventKind.RUN_FAILED: _plain(gettext_lazy("Failed")),
    EventKind.RUN_EXPIRED: _plain(gettext_lazy("Expired")),
    EventKind.RUN_CANCELLED: _plain(gettext_lazy("Cancelled")),
    EventKind.RUN_QUARANTINED: _quarantined,
    EventKind.RUN_CANCEL_ASKED: _cancel,
    EventKind.RUN_SIGNALLED: _signalled,
    EventKind.RUN_STALE_REFUSED: _plain(gettext_lazy("A worker that had lost the run tried to write; it was refused")),
    EventKind.RUN_PAUSE_ASKED: _plain(gettext_lazy("Asked to pause")),
    EventKind.RUN_PAUSED: _plain(gettext_lazy("Paused: nothing of it is in flight")),
    EventKind.RUN_RESUMED: _plain(gettext_lazy("Let go on")),
    EventKind.RUN_RELEASED: _plain(gettext_lazy("Taken out of quarantine")),
    EventKind.RUN_MIGRATED: _plain(gettext_lazy("Moved to a newer version")),
    EventKind.RUN_CORRECTED: _plain(gettext_lazy("A correction arrived")),
    EventKind.RUN_CHILD_STARTED: _plain(gettext_lazy("Started another run and waits for it")),
    EventKind.RUN_CHILD_ENDED: _plain(gettext_lazy("The run it waited for has ended")),
    EventKind.RUN_COMPENSATING: _plain(gettext_lazy("What had happened is being mended")),
    EventKind.RUN_COMPENSATED: _plain(gettext_lazy("Mended")),
    EventKind.RUN_CLOSED_UNRESOLVED: _plain(gettext_lazy("Ended, not all settled")),
    EventKind.RUN_ABORTED: _plain(gettext_lazy("Ended by force")),
    EventKind.RUN_END_PROPOSED: _plain(gettext_lazy("Proposed to end it, not all settled; a second person is needed")),
    EventKind.RUN_END_REFUSED: _plain(gettext_lazy("It is not ended: the proposal was refused or taken back")),
    EventKind.RUN_END_CONFIRMED: _plain(gettext_lazy("A second person confirmed how it ended")),
    EventKind.PLAN_MADE: _plain(gettext_lazy("A plan to mend it was made")),
    EventKind.PLAN_STARTED: _plain(gettext_lazy("The plan was begun")),
    EventKind.PLAN_STOPPED: _plain(gettext_lazy("The plan was stopped")),
    EventKind.PLAN_CHANGED: _plain(gettext_lazy("The plan was changed")),
    EventKind.PLAN_ENDED: _plain(gettext_lazy("The plan has ended")),
    EventKind.CALL_SENT: _plain(gettext_lazy("Asked for an answer")),
    EventKind.CALL_ENDED: _plain(gettext_lazy("The answer was recorded")),
    EventKind.EFFECT_COMPENSATED: _plain(gettext_lazy("Mended by another effect")),
    EventKind.EFFECT_RECOVERED: _plain(gettext_lazy("Found with the other side after a restore")),
    EventKind.APPROVAL_OVERRIDDEN: _plain(gettext_lazy("Sent without signatures, by break-glass")),
    EventKind.APPROVAL_OVERRIDE_CONFIRMED: _plain(gettext_lazy("The break-glass was confirmed by a second person")),
    EventKind.CALLBACK_MATCHED: _plain(gettext_lazy("A message of the other side came")),
    EventKind.CALLBACK_SET_ASIDE: _plain(gettext_lazy("A message matches nothing here")),
    EventKind.CHECKPOINT_DAMAGED: _plain(gettext_lazy("A copy of its checkpoint was damaged")),
    EventKind.DATA_REVEALED: _plain(gettext_lazy("A person looked at a sealed field")),
    EventKind.CALLBACK_DISMISSED: _plain(gettext_lazy("A message was put away")),
    EventKind.EFFECT_ASKED: _asked,
    EventKind.EFFECT_AMENDED: _amended,
    EventKind.EFFECT_MET: _met,
    EventKind.EFFECT_SENT: _sent,
    EventKind.EFFECT_DELAYED: _try_ended,
    EventKind.EFFECT_UNKNOWN: _try_ended,
    EventKind.EFFECT_CHECKED: _checked,
    EventKind.EFFECT_SETTLED: _settled,
    EventKind.EFFECT_DISPUTED: _disputed,
    EventKind.EFFECT_HELD_BACK: _held_back,
    EventKind.EVIDENCE_RECEIVED: _evidence,
    EventKind.APPROVAL_ASKED: _approval_asked,
    EventKind.APPROVAL_SIGNED: _signed,
    EventKind.APPROVAL_GRANTED: _plain(gettext_lazy("Signatures that stood already are enough again")),
    EventKind.APPROVAL_REJECTED: _rejected,
    EventKind.APPROVAL_WITHDRAWN: _withdrawn,
    EventKind.APPROVAL_EXPIRED: _plain(gettext_lazy("The signatures ran out")),
    EventKind.APPROVAL_VOIDED: _plain(gettext_lazy("The signatures count no more")),
    EventKind.VERDICT_PROPOSED: _proposed,
    EventKind.VERDICT_RECORDED: _recorded,
    EventKind.VERDICT_REFUSED: _not_confirmed,
    EventKind.REVIEW_CLAIMED: _plain(gettext_lazy("Claimed")),
    EventKind.REVIEW_RELEASED: _plain(gettext_lazy("Given back")),
}
