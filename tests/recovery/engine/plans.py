"""A world with contracts that can be mended, and what tests ask of plans."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest

from recovery.actions import compensations as actions
from recovery.actions import verdicts
from recovery.contract import registry
from runs.models import Approval, Effect, Plan, Run
from runs.record import Act
from runs.states import EffectState
from tests.recovery import signers
from tests.recovery.engine import compensable
from tests.recovery.engine.world import World
from tests.recovery.stage import act

SOON = timedelta(hours=1)


@pytest.fixture
def trips(w: World) -> Iterator[World]:
    """``w`` with the contracts of :mod:`tests.recovery.engine.compensable`; its fixture takes them out again."""
    registry.register_module(compensable, "tests")
    assert [p for p in registry.problems() if p.subject.startswith("trip.")] == []
    yield w
    for plan in Plan.objects.all():
        sound(w, plan)


def sound(w: World, plan: Plan) -> None:
    """At most one compensation of each effect happened, by the record and by the other side (invariant 16)."""
    for id in {UUID(item["effect"]) for item in plan.items}:
        mending = list(Effect.objects.filter(mends_id=id))
        assert sum(w.applied(e) for e in mending) <= 1, "mended twice"
        shown = Effect.objects.get(pk=id).state == EffectState.COMPENSATED
        assert not shown or any(e.state == EffectState.SUCCEEDED for e in mending), "shown as mended without it"


def trip(w: World, *names: str, mode: str = "", **data: object) -> UUID:
    """A trip that has been driven as far as it goes."""
    run = w.accept("trip.book", *names, mode=mode, **data)
    w.drive(jump=SOON)
    return run


def plan_of(run: UUID) -> Plan:
    return Plan.objects.filter(run_id=run).order_by("-id")[0]


def carrying(plan: Plan) -> Run:
    """The run that carries the plan out."""
    return Run.objects.get(pk=Plan.objects.get(pk=plan.pk).mending_run_id)


def mends(plan: Plan) -> list[Effect]:
    """The effects of the plan's run, in order."""
    return list(Effect.objects.filter(run=carrying(plan)).order_by("ordinal"))


def propose(w: World, run: UUID, how: Act | None = None) -> Plan:
    actions.propose(run, actor=w.s.oncall_a, act=how or act("propose"), reason="the traveller cancelled")
    return plan_of(run)


def start(w: World, plan: Plan, how: Act | None = None, digest: str = "", actor: object = None) -> object:
    return actions.start(
        plan.pk,
        actor=actor or w.s.oncall_a,  # type: ignore[arg-type]
        act=how or act("start"),
        reason="as discussed",
        digest=digest or Plan.objects.get(pk=plan.pk).digest,
    )


def accept_rest(w: World, plan: Plan) -> None:
    """One person proposes to leave the rest as it is, another one confirms."""
    digest = Plan.objects.get(pk=plan.pk).digest
    actions.accept_rest(plan.pk, actor=w.s.oncall_a, act=act("accept"), reason="too late", digest=digest)
    actions.confirm_rest(plan.pk, actor=w.s.oncall_g, act=act("confirm"), confirm=True, reason="yes", digest=digest)


def sign(w: World, effect: Effect) -> None:
    """Both signatures that a contract of these asks for."""
    for who in (w.s.approver_b, w.s.approver_c):
        approval = Approval.objects.get(effect=effect, revision=effect.revision)
        signers.sign(approval, who)


def decide(w: World, effect: Effect, says: str) -> None:
    """Two people say what happened."""
    effect.refresh_from_db()
    done = verdicts.record(
        effect.pk,
        actor=w.s.oncall_a,
        act=act("verdict"),
        says=says,
        reason="they said so",
        evidence=[],
        version=effect.version,
        statement="by telephone",
    )
    verdicts.confirm(
        UUID(str(done.facts["verdict"])),
        actor=w.s.oncall_g,
        act=act("confirm"),
        confirm=True,
        reason="heard it too",
        digest=str(done.facts["digest"]),
    )
