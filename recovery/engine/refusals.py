"""Refusals of what people do about approvals and decisions, beside those of ``runs.errors``."""

from __future__ import annotations

from runs.errors import RunsError


class TooLate(RunsError):
    """The request was used: it was sent, and a signature cannot be taken back any more (R9)."""

    code = "too_late"


class AlreadyDone(RunsError):
    """Somebody did this before, and nothing was done twice."""

    code = "already_done"


class NothingToWithdraw(RunsError):
    """This person has no standing signature on the request."""

    code = "nothing_to_withdraw"


class NotRenewable(RunsError):
    """Only a request that ran out, or that nobody can sign, is asked for again."""

    code = "not_renewable"


class DecisionWaiting(RunsError):
    """A decision about this outcome waits for a second person."""

    code = "decision_waiting"


class ItemUnknown(RunsError):
    """Happened in part needs a word on every item; one that is unknown keeps the whole unknown."""

    code = "item_unknown"
    status = 422


class ClaimedByOther(RunsError):
    """Somebody else has claimed this; it can be taken over knowingly."""

    code = "claimed"


class NotClaimed(RunsError):
    """This person has not claimed it."""

    code = "not_claimed"


class NotPausable(RunsError):
    """A run that ends, is mended or stands still already is not paused."""

    code = "not_pausable"


class NotPaused(RunsError):
    """The run is not paused, so there is nothing to let go on."""

    code = "not_paused"


class NotClosable(RunsError):
    """A run that works is not closed as unresolved; it is paused or cancelled first."""

    code = "not_closable"


class NothingProposed(RunsError):
    """Nobody has proposed to end this run, or what was proposed is over."""

    code = "nothing_proposed"


class NothingToConfirm(RunsError):
    """No glass was broken here that still waits for a second person."""

    code = "nothing_to_confirm"


class DrillsForbidden(RunsError):
    """A drill breaks parts that every workspace of the installation shares, and one of them is not a sandbox."""

    code = "drills_forbidden"


class DrillRunning(RunsError):
    """One drill at a time in a workspace."""

    code = "drill_running"


class UnknownDrill(RunsError):
    """No drill has this name."""

    code = "unknown_drill"
    status = 422


class NothingSealed(RunsError):
    """No sealed field is at this path."""

    code = "nothing_sealed"
    status = 404


class ShareInvalid(RunsError):
    """A share of a rate is above 0 and at most 1."""

    code = "share_invalid"
    status = 422


class NothingToDrain(RunsError):
    """Nothing waits for this dependency."""

    code = "nothing_to_drain"


class NotSwept(RunsError):
    """The sweep after the restore is still at work, or nobody asked yet."""

    code = "not_swept"


class NotAsked(RunsError):
    """The checks ask nothing of a person about this run now."""

    code = "not_asked"


class NotQuarantined(RunsError):
    """Only a run that is in quarantine is taken out of it."""

    code = "not_quarantined"


class NoWay(RunsError):
    """No declared and working path leads from the run's version to that one."""

    code = "no_way"
    status = 422


class PlanAtWork(RunsError):
    """The plan is at work, or it is over: nothing of it can be changed now."""

    code = "plan_at_work"


class NothingToMend(RunsError):
    """Nothing happened in the run that could be mended."""

    code = "nothing_to_mend"


class RunGoesOn(RunsError):
    """The run goes on; what it does is mended when it has ended, or by cancelling it."""

    code = "run_goes_on"
