"""Scenes beyond the order: children, pauses, versions, drains, messages of the other side, a restored backup, plans."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.management import call_command

from recovery.actions import dependencies, drains, pauses
from recovery.actions import restore as restore_actions
from runs.models import (
    Callback,
    Capacity,
    Dependency,
    Drain,
    Effect,
    Notice,
    Plan,
    Recovered,
    Restore,
    Review,
    Run,
    WorkspaceUserPermission,
)
from runs.states import ReviewKind, Scope
from tests.faults import deeds
from tests.faults.scene import COMPLETED, Ends, Scene, accept, order, plain
from tests.recovery.engine import plans, versions
from tests.recovery.engine.world import World
from tests.recovery.stage import act, later
from tests.recovery.traffic.test_callbacks import message

if TYPE_CHECKING:
    from tests.faults.conftest import Workers

COMPENSABLE = "tests.recovery.engine.compensable"


def _given(id: UUID, **more: Any) -> dict[str, Any]:
    return {"run": str(id), **more}


# Parents and children


def _family(w: World) -> None:
    w.accept("test.parent", input={"what": [["pay", "ch_1"]]})


def _waiting_family(w: World) -> UUID:
    """A parent that waits for a child that waits to be told."""
    run = w.accept("test.nested", amount=1)
    w.drive()
    return run


def _family_cancelled(w: World) -> None:
    w.cancel(_waiting_family(w))


def _family_paused(w: World) -> None:
    asked = {"actor": w.s.oncall_a, "act": act("pause"), "reason": "an outage over there"}
    pauses.pause(_waiting_family(w), scope=Scope.CHILDREN, **asked)


# Going on after a gap


def _lost_its_starter(w: World) -> UUID:
    """One effect done, one ready; whoever started it may not any more; more than a minute passes."""
    run = w.accept("test.chain", "pay", "slow")
    w.advance(run)
    WorkspaceUserPermission.objects.filter(user=w.s.oncall_a).delete()
    later(seconds=61)
    return run


def _asked(w: World) -> dict[str, Any]:
    run = _lost_its_starter(w)
    w.advance_anyway(run)
    (review,) = Review.objects.filter(run_id=run, kind=ReviewKind.RESUMPTION, state="open")
    return _given(run, report=str(review.why["facts"]["report"]))


def _to_be_looked_at(w: World) -> None:
    run = _lost_its_starter(w)
    deeds.run_actions.look_again(run, actor=w.s.oncall_g, act=act("look"))


def _older_version(w: World) -> None:
    """It waits as version 1 of its type; whoever goes on with it knows only version 2."""
    versions.use(versions.first())
    run = versions.waiting(w)
    deeds.know(deeds.NEWER)
    w.signal(run, "told")


def _broken(w: World) -> None:
    w.accept("test.broken", mode="raises")


def _quarantined(w: World) -> dict[str, Any]:
    _broken(w)
    w.drive()
    (run,) = Run.objects.all()
    return _given(run.pk, version=run.version)


# Traffic


def _payments(w: World) -> Dependency:
    return Dependency.objects.get(workspace=w.s.here, name="payments")


def _held(w: World) -> None:
    """Two refunds wait, since somebody holds the dependency. Its drain would ask nobody."""
    Dependency.objects.update(canary=1, asks_to_go_ahead=False, warm_up=0)
    dependencies.hold(_payments(w).pk, actor=w.s.oncall_a, act=act("hold"), reason="outage")
    for run in [w.accept("test.many", "pay") for _ in range(2)]:
        w.advance(run)


def _waiting_for_it(w: World) -> None:
    """A refund arrives for a dependency that is held."""
    dependencies.hold(_payments(w).pk, actor=w.s.oncall_a, act=act("hold"), reason="outage")
    w.accept("test.many", "pay")


def _let_go(w: World) -> None:
    w.drive(jump=timedelta(minutes=15))
    assert Review.objects.filter(kind=ReviewKind.NOT_SENDING, state="open").count() == 1
    dependencies.release(_payments(w).pk, actor=w.s.oncall_a, act=act("release"), reason="they are back")


def _draining(w: World) -> None:
    _held(w)
    drains.start(_payments(w).pk, actor=w.s.oncall_a, act=act("drain"), reason="they are back")


def _drained(w: World) -> None:
    (drain,) = Drain.objects.all()
    assert (drain.state, drain.total, _payments(w).draining) == ("drained", 2, None)


def _turned_away(w: World) -> None:
    """Two calls are turned away, which is enough to call no more for a while."""
    Capacity.objects.update(breaker_least=2)
    w.sandbox.dial("payments", reply="overload", times=2)
    for _ in range(3):
        w.accept("test.many", "pay")


def _closed_again(w: World) -> None:
    assert {c.state for c in Capacity.objects.all()} == {"closed"}
    assert not Review.objects.filter(kind=ReviewKind.NOT_SENDING, state="open").exists()


def _unanswered(w: World) -> dict[str, Any]:
    """The refund happened and the answer was lost; now they tell of it by themselves."""
    w.sandbox.dial("payments", reply="drop", times=1)
    w.advance(accept(w, "orders.cancel", order("payments")))
    return {"body": message(Effect.objects.get()).decode()}


def _heard_once(w: World) -> None:
    assert [c.state for c in Callback.objects.all()] == ["matched"]


def _strange(w: World) -> dict[str, Any]:
    plain(w)
    return {"body": '{"type": "refund.succeeded", "data": {"reference": "refund:of-another"}}'}


def _aside_once(w: World) -> None:
    assert [c.state for c in Callback.objects.all()] == ["aside"]
    assert Review.objects.filter(kind=ReviewKind.CALLBACK_ASIDE, state="open").count() == 1


# Telling people


def _to_be_told(w: World, forks: Workers) -> None:
    call_command("notices", workspace=w.s.here.slug, webhook=forks.hears.url, kinds=[])
    accept(w, "orders.cancel", order("payments", 120_500))
    w.hears = forks.hears  # type: ignore[attr-defined]


def _told(w: World) -> None:
    """One message, whatever the number of times it was sent; whoever died with it sent it again under the same id."""
    (notice,) = Notice.objects.all()
    ids = [headers["webhook-id"] for headers, _ in w.hears.heard]  # type: ignore[attr-defined]
    assert (notice.state, set(ids)) == ("sent", {str(notice.pk)})
    assert len(ids) <= 2


# An older backup


def _restored(w: World, forks: Workers) -> dict[str, Any]:
    """At the backup: one run accepted, one refund ready, one unknown, one waits for signatures. Then they go on."""
    b = forks.backups(w)
    deeds.Sweep().run_once()
    w.rung.clear()
    w.accept("test.chain", "pay", "pay")
    w.advance(w.accept("test.many", "slow"))
    w.sandbox.dial("payments", reply="drop", times=1)
    w.advance(w.accept("test.many", "pay"))
    w.advance(w.accept("test.many", "pay", amount=120_500))
    b.take()
    w.drive()
    b.put_back()
    w.backups = b  # type: ignore[attr-defined]
    return {"outside": str(b.outside), "only": "test."}


def _released(w: World) -> None:
    """Two people let things be sent again."""
    w.backups.go_on()  # type: ignore[attr-defined]
    (restore,) = Restore.objects.filter(workspace=w.s.here)
    given = {"actor": w.s.oncall_a, "act": act("ask"), "reason": "read through"}
    restore_actions.ask_release(restore.pk, **given)
    given = {"actor": w.s.approver_b, "act": act("let"), "reason": "seen"}
    restore_actions.answer_release(restore.pk, confirm=True, **given)


def _known_again(w: World) -> None:
    assert Restore.objects.filter(workspace=w.s.here).count() == 1
    assert Recovered.objects.filter(workspace=w.s.here, met_by=None).count() == 0


# Mending


def _trip(w: World) -> None:
    """A trip with a flight and a hotel whose last step has both mended."""
    deeds.know(COMPENSABLE)
    w.accept("trip.book", "flight", "hotel", mode="mend")


def _mended_once(w: World) -> None:
    (plan,) = Plan.objects.all()
    plans.sound(w, plan)
    assert plan.state == "compensated"
    assert [w.applied(e) for e in plans.mends(plan)] == [1, 1]


def _paid(n: int) -> tuple[str, str, int]:
    return (f"refund:ch_{n}", "succeeded", 1)


def _ran(*n: int) -> tuple[str, list[tuple[str, str, int]]]:
    return ("completed", [_paid(one) for one in n])


_PAUSED: Ends = [("paused", []), ("paused", [])]
_RESTORED: Ends = [_ran(1, 2), _ran(3), _ran(4), ("waiting", [("refund:ch_5", "awaiting_approval", 0)])]
_MENDED: Ends = [
    ("compensated", [("trip.flight:ch_1", "compensated", 1), ("trip.hotel:ch_2", "compensated", 1)]),
    ("completed", [("compensate", "succeeded", 1)] * 2),
]

WIDER = (
    Scene("family", _family, [("completed", []), _ran(1)]),
    Scene("family cancelled", _family_cancelled, [("cancelled", []), ("cancelled", [])]),
    Scene("family paused", _family_paused, _PAUSED),
    Scene("pause", _waiting_family, _PAUSED, asked={"what": "pause"}),
    # Where nobody has asked yet, what is ready goes: it was decided on before its run was away.
    Scene(
        "looked at",
        _to_be_looked_at,
        [("waiting", [_paid(1), ("refund:ch_2", "ready", 0)])],
        or_else=[("waiting", [_paid(1), _paid(2)])],
    ),
    Scene("go on", _asked, [_ran(1, 2)], asked={"what": "go_on"}),
    Scene("older version", _older_version, [("completed", [])], asked={"what": "work", "contracts": deeds.NEWER}),
    Scene("quarantined", _broken, [("quarantined", [])]),
    Scene("release", _quarantined, [("quarantined", [])], asked={"what": "release"}),
    Scene("thought long", lambda w: w.accept("test.thinker", mode="long", again=1), [("completed", [])]),
    Scene("held", _waiting_for_it, [_ran(1)], then=_let_go),
    Scene("drain", _held, [_ran(1), _ran(2)], asked={"what": "drain"}, also=_drained),
    Scene("draining", _draining, [_ran(1), _ran(2)], also=_drained),
    Scene("turned away", _turned_away, [_ran(1), _ran(2), _ran(3)], also=_closed_again),
    Scene("heard", _unanswered, COMPLETED, asked={"what": "hear"}, also=_heard_once),
    Scene("set aside", _strange, COMPLETED, asked={"what": "hear"}, also=_aside_once),
    Scene("told", _to_be_told, [("waiting", [("refund:ch_1", "awaiting_approval", 0)])], with_forks=True, also=_told),
    Scene(
        "restored",
        _restored,
        _RESTORED,
        asked={"what": "recover"},
        with_forks=True,
        then=_released,
        also=_known_again,
    ),
    Scene("mended", _trip, _MENDED, asked={"what": "work", "contracts": COMPENSABLE}, also=_mended_once),
)
