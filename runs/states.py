"""Every state, every legal move, every kind of event. Pure: no database, no import of ours.

The database's transition table, the diagrams in ``docs/states.md`` and the pair-by-pair test are made
from this module; nothing else lists a state. ``START`` is the source of a row that is being inserted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.db.models import TextChoices

from runs import restored
from runs.kinds import EventKind as EventKind
from runs.kinds import Scope as Scope

START: Final = ""


class RunState(TextChoices):
    """One execution of a run type (DESIGN section 4)."""

    ACCEPTED = "accepted"  # entered by accept; left by the first worker that takes the lease
    RUNNING = "running"  # entered with a lease; left when the run waits, ends or is quarantined
    WAITING = "waiting"  # entered by a worker that has nothing to do now; left when woken
    PAUSING = "pausing"  # entered by a person's pause; left when nothing of it is in flight
    PAUSED = "paused"  # entered when a pause has settled; left by a person
    QUARANTINED = "quarantined"  # entered when a step raises or three tries bring no progress; left by a person
    CANCELLING = "cancelling"  # entered by a cancel request; left when nothing is in flight or unknown
    COMPENSATING = "compensating"  # entered when a step or a cancellation asks to mend; left when its plan has ended
    COMPLETED = "completed"  # ended: every required effect verified
    COMPLETED_UNRESOLVED = "completed_unresolved"  # ended by a person, what is unresolved is listed
    FAILED = "failed"  # ended: the steps said so
    CANCELLED = "cancelled"  # ended: cancelled, nothing left in flight
    COMPENSATED = "compensated"  # ended: what had happened was mended, each item verified
    EXPIRED = "expired"  # ended: the run's own deadline passed
    ABORTED = "aborted"  # ended by force by a person; what is still open is listed


RUN_ENDED: Final = frozenset(
    {RunState.COMPLETED, RunState.COMPLETED_UNRESOLVED, RunState.FAILED, RunState.CANCELLED}
    | {RunState.COMPENSATED, RunState.EXPIRED, RunState.ABORTED}
)

RUN_ENDS_OPEN: Final = frozenset({RunState.COMPLETED_UNRESOLVED, RunState.ABORTED})
"""The only ends that may leave something unsettled: a person's, with a reason; they list it."""


class WaitingOn(TextChoices):
    """What a waiting run waits for; the most urgent one when there are several."""

    TIMER = "timer"
    EVENT = "event"
    APPROVAL = "approval"
    UNKNOWN = "unknown"
    IN_FLIGHT = "in_flight"
    DEPENDENCY = "dependency"
    CHILD = "child"
    PERSON = "person"
    VERSION_MISSING = "version_missing"


class EffectState(TextChoices):
    """One logical external change."""

    PLANNED = "planned"  # an item of a plan whose turn has not come; left when it comes, or dropped
    AWAITING_APPROVAL = "awaiting_approval"  # entered when the contract asks for signatures; left by them
    READY = "ready"  # may be sent as soon as a sender claims it
    IN_FLIGHT = "in_flight"  # an attempt is committed; its answer is not
    ACCEPTED = "accepted"  # the other side took it and will say later
    UNKNOWN = "unknown"  # sent, and nobody knows; only evidence ends it
    PARTIAL = "partial"  # happened in part, every item known
    DISPUTED = "disputed"  # evidence contradicts; only a person ends it
    SUCCEEDED = "succeeded"  # settled: it happened
    REJECTED = "rejected"  # settled: refused by the other side
    DECLINED = "declined"  # settled: not signed
    NOT_APPLIED = "not_applied"  # settled: known not to have happened
    CANCELLED = "cancelled"  # settled: cancelled before sending
    EXPIRED = "expired"  # settled: its deadline passed unsent
    COMPENSATED = "compensated"  # settled: it happened, and another effect mended it


EFFECT_SETTLED: Final = frozenset(
    {EffectState.SUCCEEDED, EffectState.REJECTED, EffectState.DECLINED, EffectState.NOT_APPLIED}
    | {EffectState.CANCELLED, EffectState.EXPIRED, EffectState.COMPENSATED}
)
"""States that end an effect; ``then`` is called when all effects of a Perform are here (or partial)."""

EFFECT_FREES_KEY: Final = EFFECT_SETTLED - {EffectState.SUCCEEDED, EffectState.COMPENSATED}
"""After these the step may ask again: a new effect, next generation of the same key."""

EFFECT_BLOCKS_END: Final = frozenset(
    {EffectState.IN_FLIGHT, EffectState.ACCEPTED, EffectState.UNKNOWN, EffectState.DISPUTED}
)
"""A run does not end as completed, failed or cancelled while one of its effects is here (invariants 4 and 7)."""

EFFECT_OPEN: Final = frozenset(set(EffectState) - EFFECT_SETTLED - {EffectState.PARTIAL})


class AttemptState(TextChoices):
    """One try to carry an effect out."""

    COMMITTED = "committed"  # recorded before any byte left (invariant 2)
    CLAIMED = "claimed"  # recorded again right before the send, where neither key nor readback exists
    ANSWERED = "answered"  # an answer was read and recorded
    LOST = "lost"  # sent or possibly sent; no answer
    NOT_SENT = "not_sent"  # known not to have left
    LATE = "late"  # its answer came after another fact had settled the effect


ATTEMPT_LIVE: Final = frozenset({AttemptState.COMMITTED, AttemptState.CLAIMED})


class ApprovalState(TextChoices):
    """A request for signatures."""

    PENDING = "pending"
    GRANTED = "granted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    REVOKED = "revoked"
    CONSUMED = "consumed"
    UNSATISFIABLE = "unsatisfiable"


class SignatureState(TextChoices):
    """One person's answer to an approval."""

    SIGNED = "signed"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


class VerdictState(TextChoices):
    """A person's decision about an outcome nobody knows."""

    PROPOSED = "proposed"
    RECORDED = "recorded"
    REFUSED = "refused"


class VerdictSays(TextChoices):
    """What a person may say about an unknown outcome; waiting and handing over are not verdicts."""

    HAPPENED = "happened"
    DID_NOT_HAPPEN = "did_not_happen"
    IN_PART = "in_part"


class ReviewState(TextChoices):
    OPEN = "open"
    CLOSED = "closed"


class ReviewKind(TextChoices):
    """What needs a person; one open review per (kind, subject)."""

    OUTCOME_UNKNOWN = "outcome_unknown"
    EVIDENCE_DISAGREES = "evidence_disagrees"
    PARTIAL_OUTCOME = "partial_outcome"
    SIGNATURES_NEEDED = "signatures_needed"
    CONFIRM_DECISION = "confirm_decision"
    RESUMPTION = "resumption"
    QUARANTINED = "quarantined"
    COMPENSATION_INCOMPLETE = "compensation_incomplete"
    CALLBACK_ASIDE = "callback_aside"
    NOT_SENDING = "not_sending"
    DRAIN_STOPPED = "drain_stopped"
    BREAK_GLASS = "break_glass"
    HISTORY_ALARM = "history_alarm"


class PlanState(TextChoices):
    """A compensation plan: what mends the settled effects of a run."""

    DRAFT = "draft"  # made, shown, not begun
    RUNNING = "running"  # its run works
    COMPENSATED = "compensated"  # every item mended and verified
    INCOMPLETE = "incomplete"  # some items are mended, others cannot be without a person
    FAILED = "failed"  # nothing was mended
    ENDED = "ended"  # closed by a person who accepts what stays


class DrainState(TextChoices):
    """The way out of an outage for one dependency."""

    CHECKING = "checking"  # what is unknown is read back before anything is written
    DROPPING = "dropping"  # what has expired is dropped and said so
    CANARY = "canary"  # a few go first
    GO_AHEAD = "go_ahead"  # waits for a person
    RAMPING = "ramping"  # paced, below the safe rate, growing
    STEADY = "steady"  # paced at the safe rate
    DRAINED = "drained"  # ended: nothing is left
    HELD = "held"  # a person holds it, or the canary failed
    STOPPED = "stopped"  # ended by a person


class BreakerState(TextChoices):
    """Whether a capacity is called at all."""

    CLOSED = "closed"  # it is called
    OPEN = "open"  # too many calls were turned away or not answered; left when its pause is over
    HALF_OPEN = "half_open"  # one call tries; left by how that one ends


class CallState(TextChoices):
    """One try of a recorded computation (a model call, a read); it changes nothing outside."""

    READY = "ready"  # a sender asks it as soon as it has room
    COMMITTED = "committed"  # its budget is reserved, nothing has left
    ANSWERED = "answered"  # its output is kept and used for ever
    LOST = "lost"  # nobody knows what came of it; another sample may be taken if the contract accepts one
    REFUSED = "refused"  # answered, and not with an output
    NOT_SENT = "not_sent"  # known not to have left


class CallbackState(TextChoices):
    """A message from the other side."""

    MATCHED = "matched"
    ASIDE = "aside"
    DISMISSED = "dismissed"


class NoticeState(TextChoices):
    """A message to people."""

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"
    DROPPED = "dropped"  # nobody needs to hear of it any more


class DrillState(TextChoices):
    """A rehearsed fault."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"


class EvidenceKind(TextChoices):
    ANSWER = "answer"
    READBACK = "readback"
    CALLBACK = "callback"
    STATEMENT = "statement"


class Strength(TextChoices):
    """How well evidence supports its claim; the four words of the screens, and none for a check without answer."""

    PROVES = "proves"
    AGREES = "agrees"
    WORD = "word"
    CONTRADICTS = "contradicts"
    NONE = "none"


class Claim(TextChoices):
    """What a piece of evidence says about the intent."""

    HAPPENED = "happened"
    NOT_FOUND = "not_found"
    PENDING = "pending"
    REJECTED = "rejected"
    IN_PART = "in_part"
    UNAVAILABLE = "unavailable"


def _from(sources: Iterable[str], *targets: str) -> set[tuple[str, str]]:
    return {(str(source), str(target)) for source in sources for target in targets}


_R, _E, _A, _S, _V, _T = RunState, EffectState, ApprovalState, SignatureState, VerdictState, AttemptState

_P, _D, _B = PlanState, DrainState, BreakerState
DRAIN_ENDED: Final = frozenset({DrainState.DRAINED, DrainState.STOPPED})
_D_LIVE: Final = set(DrainState) - DRAIN_ENDED

_NEGATIVE = {_E.NOT_APPLIED, _E.CANCELLED, _E.EXPIRED, _E.REJECTED}

TRANSITIONS: Final[dict[str, frozenset[tuple[str, str]]]] = {
    "run": frozenset(
        _from({START}, _R.ACCEPTED)
        | _from({_R.ACCEPTED, _R.WAITING}, _R.RUNNING)
        | _from({_R.RUNNING}, _R.WAITING, _R.COMPLETED, _R.FAILED)
        | _from({_R.ACCEPTED, _R.RUNNING, _R.WAITING}, _R.QUARANTINED, _R.CANCELLING, _R.EXPIRED, _R.PAUSING)
        | _from({_R.RUNNING, _R.WAITING, _R.CANCELLING}, _R.COMPENSATING)
        | _from({_R.PAUSING}, _R.PAUSED, _R.WAITING, _R.CANCELLING, _R.EXPIRED, _R.QUARANTINED)
        | _from({_R.PAUSED}, _R.WAITING, _R.CANCELLING, _R.EXPIRED, _R.QUARANTINED)
        | _from({_R.COMPENSATING}, _R.RUNNING, _R.WAITING, _R.CANCELLING, _R.COMPENSATED, _R.CANCELLED, _R.QUARANTINED)
        | _from({_R.QUARANTINED}, _R.CANCELLING, _R.WAITING)
        | _from({_R.CANCELLING}, _R.CANCELLED)
        | _from({_R.WAITING, _R.CANCELLING, _R.COMPENSATING, _R.QUARANTINED, _R.PAUSED}, _R.COMPLETED_UNRESOLVED)
        | _from(set(RunState) - RUN_ENDED, _R.ABORTED)
    ),
    "effect": frozenset(
        _from({START}, _E.PLANNED, _E.AWAITING_APPROVAL, _E.READY, _E.IN_FLIGHT, _E.SUCCEEDED)  # found after a restore
        | _from({_E.PLANNED}, _E.AWAITING_APPROVAL, _E.READY, _E.CANCELLED, _E.EXPIRED)
        | _from({_E.SUCCEEDED, _E.PARTIAL}, _E.COMPENSATED)
        | _from({_E.COMPENSATED}, _E.DISPUTED)
        | _from({_E.AWAITING_APPROVAL}, _E.READY, _E.DECLINED, _E.CANCELLED, _E.EXPIRED)
        | _from({_E.READY}, _E.IN_FLIGHT, _E.AWAITING_APPROVAL, _E.CANCELLED, _E.EXPIRED, _E.NOT_APPLIED)
        | _from(
            {_E.IN_FLIGHT},
            _E.READY,
            _E.ACCEPTED,
            _E.UNKNOWN,
            _E.PARTIAL,
            _E.SUCCEEDED,
            _E.REJECTED,
            _E.NOT_APPLIED,
            _E.EXPIRED,
            _E.CANCELLED,
        )
        | _from(
            {_E.ACCEPTED, _E.UNKNOWN},
            _E.DISPUTED,
            _E.PARTIAL,
            _E.SUCCEEDED,
            _E.REJECTED,
            _E.NOT_APPLIED,
        )
        | _from({_E.ACCEPTED}, _E.UNKNOWN)
        | _from({_E.UNKNOWN}, _E.IN_FLIGHT, _E.ACCEPTED)
        | _from({_E.READY, _E.AWAITING_APPROVAL}, _E.UNKNOWN)  # after a restore: it may have been sent
        | _from(_NEGATIVE | {_E.SUCCEEDED}, _E.DISPUTED)
        | _from({_E.DISPUTED}, _E.SUCCEEDED, _E.NOT_APPLIED, _E.PARTIAL)
    ),
    "attempt": frozenset(
        _from({START}, _T.COMMITTED, _T.LOST)  # lost: a try that a restored record does not know
        | _from({_T.COMMITTED}, _T.CLAIMED)
        | _from({_T.COMMITTED, _T.CLAIMED}, _T.ANSWERED, _T.LOST, _T.NOT_SENT)
        | _from({_T.LOST}, _T.LATE)
    ),
    "approval": frozenset(
        _from({START}, _A.PENDING, _A.UNSATISFIABLE)
        | _from({_A.PENDING}, _A.GRANTED, _A.REJECTED, _A.EXPIRED, _A.SUPERSEDED, _A.REVOKED, _A.UNSATISFIABLE)
        | _from({_A.GRANTED}, _A.PENDING, _A.CONSUMED, _A.EXPIRED, _A.SUPERSEDED, _A.REVOKED, _A.REJECTED)
        | _from({_A.UNSATISFIABLE}, _A.PENDING, _A.SUPERSEDED, _A.REVOKED, _A.EXPIRED)
        | _from({_A.EXPIRED}, _A.SUPERSEDED)
    ),
    "signature": frozenset(_from({START}, _S.SIGNED, _S.REJECTED) | _from({_S.SIGNED}, _S.WITHDRAWN)),
    "verdict": frozenset(_from({START}, _V.PROPOSED, _V.RECORDED) | _from({_V.PROPOSED}, _V.RECORDED, _V.REFUSED)),
    "review": frozenset(_from({START}, ReviewState.OPEN) | _from({ReviewState.OPEN}, ReviewState.CLOSED)),
    "plan": frozenset(
        _from({START}, _P.DRAFT, _P.RUNNING)
        | _from({_P.DRAFT}, _P.RUNNING, _P.ENDED)
        | _from({_P.RUNNING}, _P.COMPENSATED, _P.INCOMPLETE, _P.FAILED, _P.ENDED)
        | _from({_P.INCOMPLETE, _P.FAILED}, _P.RUNNING, _P.COMPENSATED, _P.ENDED)
        | _from({_P.FAILED}, _P.INCOMPLETE)  # one of its items is verified after all
    ),
    "drain": frozenset(
        _from({START}, _D.CHECKING)
        | _from({_D.CHECKING}, _D.DROPPING)
        | _from({_D.DROPPING}, _D.CANARY)
        | _from({_D.CANARY}, _D.GO_AHEAD, _D.RAMPING)
        | _from({_D.GO_AHEAD}, _D.RAMPING)
        | _from({_D.RAMPING}, _D.STEADY)
        | _from(_D_LIVE - {_D.HELD}, _D.HELD, _D.DRAINED)
        | _from({_D.HELD}, *(_D_LIVE - {_D.HELD}))
        | _from(_D_LIVE, _D.STOPPED)
    ),
    "breaker": frozenset(
        _from({START, _B.HALF_OPEN}, _B.CLOSED)
        | _from({_B.CLOSED, _B.HALF_OPEN}, _B.OPEN)
        | _from({_B.OPEN}, _B.HALF_OPEN)
    ),
    "call": frozenset(
        _from({START}, CallState.READY, CallState.COMMITTED)
        | _from({CallState.READY}, CallState.COMMITTED, CallState.NOT_SENT)
        | _from({CallState.COMMITTED}, CallState.ANSWERED, CallState.LOST, CallState.REFUSED, CallState.NOT_SENT)
    ),
    "restore": restored.MOVES,
    "callback": frozenset(
        _from({START}, CallbackState.MATCHED, CallbackState.ASIDE)
        | _from({CallbackState.ASIDE}, CallbackState.DISMISSED)
    ),
    "drill": frozenset(_from({START}, "running") | _from({"running"}, DrillState.PASSED, DrillState.FAILED)),
}
"""Legal moves of each thing. An ended run has no way out (invariant 5); unknown and disputed have no way that
a clock could take: every target of theirs is entered with evidence (invariant 4)."""


def may_move(thing: str, source: str, target: str) -> bool:
    """True if ``thing`` (a key of TRANSITIONS) may go from ``source`` (or START) to ``target``."""
    return (source, target) in TRANSITIONS[thing]
