"""Refusals of the record. Each has a stable ``code`` (problem+json and the screens use it) and ``facts``."""

from __future__ import annotations

from typing import Any, ClassVar


class RunsError(Exception):
    """Something was refused and nothing was changed. ``facts`` fill the sentence of ``code``."""

    code: ClassVar[str] = "refused"
    status: ClassVar[int] = 409

    def __init__(self, message: str = "", **facts: Any) -> None:
        super().__init__(message or (self.__doc__ or self.code).splitlines()[0])
        self.facts = facts


class StaleOwner(RunsError):
    """The lease is another worker's now; an old token changes no state (invariant 6)."""

    code = "stale_owner"


class StaleVersion(RunsError):
    """It changed while the person was reading."""

    code = "stale_version"


class IllegalMove(RunsError):
    """The states do not allow this move."""

    code = "illegal_move"


class LostRace(RunsError):
    """Another change came first; the row is not in the state this change needs."""

    code = "changed_meanwhile"


class NoPermit(RunsError):
    """No permit of the dependency's capacity is free now."""

    code = "no_permit"


class Frozen(NoPermit):
    """The record was restored: nothing is sent until the sweep is done and two people say so."""

    code = "frozen"


class ActionMismatch(RunsError):
    """This action id was already used with another body."""

    code = "action_mismatch"
    status = 422


class ActionInFlight(RunsError):
    """The same action is being carried out now."""

    code = "action_in_flight"


class NotFound(RunsError):
    """Nothing here that you can see."""

    code = "not_found"
    status = 404


class NotAllowed(RunsError):
    """Seen, but not allowed."""

    code = "not_allowed"
    status = 403


class OwnRequest(NotAllowed):
    """Requester, editor and accounts of the same owner do not sign their own request (R4)."""

    code = "own_request"


class NotInGroup(NotAllowed):
    """Only members of the effect's group sign."""

    code = "not_in_group"


class SamePerson(NotAllowed):
    """The second person must be another person."""

    code = "same_person"


class AlreadySigned(RunsError):
    """This person has a standing answer on this request."""

    code = "already_signed"


class Superseded(RunsError):
    """A newer revision replaced this request."""

    code = "superseded"


class ApprovalExpired(RunsError):
    """The time to sign, or to send after signing, is over."""

    code = "approval_expired"


class ApprovalEnded(RunsError):
    """The request is not open any more."""

    code = "approval_ended"


class OutcomeUnknown(RunsError):
    """An outcome is unknown; it must be settled first."""

    code = "outcome_unknown"


class EvidenceNeeded(RunsError):
    """A decision needs at least one piece of evidence."""

    code = "evidence_needed"
    status = 422


class ReasonNeeded(RunsError):
    """A reason is required and kept."""

    code = "reason_needed"
    status = 422


class RunEnded(RunsError):
    """An ended run stays ended (invariant 5)."""

    code = "run_ended"


class NotUnknown(RunsError):
    """The outcome is settled; there is nothing to decide."""

    code = "already_settled"


class KeyMismatch(RunsError):
    """The same key with another digest is refused (invariant 3)."""

    code = "key_mismatch"
    status = 422


class Unreadable(RunsError):
    """A checkpoint cannot be opened: damaged, or its key is missing."""

    code = "unreadable"


class ArchiveAway(Unreadable):
    """The archive that holds the checkpoint does not answer; it may well be whole."""

    code = "archive_away"


class Undecryptable(Unreadable):
    """The key that sealed it is not in RECOURSE_SEAL_KEYS, or a secret was altered."""

    code = "undecryptable"
