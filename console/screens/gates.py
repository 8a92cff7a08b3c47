"""The gate: four lines from a stored decision, in the reader's language. Nothing here is judged anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import when
from console.screens import told
from recovery.engine import reasons
from recovery.engine.approvals import Rule
from recovery.engine.reasons import Turn
from runs import access
from runs.models import Approval, Effect, Person, Run, Verdict
from runs.states import (
    ATTEMPT_LIVE,
    EFFECT_OPEN,
    RUN_ENDED,
    ApprovalState,
    EffectState,
    RunState,
    VerdictState,
    WaitingOn,
)

TURNS: Final = {Turn.RECOURSE: "recourse", Turn.DEPENDENCY: "other", Turn.PERSON: "person", Turn.NOBODY: ""}
"""The engine's turns as ``console.pills.TURNS`` names them."""

URGENT: Final = (
    EffectState.DISPUTED,
    EffectState.UNKNOWN,
    EffectState.AWAITING_APPROVAL,
    EffectState.ACCEPTED,
    EffectState.IN_FLIGHT,
    EffectState.READY,
    EffectState.PLANNED,
)
"""Open effects, the most urgent first."""

WHY: Final[dict[str, str | Promise]] = {
    "step_raised": gettext_lazy("the step {step} broke"),
    "amend_needs_perform": gettext_lazy("the step {step} did not ask for the same effects again"),
    "data_unserialisable": gettext_lazy("the step {step} left data that cannot be stored, at {path}"),
    "no_progress": gettext_lazy("{tries} tries brought no progress"),
    "key_mismatch": gettext_lazy("a step asked for other content under a key that is in use"),
    "unreadable": gettext_lazy("its checkpoint cannot be opened"),
    "checks_ask": gettext_lazy("the checks before going on ask for a person: {checks}"),
    "record_restored": gettext_lazy("the record was restored from an older backup; nothing is sent"),
    "aborted": gettext_lazy("{by} ended it by force; a second person has to confirm that"),
    "overridden": gettext_lazy("{by} had it sent without signatures; a second person has to confirm that"),
    "end_proposed": gettext_lazy("{by} proposes to end it unresolved; a second person has to confirm that"),
    "class_asks": gettext_lazy("{operation} ended as {failure}, and its contract asks for a person"),
    "class_quarantines": gettext_lazy("{operation} ended as {failure}, and its contract takes it out"),
    "no_migration": gettext_lazy("its data is of version {kept}, and nothing leads from there to {now}"),
    "migration_broke": gettext_lazy("moving it from version {kept} to {now} broke"),
    "context_broke": gettext_lazy("its context could not be made from the record"),
    "compensation_incomplete": gettext_lazy("{mended} of {of} mended; what is left needs a person"),
    "plan_cannot_begin": gettext_lazy("the plan cannot be begun: {said}"),
    "not_verified_yet": gettext_lazy("the other side does not show it yet: {what}"),
    "residue_proposed": gettext_lazy("{who} wants to leave what stays as it is; another person must confirm"),
    "mended": gettext_lazy("mended by another effect: {by}"),
    "mending_in_doubt": gettext_lazy("what mended it is in doubt: {by}"),
    "changed_by_others": gettext_lazy("somebody else changed {what}; it was not touched"),
    "original_moved": gettext_lazy("{what} does not stand any more as the plan knew it"),
    "original_unanswered": gettext_lazy("no answer about {what}, which is looked at before it is mended"),
    "verifying": gettext_lazy("{dependency} does not show it yet: {what}"),
    "compensating": gettext_lazy("what happened is being mended"),
    "computation_lost": gettext_lazy("the answer of {operation} was lost, and its contract bears {samples}"),
    "breaker_open": gettext_lazy("too many calls to {dependency} failed; nothing is sent there"),
    "dependency_held": gettext_lazy("a person holds {dependency}; nothing is sent there"),
    "go_ahead": gettext_lazy("the first few went to {dependency}; the rest waits for a go-ahead"),
    "canary_failed": gettext_lazy("of the first {tried} to {dependency}, {failed} failed"),
    "held_by_person": gettext_lazy("a person holds the backlog for {dependency}"),
    "no_quorum": gettext_lazy("nobody could meet the rule: it needs {needed}, and {eligible} may sign"),
}
"""Why a run stands still, by the stored code."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What ``partials/gate.html`` shows. ``turn``: a key of ``pills.TURNS``; ``since``: since when."""

    turn: str
    waiting_for: str
    ends_when: str
    who_can: str
    if_nobody: str
    dependency: str = ""
    since: datetime | None = None
    effect: Effect | None = None


def show_time(moment: datetime) -> str:
    """A time in a sentence: the clock, with the date if it is not today."""
    return when.stamp(moment, timezone.now(), seconds=False)


def why_of(reason: Mapping[str, Any]) -> str:
    """A stored {code, facts} as half a sentence; a code without words says what the engine said."""
    facts = {
        name: ", ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in (reason.get("facts") or {}).items()
    }
    code = str(reason.get("code", ""))
    try:
        return str(WHY[code]).format(**facts)
    except KeyError:
        return str(facts.get("said") or facts.get("why") or code)


def of_effect(effect: Effect, run: Run, me: Person) -> Gate:
    """The gate of an open effect of ``run``, its relations loaded as ``queries.run_detail`` does.

    At most two queries. What waits behind it is read with :func:`behind`.
    """
    proposed = _proposed(effect)
    if proposed is not None:
        return _second_person(effect, proposed, me)
    decision = _decision(effect, run)
    approval = _asked(effect)
    if approval is not None and effect.state == EffectState.AWAITING_APPROVAL:
        decision["facts"] = {**decision["facts"], "group": approval.group.slug}
        people = told.names(_signers(approval, run), me.pk, approval.group.slug)
    elif reasons.REASONS[decision["reason"]].turn in (Turn.PERSON, Turn.DEPENDENCY):
        people = told.who_can(run.workspace_id, "decide", me)
    else:
        people = ""
    made = _made(decision, people)
    return replace(made, dependency=effect.dependency.name, since=_since(effect, approval), effect=effect)


def behind(effect: Effect, run: Run) -> Gate:
    """The gate of an effect that is not the most urgent: :func:`of_effect` without names. No query."""
    return replace(_made(_decision(effect, run), ""), dependency=effect.dependency.name, effect=effect)


def of_run(run: Run, effects: Iterable[Effect], me: Person, since: datetime | None = None) -> list[Gate]:
    """Everything that ``run`` waits for, most urgent first; none for an ended run.

    ``effects``: its own and those of other runs that it waits on. ``since``: when something last happened.
    """
    if run.ended:
        return []
    # What is only planned is not what holds a run that waits for a dependency.
    later = {EffectState.PLANNED} if run.waiting_on == WaitingOn.DEPENDENCY else set()
    waits = sorted(
        (e for e in effects if e.state in EFFECT_OPEN - later), key=lambda e: (URGENT.index(e.state), e.ordinal)
    )
    if waits and run.state != RunState.QUARANTINED:
        return [of_effect(waits[0], run, me), *(behind(effect, run) for effect in waits[1:])]
    stored = _of_its_own(run)
    if run.deadline is not None:
        stored["facts"]["run_deadline"] = run.deadline.isoformat()
    person = reasons.REASONS[stored["code"]].turn == Turn.PERSON
    people = told.who_can(run.workspace_id, "cancel", me) if person else ""
    gate = replace(_made(stored, people), since=run.cancel_asked_at or since)
    if not person or stored["code"] in ("paused", "child_stands"):
        return [gate]
    # The only page for it cancels the run: answering the checks and taking out of quarantine are actions without one.
    why = "; ".join(why_of(reason) for reason in run.gate)
    said = f"{gate.waiting_for}: {why}" if why else gate.waiting_for
    return [replace(gate, waiting_for=said, ends_when=_("a person cancels the run"))]


def _of_its_own(run: Run) -> dict[str, Any]:
    """Code and facts of a wait that is not an effect's."""
    stored = run.gate[0] if run.gate else {}
    if stored.get("code") in reasons.REASONS:
        return {"code": stored["code"], "facts": {**stored.get("facts", {})}}
    if run.state == RunState.QUARANTINED or run.waiting_on == WaitingOn.PERSON:
        return {"code": "quarantined", "facts": {}}
    if run.state in (RunState.PAUSING, RunState.PAUSED):
        return {"code": str(run.state), "facts": {}}
    if run.state == RunState.ACCEPTED:
        return {"code": "not_started", "facts": {}}
    if run.waiting_on == WaitingOn.CHILD:
        return _of_children(run)
    if run.state == RunState.WAITING and run.waiting_on == WaitingOn.TIMER and run.wake_at is not None:
        return {"code": "timer", "facts": {"at": run.wake_at.isoformat()}}
    if run.state == RunState.WAITING and run.waiting_on == WaitingOn.EVENT:
        return {"code": "event", "facts": {"event": run.wait_event}}
    if run.state == RunState.WAITING and run.waiting_on == WaitingOn.IN_FLIGHT:
        return {"code": "computing", "facts": {}}
    return {"code": "running", "facts": {}}


def _of_children(run: Run) -> dict[str, Any]:
    """What the runs below it are doing, as they are now: one of them may stand still. One query."""
    living = run.children.exclude(state__in=RUN_ENDED).order_by("id")
    found = list(living.values_list("title", "state"))
    stands = [title for title, state in found if state in _STANDS]
    titles = stands or [title for title, _state in found]
    return {"code": "child_stands" if stands else "child", "facts": {"title": ", ".join(titles[:3])}}


_STANDS: Final = (RunState.QUARANTINED, RunState.PAUSED)


def _decision(effect: Effect, run: Run) -> dict[str, Any]:
    """The stored decision, or what the state says where the last decision was about an earlier state."""
    base: dict[str, Any] = {"what": effect.describe, "dependency": effect.dependency.name}
    if run.deadline is not None:
        base["run_deadline"] = run.deadline.isoformat()
    live = next((a for a in effect.attempt_set.all() if a.state in ATTEMPT_LIVE), None)
    if effect.state == EffectState.IN_FLIGHT and live is not None:
        return {"reason": "in_flight", "facts": {**base, "at": live.expires_at.isoformat()}}
    stored = effect.decision
    if stored is None or (effect.state == EffectState.READY and stored["reason"] in _OF_SIGNING):
        return {"reason": "send_now" if effect.state == EffectState.READY else "check_first", "facts": base}
    return {"reason": stored["reason"], "facts": {**base, **stored["facts"]}}


_OF_SIGNING: Final = frozenset({"signatures_needed", "approval_expired"})


def _made(decision: Mapping[str, Any], people: str) -> Gate:
    lines = reasons.gate(decision, people=people, show_time=show_time)
    return Gate(TURNS[lines.turn], lines.waiting_for, lines.ends_when, lines.who_can, lines.if_nobody_acts)


def _asked(effect: Effect) -> Approval | None:
    """The newest request for signatures."""
    return max(effect.approvals.all(), key=lambda a: a.revision, default=None)


def signers(approval: Approval, run: Run) -> list[Person]:
    """Who may sign now and has not. One query, one more where somebody edited it."""
    barred: dict[UUID, str] = {UUID(str(id)): "edited" for id in approval.editors}
    owners = {p.owner_id: p.name for p in Person.objects.filter(pk__in=barred)} if barred else {}
    for person, why in ((approval.requester, "asked"), (run.started_by, "started")):
        if person is not None:
            barred[person.pk] = why
            owners[person.owner_id] = person.name
    rule = Rule(run.workspace_id, approval.group, approval.needed, barred, owners)
    signed = {s.person_id for s in approval.signatures.all() if s.state == "signed"}
    return [person for person in rule.candidates() if person.pk not in signed]


def _signers(approval: Approval, run: Run) -> Sequence[tuple[UUID, str]]:
    if approval.state not in (ApprovalState.PENDING, ApprovalState.GRANTED):
        return [(p.pk, p.name) for p in access.people_who_can(run.workspace_id, "start")]
    return [(person.pk, person.name) for person in signers(approval, run)]


def _proposed(effect: Effect) -> Verdict | None:
    return next((v for v in effect.verdicts.all() if v.state == VerdictState.PROPOSED), None)


def _second_person(effect: Effect, verdict: Verdict, me: Person) -> Gate:
    people = {p.pk: p for p in access.people_who_can(effect.workspace_id, "decide")}
    people |= {p.pk: p for p in access.people_who_can(effect.workspace_id, "confirm")}
    others = [(p.pk, p.name) for p in people.values() if p.owner_id != verdict.person.owner_id]
    who = _("you") if verdict.person_id == me.pk else verdict.person.name
    return Gate(
        turn="person",
        waiting_for=_("a second person to confirm what {who} decided: {what}").format(who=who, what=effect.describe),
        ends_when=_("another person confirms it or does not"),
        who_can=told.names(others, me.pk),
        if_nobody=_("Nothing is sent again. The outcome stays unknown."),
        dependency=effect.dependency.name,
        since=verdict.at,
        effect=effect,
    )


def _since(effect: Effect, approval: Approval | None) -> datetime:
    if effect.state == EffectState.AWAITING_APPROVAL and approval is not None:
        return approval.asked_at
    attempts = effect.attempt_set.all()
    if effect.state == EffectState.IN_FLIGHT and attempts:
        return max(a.committed_at for a in attempts)
    return effect.unknown_since or effect.requested_at
