"""How people end a run while something of it is open: close it as unresolved, by two; or by force, and be confirmed.

Both list what stays, and leave its reviews open.
"""

from __future__ import annotations

from uuid import UUID

from recovery.actions.common import Done, Locked, Plan, carry_out, require_run, who
from recovery.actions.runs import refuse_ended, subject_of
from recovery.actions.seconds import require_second
from recovery.engine import finish, forced
from recovery.engine.changes import open_review
from recovery.engine.changes import reason as why_of
from recovery.engine.refusals import DecisionWaiting, NotClosable, NothingProposed, NothingToConfirm
from runs.errors import StaleVersion
from runs.models import Person, Review, Run
from runs.record import Act, Change, Entry, close_reviews
from runs.states import EventKind, ReviewKind, ReviewState, RunState


def close_unresolved(run_id: UUID, *, actor: Person, act: Act, reason: str, version: int) -> Done:
    """Propose to end a run that cannot be resolved; nothing ends before another person confirms it.

    ``version``: the run's, as seen. ``facts``: what would stay open, and the ``digest`` to confirm. Raises RunEnded,
    NotClosable (it works, or only begins), StaleVersion, DecisionWaiting, ReasonNeeded, NotAllowed.
    """

    def plan(at: Locked) -> Plan:
        run = require_run(at)
        refuse_ended(run)
        if run.version != version:
            raise StaleVersion(thing="run", id=str(run.pk), seen=version, now=run.version)
        if run.state not in forced.CLOSABLE:
            raise NotClosable(state=run.state)
        changes: list[Change] = []
        waiting = _open_review(run, ReviewKind.CONFIRM_DECISION)
        if waiting is not None:
            told = waiting.why["facts"]
            if told["version"] == run.version:
                raise DecisionWaiting(who=told["by"], at=waiting.opened_at.isoformat(), verdict=str(waiting.pk))
            # What it stood on has changed since; a new look replaces it.
            changes.append(close_reviews(run.pk, [ReviewKind.CONFIRM_DECISION]))
        stays = forced.unresolved(run)
        facts = {
            "run": str(run.pk),
            "by": who(actor),
            **stays,
            "digest": forced.proposal_digest(run, stays, actor.pk, reason),
        }
        why = why_of(
            "end_proposed",
            by=actor.name,
            person=str(actor.pk),
            said=reason,
            version=run.version,
            digest=facts["digest"],
            open=len(stays["open"]),
        )
        changes.append(
            open_review(
                ReviewKind.CONFIRM_DECISION,
                run.pk,
                workspace=run.workspace_id,
                run=run.pk,
                high=True,
                why=why,
                due_in=finish.DUE_IN,
            )
        )
        return Plan([Entry(EventKind.RUN_END_PROPOSED, facts, changes)], facts)

    return carry_out(subject_of(run_id), "decide", plan, actor=actor, act=act, reason=reason)


def confirm_close(run_id: UUID, *, actor: Person, act: Act, confirm: bool, reason: str, digest: str) -> Done:
    """The second person's answer to a proposed end: confirmed, the run ends as completed_unresolved.

    Another person of another owner, with ``confirm`` or ``decide``; whoever proposed may take it back with
    ``confirm=False``. Raises NothingProposed, SamePerson, NotAllowed, StaleVersion (another digest, or something of it
    changed since), RunEnded.
    """

    def plan(at: Locked) -> Plan:
        run, person = require_run(at), Person.objects.get(pk=actor.pk)
        refuse_ended(run)
        review = _open_review(run, ReviewKind.CONFIRM_DECISION)
        if review is None:
            raise NothingProposed
        told = review.why["facts"]
        first = Person.objects.get(pk=told["person"])
        own = person.pk == first.pk
        if confirm or not own:
            require_second(run.workspace_id, person, first, ("confirm", "decide"))
        facts = {"run": str(run.pk), "by": who(person), "proposed_by": who(first), "confirmed": confirm}
        closing = close_reviews(run.pk, [ReviewKind.CONFIRM_DECISION])
        if digest != told["digest"]:
            raise StaleVersion(thing="run", id=str(run.pk), seen=digest, now=told["digest"])
        if not confirm:
            entry = Entry(EventKind.RUN_END_REFUSED, {**facts, "taken_back": own}, [closing])
            return Plan([entry], facts)
        stays = forced.unresolved(run)
        if forced.proposal_digest(run, stays, first.pk, told["said"]) != digest:
            raise StaleVersion(thing="run", id=str(run.pk), seen=told["version"], now=run.version)
        how = why_of("closed_unresolved", by=first.name, second=person.name, said=told["said"]) | stays
        ended = forced.end(run, RunState.COMPLETED_UNRESOLVED, EventKind.RUN_CLOSED_UNRESOLVED, how, [])
        return Plan([Entry(EventKind.RUN_END_CONFIRMED, facts, [closing]), *ended], facts | stays)

    return carry_out(subject_of(run_id), "see", plan, actor=actor, act=act, reason=reason)


def abort(run_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """End a run now, by force: break-glass, for when nothing else ends it (R13).

    Needs ``override``. What was not sent is cancelled; what was sent stays open and listed, with its reviews; children
    are not touched. Another person confirms it within 24 h. Raises RunEnded, ReasonNeeded, NotAllowed.
    """

    def plan(at: Locked) -> Plan:
        run = require_run(at)
        refuse_ended(run)
        stays = forced.unresolved(run)
        by = who(actor)
        how = why_of("aborted", by=actor.name, said=reason, was=str(run.state)) | stays
        glass = forced.broken_glass(run, "aborted", by, reason)
        facts = {"run": str(run.pk), "by": by, **stays}
        return Plan(forced.end(run, RunState.ABORTED, EventKind.RUN_ABORTED, how, [glass]), facts)

    return carry_out(subject_of(run_id), "override", plan, actor=actor, act=act, reason=reason)


def confirm_abort(run_id: UUID, *, actor: Person, act: Act, reason: str) -> Done:
    """A second person confirms that a run was ended by force; the end itself stays what it is.

    Another person of another owner, with ``confirm``, ``decide`` or ``override``. Raises NothingToConfirm, SamePerson,
    NotAllowed, ReasonNeeded.
    """

    def plan(at: Locked) -> Plan:
        run, person = require_run(at), Person.objects.get(pk=actor.pk)
        review = _open_review(run, ReviewKind.BREAK_GLASS)
        if review is None:
            raise NothingToConfirm
        first = Person.objects.get(pk=review.why["facts"]["person"])
        require_second(run.workspace_id, person, first, ("confirm", "decide", "override"))
        facts = {"run": str(run.pk), "by": who(person), "broken_by": who(first), "late": at.now > review.due_at}
        closing = close_reviews(run.pk, [ReviewKind.BREAK_GLASS])
        return Plan([Entry(EventKind.RUN_END_CONFIRMED, facts, [closing])], facts)

    return carry_out(subject_of(run_id), "see", plan, actor=actor, act=act, reason=reason)


def _open_review(run: Run, kind: ReviewKind) -> Review | None:
    return Review.objects.filter(subject=run.pk, run_id=run.pk, kind=kind, state=ReviewState.OPEN).first()
