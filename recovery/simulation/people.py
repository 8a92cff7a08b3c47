"""What people do in the simulation: they sign, reject, look, decide, cancel; some of it twice, some of it wrongly.

They are honest: who says what happened has looked at the other side's own books. Each action is one function of
``recovery/actions``, as a screen or the API calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from recovery.actions import approvals, effects, reviews, runs, verdicts
from recovery.actions.common import Done
from recovery.simulation import stage
from runs.errors import NotFound, RunEnded, RunsError, StaleVersion
from runs.models import Action, Approval, Effect, Event, Person, Review, Run, Verdict
from runs.record import Act
from runs.states import RUN_ENDED, ApprovalState, EffectState, EventKind, ReviewState, VerdictState

if TYPE_CHECKING:
    from recovery.simulation.world import World

Move = Callable[["World"], str | None]
SAW = {"sentence": "Sends it", "language": "en", "evidence": []}
REASON = "the other side's books say so"


def do(world: World, what: Callable[..., Done], *subject: Any, actor: str, again: bool = True, **given: Any) -> str:
    """One action of ``actor``; sometimes its answer is lost and it is done again (invariant 15)."""
    act = Act.over(world.ids(), what.__name__, {"given": str(sorted(given)), "subject": str(subject)})
    person = world.stage.people[actor]
    try:
        done = what(*subject, actor=person, act=act, **given)
    except RunsError as refused:
        world.exercised[5] += isinstance(refused, RunEnded)
        return world.refused(refused)
    if again and world.rng.random() < 0.3:
        _again(world, done, what, subject, person, act, given)
    return "done"


def _again(
    world: World, first: Done, what: Callable[..., Done], subject: Any, person: Person, act: Act, given: dict[str, Any]
) -> None:
    world.exercised[15] += 1
    lines = Event.objects.exclude(kind=EventKind.ACTION_REFUSED).count()
    try:
        second = what(*subject, actor=person, act=act, **given)
    except RunsError as refused:
        return world.violate(15, f"{what.__name__} again was refused: {refused.code}")
    same = (second.event, second.at) == (first.event, first.at)
    if not second.replayed or not same or Event.objects.exclude(kind=EventKind.ACTION_REFUSED).count() != lines:
        world.violate(15, f"{what.__name__} again did something")
    if Action.objects.filter(pk__in=[(world.stage.home.pk, person.pk, act.route, act.id)]).count() > 1:
        world.violate(15, f"{what.__name__} is kept twice")


def one(world: World, rows: Any) -> Any:
    """One of ``rows``, whichever; None where there is none."""
    found = list(rows.order_by("pk"))
    return world.rng.choice(found) if found else None


def sign(world: World) -> str | None:
    """Somebody signs a request, whether they may or not."""
    approval = one(world, Approval.objects.filter(state=ApprovalState.PENDING))
    if approval is None:
        return None
    actor = world.rng.choice("BBCCFFAG")
    given = {"reason": REASON, "digest": approval.digest, "saw": SAW}
    return f"{actor} signs {world.label(approval.pk)}: " + do(world, approvals.sign, approval.pk, actor=actor, **given)


def reject(world: World) -> str | None:
    """Somebody rejects a request, perhaps one that is signed in full."""
    approval = one(world, Approval.objects.filter(state__in=[ApprovalState.PENDING, ApprovalState.GRANTED]))
    if approval is None:
        return None
    actor = world.rng.choice("BCF")
    given = {"reason": "not this one", "digest": approval.digest, "saw": SAW}
    said = do(world, approvals.reject, approval.pk, actor=actor, **given)
    return f"{actor} rejects {world.label(approval.pk)}: {said}"


def withdraw(world: World) -> str | None:
    """Somebody takes a signature back."""
    open_ones = [ApprovalState.PENDING, ApprovalState.GRANTED, ApprovalState.CONSUMED]
    approval = one(world, Approval.objects.filter(state__in=open_ones, signatures__state="signed").distinct())
    if approval is None:
        return None
    actor = world.rng.choice("BCF")
    said = do(world, approvals.withdraw, approval.pk, actor=actor, reason="second thoughts")
    return f"{actor} withdraws from {world.label(approval.pk)}: {said}"


def renew(world: World) -> str | None:
    """Somebody asks again for signatures that ran out."""
    waiting = Effect.objects.filter(state=EffectState.AWAITING_APPROVAL)
    approval = one(world, Approval.objects.filter(effect__in=waiting).exclude(state=ApprovalState.SUPERSEDED))
    if approval is None:
        return None
    said = do(world, approvals.renew, approval.pk, actor="G", reason="still wanted")
    return f"G renews {world.label(approval.pk)}: {said}"


def look(world: World) -> str | None:
    """Somebody presses "check now"."""
    effect = one(world, Effect.objects.filter(state__in=effects.CHECKABLE))
    if effect is None:
        return None
    world.subject = effect.pk
    actor = "E" if effect.workspace_id == world.stage.next_door.pk else "A"
    return f"{actor} checks {world.label(effect.pk)}: " + do(world, effects.check, effect.pk, actor=actor)


UNDECIDED = (EffectState.UNKNOWN, EffectState.DISPUTED, EffectState.ACCEPTED)


def decide(world: World) -> str | None:
    """Somebody says what happened, by the other side's books; not while something may still arrive."""
    effect = one(world, Effect.objects.filter(state__in=UNDECIDED))
    if effect is None or world.may_arrive(effect):
        return None
    return say(world, effect)


def say(world: World, effect: Effect) -> str:
    """What the books say of ``effect``, as a verdict."""
    says = "happened" if world.network.applied(effect.sent_key) else "did_not_happen"
    given: dict[str, Any] = {
        "says": says,
        "reason": REASON,
        "evidence": [],
        "version": effect.version,
        "statement": REASON,
    }
    actor = "E" if effect.workspace_id == world.stage.next_door.pk else "A"
    said = do(world, verdicts.record, effect.pk, actor=actor, **given)
    return f"{actor} says {world.label(effect.pk)} {says}: {said}"


def confirm(world: World) -> str | None:
    """A second person answers a proposed decision, by the books again; the first one may try it, too."""
    verdict = one(world, Verdict.objects.select_related("effect").filter(state=VerdictState.PROPOSED))
    if verdict is None or world.may_arrive(verdict.effect):
        return None
    actor = world.rng.choice("GGGA") if verdict.workspace_id == world.stage.home.pk else "H"
    return answer(world, verdict, actor)


def answer(world: World, verdict: Verdict, actor: str) -> str:
    """The second person's answer to ``verdict``."""
    right = bool(world.network.applied(verdict.effect.sent_key)) == (verdict.says == "happened")
    given: dict[str, Any] = {"confirm": right, "reason": REASON, "digest": verdict.digest}
    said = do(world, verdicts.confirm, verdict.pk, actor=actor, **given)
    if said == f"refused: {StaleVersion.code}":
        # Something new is known since: nobody can confirm it any more, so it is taken off the table.
        said += ", then refused: " + do(world, verdicts.confirm, verdict.pk, actor=actor, **{**given, "confirm": False})
    return f"{actor} {'confirms' if right else 'refuses'} {world.label(verdict.pk)}: {said}"


def _live(world: World) -> Run | None:
    rows = Run.objects.all() if world.rng.random() < 0.2 else Run.objects.exclude(state__in=RUN_ENDED)
    run: Run | None = one(world, rows)
    return run


def on_call(world: World, run: Run) -> str:
    """Who is on call for the run's workspace."""
    return "E" if run.workspace_id == world.stage.next_door.pk else "G"


def cancel(world: World) -> str | None:
    """Somebody cancels a run."""
    run = _live(world)
    if run is None:
        return None
    actor = on_call(world, run)
    said = do(world, runs.cancel, run.pk, actor=actor, reason="not wanted any more")
    return f"{actor} cancels {world.label(run.pk)}: {said}"


def look_again(world: World) -> str | None:
    """Somebody has a run looked at now."""
    run = _live(world)
    if run is None:
        return None
    actor = on_call(world, run)
    return f"{actor} looks at {world.label(run.pk)} again: " + do(world, runs.look_again, run.pk, actor=actor)


def signal(world: World) -> str | None:
    """Somebody sends a run what it may wait for, or changes its order."""
    run = _live(world)
    if run is None:
        return None
    name, payload = world.rng.choice(
        [("told", {"text": "now"}), ("order.changed", {"amount": world.rng.choice([4200, 150_000])})]
    )
    said = do(world, runs.signal, run.pk, name, payload, actor=on_call(world, run))
    return f"signal {name} to {world.label(run.pk)}: {said}"


def claim(world: World) -> str | None:
    """Somebody takes an item of the inbox."""
    review = one(world, Review.objects.filter(state=ReviewState.OPEN, workspace=world.stage.home))
    if review is None:
        return None
    actor = world.rng.choice("AG")
    return f"{actor} claims {world.label(review.pk)}: " + do(world, reviews.claim, review.pk, actor=actor)


def outsider(world: World) -> str | None:
    """Somebody of next door tries what is not theirs (invariant 14)."""
    run = one(world, Run.objects.filter(workspace=world.stage.home))
    if run is None:
        return None
    before = Event.objects.filter(run_id=run.pk).count()
    world.exercised[14] += 1
    tries: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
        (runs.cancel, (run.pk,), {"reason": "theirs"}),
        (runs.signal, (run.pk, "told", {}), {}),
        (runs.look_again, (run.pk,), {}),
    ]
    approval = Approval.objects.filter(run_id=run.pk, state=ApprovalState.PENDING).first()
    if approval is not None:
        tries.append((approvals.sign, (approval.pk,), {"reason": "x", "digest": approval.digest, "saw": SAW}))
    what, subject, given = world.rng.choice(tries)
    actor = world.rng.choice("EH")
    try:
        what(*subject, actor=world.stage.people[actor], act=Act.over(world.ids(), what.__name__, {}), **given)
    except NotFound:
        if Event.objects.filter(run_id=run.pk).count() != before:
            world.violate(14, f"{what.__name__} from next door left a line")
    except RunsError as refused:
        # A run's own state may be told only to who sees it.
        world.violate(14, f"{what.__name__} from next door was told {refused.code}")
    else:
        world.violate(14, f"{what.__name__} from next door was done")
    return f"{actor} tries {what.__name__} on {world.label(run.pk)}"


def leave(world: World) -> str | None:
    """A signer's account is closed, or opened again."""
    actor = world.rng.choice("BCF")
    person = Person.objects.get(pk=world.stage.people[actor].pk)
    stage.activate(person, not person.is_active)
    return f"{actor}'s account is {'closed' if person.is_active else 'open again'}"


MOVES: tuple[tuple[Move, int], ...] = (
    (sign, 14),
    (reject, 1),
    (withdraw, 2),
    (renew, 2),
    (look, 4),
    (decide, 4),
    (confirm, 5),
    (cancel, 2),
    (look_again, 2),
    (signal, 4),
    (claim, 1),
    (outsider, 2),
    (leave, 1),
)
"""What people do, and how often beside each other."""
