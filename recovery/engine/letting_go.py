"""Giving a run back after a failure, so that a worker that fails and lives on holds nothing.

A lease is live while its worker's process is. What breaks in the middle of an advance (a row that moved, a record
that was away, a fault of ours) must therefore end the lease, or nobody else would ever look at the run.
"""

from __future__ import annotations

import logging
import traceback

from django.db import Error as DatabaseError
from django.db import connection

from recovery import failpoints
from recovery.engine import insisting, outbound, workers
from recovery.engine.finish import EVIDENCE_KEPT
from recovery.engine.session import Session
from runs import record
from runs.errors import IllegalMove, LostRace, RunsError, StaleOwner, StaleVersion
from runs.record import Entry
from runs.states import EventKind

log = logging.getLogger("recourse.advance")

PAUSE = 1.0
"""Seconds until a run whose advance broke is looked at again; a row that moved is looked at once."""


def keep_answer(s: Session) -> None:
    """Keep the answer that was in memory only as evidence; it changes no state (invariant 6)."""
    if s.unsaved is None:
        return
    effect, attempt, sent = s.unsaved
    outbound.keep_late(effect, attempt, sent, s.watch.now())
    s.unsaved = s.settling = None
    s.buffer = []


def note_refused(s: Session) -> None:
    """Keep that a write of this worker was refused, its token being an older one (fault 24). Changes no state."""
    told = {"token": int(s.run["token"]), "worker": str(s.me.id)}
    try:
        record.commit(record.Commit(s.workspace, s.id, [Entry(EventKind.RUN_STALE_REFUSED, told)]))
    except DatabaseError as away:
        log.warning("run %s: that a stale write was refused is not kept (%s)", s.id, away)


def let_go(s: Session, error: Exception) -> None:
    """Commit what is known and release the lease. Where the record does not answer, this process takes a new name:
    the old one falls silent, and what it held is free after that. An answer in memory only is worth some patience.
    """

    def give_back() -> None:
        connection.close_if_unusable_or_obsolete()
        _keep(s)
        _release(s, error)

    try:
        if s.unsaved is None:
            give_back()
        else:
            insisting.insist(give_back)
    except StaleOwner:
        keep_answer(s)
    except DatabaseError as away:
        log.warning("run %s cannot be given back (%s); this worker takes a new name", s.id, away)
        workers.rename()
    except Exception:
        # Whatever keeps it from giving the run back, a lease of a worker that lives on would hold the run for ever.
        workers.rename()
        raise


def give_back(s: Session) -> str:
    """Release the lease of a run that is another's to go on with: it is due at once, under a new token."""
    back = record.run_moves({"lease_owner": None, "tries": 0}, times={"wake_at": 0})
    entry = Entry(EventKind.RUN_ADVANCED, {"given_back": str(s.run["state"])}, [back])
    record.commit(record.Commit(s.workspace, s.id, [entry], token=int(s.run["token"])))
    return "given back"


def _keep(s: Session) -> None:
    try:
        s.flush()
    except (LostRace, StaleVersion, IllegalMove):
        # Its attempt was given up meanwhile, or its effect moved: the lease must end all the same.
        keep_answer(s)


def _release(s: Session, error: Exception) -> None:
    told = {"let_go": getattr(error, "code", type(error).__name__), "said": str(error)[:1000]}
    after, tries = 0.0, int(s.run["tries"])
    if not isinstance(error, RunsError):
        told["evidence"] = "".join(traceback.format_exception(error))[-EVIDENCE_KEPT:]
        after = PAUSE
    if isinstance(error, DatabaseError):
        # The record was away: not a try that this run could have used.
        tries = max(tries - 1, 0)
    back = record.run_moves({"lease_owner": None, "tries": tries}, times={"wake_at": after}, soonest=True)
    entry = Entry(EventKind.RUN_ADVANCED, told, [back])
    failpoints.hit("release.before_commit")
    record.commit(record.Commit(s.workspace, s.id, [entry], token=int(s.run["token"])))
    failpoints.hit("release.after_commit")
