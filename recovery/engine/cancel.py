"""A cancel request, carried out: stop new work, settle what is in flight, only then say cancelled.

Reconciliation only reads meanwhile: sending again, even under the same key, could make the cancelled thing happen.
"""

from __future__ import annotations

from recovery import failpoints
from recovery.engine import children, compensating, finish, lineage
from recovery.engine.changes import reason
from recovery.engine.session import Session
from runs import record
from runs.models import Effect
from runs.record import Entry
from runs.states import EFFECT_BLOCKS_END, EffectState, EventKind, RunState, Scope, WaitingOn


def settle(s: Session) -> str:
    """One step towards cancelled: drop the unsent, end if nothing is open, else release until something settles."""
    failpoints.hit("cancel.before_settle")
    dropped = finish.drop_unsent(s, EffectState.CANCELLED, "run_cancelled")
    with_children = s.run["cancel_scope"] in (Scope.CHILDREN, Scope.PARENT)
    living = children.cancel_all(s) if with_children else lineage.alive(s.id)
    blocking = list(Effect.objects.filter(run_id=s.id, state__in=EFFECT_BLOCKS_END).order_by("ordinal"))
    if dropped:
        s.buffer.append(Entry(EventKind.EFFECT_SETTLED, {"state": EffectState.CANCELLED}, dropped))
    if blocking:
        s.commit(
            [Entry(EventKind.RUN_WAITED, {"on": finish.waits_for(blocking), "to_settle": len(blocking)})],
            run={"lease_owner": None, "tries": 0, "waiting_on": finish.waits_for(blocking), "wait_event": ""},
            changes=(record.reckon(),),
            checkpoint=False,
            soonest=True,
            prior=RunState.CANCELLING,
        )
        return "cancelling"
    if living and with_children:
        # Cancelled is said only when nothing below it can act any more.
        told = {"on": WaitingOn.CHILD, "children": lineage.named(living)}
        s.commit(
            [Entry(EventKind.RUN_WAITED, told)],
            run={"lease_owner": None, "tries": 0, "waiting_on": WaitingOn.CHILD, "wait_event": ""},
            checkpoint=False,
            soonest=True,
            prior=RunState.CANCELLING,
        )
        return "cancelling"
    # "At once" leaves out what would be mended first; what stays is proposed all the same.
    mending = "" if s.run["cancel_at_once"] else compensating.demanded(s)
    if mending:
        return mending
    s.buffer.extend(compensating.proposed(s))
    left = finish.what_stays(s)
    how = {**reason("cancelled", left=len(left)), "left": left}
    if living:
        how["children"] = lineage.named(living)
    # Nothing goes on from here, and a run whose checkpoint cannot be read must be cancellable too.
    finish.close(s, EventKind.RUN_CANCELLED, RunState.CANCELLED, how, checkpoint=False, prior=RunState.CANCELLING)
    return "cancelled"
