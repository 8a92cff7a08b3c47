"""What one page needs, read at once: a fixed number of queries however much the run holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import (
    FETCH_PEERS,
    FETCH_RAISE,
    BinaryField,
    BooleanField,
    ExpressionWrapper,
    F,
    Func,
    Prefetch,
    Q,
    QuerySet,
    TextField,
    Value,
)

from runs.models import (
    Action,
    Approval,
    Attempt,
    Checkpoint,
    Effect,
    EffectLink,
    Event,
    Evidence,
    Person,
    Review,
    Run,
    Signature,
    Verdict,
)
from runs.queries import paging, sight
from runs.queries.paging import Page
from runs.states import ReviewState

MOST_EFFECTS: Final = 200


@dataclass(frozen=True, slots=True)
class EventsPage:
    """Lines of history in sequence. ``earlier``: the next ``before``; ``later``: the next ``after``."""

    items: list[Event]
    earlier: int | None
    later: int | None


@dataclass(frozen=True, slots=True)
class RunDetail:
    """A run and what its page shows. ``effects``: the first MOST_EFFECTS, with everything but raw evidence.

    ``checkpoints``: newest first, as ``checkpoints_page`` gives them. ``links``: other runs' effects it waits on.
    """

    run: Run
    effects: list[Effect]
    more_effects: bool
    events: EventsPage
    checkpoints: list[Checkpoint]
    reviews: list[Review]
    links: list[EffectLink]


@dataclass(frozen=True, slots=True)
class EffectDetail:
    """An effect with everything said about it. ``review``: the open one that asks for a person, if any."""

    effect: Effect
    attempts: list[Attempt]
    evidence: list[Evidence]
    approvals: list[Approval]
    verdicts: list[Verdict]
    reviews: list[Review]
    links: list[EffectLink]

    @property
    def run(self) -> Run:
        return self.effect.run

    @property
    def proposed(self) -> Verdict | None:
        """The decision that waits for a second person."""
        return next((verdict for verdict in self.verdicts if verdict.state == "proposed"), None)


@dataclass(frozen=True, slots=True)
class ApprovalDetail:
    """A request for signatures. ``previous``: the revision before; ``newest``: the one in force."""

    approval: Approval
    signatures: list[Signature]
    previous: Approval | None
    newest: Approval
    review: Review | None

    @property
    def standing(self) -> list[Signature]:
        """Signatures that count: signed and not withdrawn."""
        return [signature for signature in self.signatures if signature.state == "signed"]


def run_detail(
    person: Person,
    id: UUID,
    *,
    within: UUID | None = None,
    after: int | None = None,
    before: int | None = None,
    events: int = 100,
    checkpoints: int = 1,
    below: int | None = None,
) -> RunDetail:
    """The run's page, with the last ``events`` lines of history, or those after or before one. NotFound.

    ``checkpoints``: how many, the newest, or those ``below`` a sequence number.
    """
    run = sight.only(
        Run.objects.select_related("workspace", "started_by", "cancel_by"),
        person,
        id,
        within,
    )
    of_run = Effect.objects.filter(run=run, workspace=run.workspace_id).select_related("dependency", "group")
    effects = list(_with_everything(of_run, raw=False).order_by("ordinal")[: MOST_EFFECTS + 1])
    for effect in effects:
        effect.run, effect.workspace = run, run.workspace
    links = EffectLink.objects.filter(run=run, workspace=run.workspace_id)
    return RunDetail(
        run=run,
        effects=effects[:MOST_EFFECTS],
        more_effects=len(effects) > MOST_EFFECTS,
        events=events_page(run, after=after, before=before, limit=events),
        checkpoints=checkpoints_page(run, before=below, limit=checkpoints),
        reviews=list(_open_reviews().filter(run=run, workspace=run.workspace_id)),
        links=list(links.select_related("effect__run", "effect__dependency").order_by("id")[:MOST_EFFECTS]),
    )


def events_page(
    run: Run,
    *,
    after: int | None = None,
    before: int | None = None,
    limit: int = 100,
    kinds: tuple[str, ...] = (),
) -> EventsPage:
    """Lines of a run's history: the last ``limit``, or those after or before a sequence number. One query."""
    limit = paging.clamp(limit)
    rows = Event.objects.filter(run=run, workspace=run.workspace_id).select_related("actor").fetch_mode(FETCH_RAISE)
    if kinds:
        rows = rows.filter(kind__in=kinds)
    if after is not None:
        found = list(rows.filter(seq__gt=after).order_by("seq")[: limit + 1])
        items = found[:limit]
        earlier = items[0].seq if items and after > 0 else None
        return EventsPage(items, earlier, items[-1].seq if len(found) > limit else None)
    if before is not None:
        rows = rows.filter(seq__lt=before)
    found = list(rows.order_by("-seq")[: limit + 1])
    items = found[:limit][::-1]
    later = items[-1].seq if items and before is not None and before <= run.head_seq else None
    return EventsPage(items, items[0].seq if len(found) > limit else None, later)


def effects_page(run: Run, *, cursor: str | None = None, limit: int = 50) -> Page[Effect]:
    """A run's effects in the order they were asked for, with their dependency. Raises BadCursor."""
    limit = paging.clamp(limit)
    at = paging.decode("effects", cursor, int)
    rows = Effect.objects.filter(run=run, workspace=run.workspace_id).select_related("workspace", "dependency", "group")
    rows = rows.defer("body").fetch_mode(FETCH_RAISE)
    if at is None:
        rows = rows.order_by("ordinal")
    elif at.back:
        rows = rows.filter(ordinal__lt=at.key[0]).order_by("-ordinal")
    else:
        rows = rows.filter(ordinal__gt=at.key[0]).order_by("ordinal")
    found = list(rows[: limit + 1])
    for effect in found:
        effect.run = run
    return paging.cut("effects", found, limit, at, lambda effect: (effect.ordinal,))


def checkpoints_page(run: Run, *, before: int | None = None, limit: int = 100) -> list[Checkpoint]:
    """The run's checkpoints, newest first, from below ``before``. One query, which leaves their bytes there.

    Each has ``intact``: whether its stored bytes still match their digest; None for one that is in the archive.
    """
    rows = Checkpoint.objects.filter(run=run, workspace=run.workspace_id).defer("sealed").order_by("-seq")
    if before is not None:
        rows = rows.filter(seq__lt=before)
    stored = Func(
        Func(F("sealed"), function="sha256", output_field=BinaryField()),
        Value("hex"),
        function="encode",
        output_field=TextField(),
    )
    matches = ExpressionWrapper(Q(digest=stored), output_field=BooleanField())
    return list(rows.annotate(intact=matches)[: paging.clamp(limit)])


def effect_detail(person: Person, id: UUID, *, within: UUID | None = None) -> EffectDetail:
    """The effect's page. Raises NotFound."""
    rows = _with_everything(
        Effect.objects.select_related("workspace", "run__started_by", "dependency__capacity", "group"),
        raw=True,
    )
    effect = sight.only(rows, person, id, within)
    links = EffectLink.objects.filter(effect=effect, workspace=effect.workspace_id).select_related("run")
    return EffectDetail(
        effect=effect,
        attempts=list(effect.attempt_set.all()),
        evidence=list(effect.evidence.all()),
        approvals=list(effect.approvals.all()),
        verdicts=list(effect.verdicts.all()),
        reviews=list(_open_reviews().filter(effect=effect, workspace=effect.workspace_id)),
        links=list(links.order_by("id")[:MOST_EFFECTS]),
    )


def approval_detail(person: Person, id: UUID, *, within: UUID | None = None) -> ApprovalDetail:
    """The approval's page. Raises NotFound."""
    rows = Approval.objects.select_related("workspace", "run__started_by", "effect__dependency", "group", "requester")
    approval = sight.only(rows, person, id, within)
    revisions = Approval.objects.filter(effect=approval.effect_id, workspace=approval.workspace_id)
    previous = revisions.filter(revision__lt=approval.revision).order_by("-revision").first()
    newest = revisions.order_by("-revision").first()
    signatures = approval.signatures.select_related("person").order_by("id")
    return ApprovalDetail(
        approval=approval,
        signatures=list(signatures),
        previous=previous,
        newest=approval if newest is None or newest.pk == approval.pk else newest,
        review=_open_reviews().filter(effect=approval.effect_id, approval=approval).first(),
    )


def actions_of(person: Person, id: UUID, *, within: UUID | None = None) -> list[Action]:
    """What ``person`` did under the action id, newest first; empty: nothing that this person did and sees."""
    rows = Action.objects.filter(id=id, actor=person.pk).select_related("workspace")
    return list(sight.visible(rows, person, within).order_by("-at"))


def _with_everything(effects: QuerySet[Effect], *, raw: bool) -> QuerySet[Effect]:
    """``effects`` with attempts, evidence, verdicts, approvals: one query each. ``raw``: evidence as read."""
    evidence = Evidence.objects.select_related("person").order_by("id")
    return effects.fetch_mode(FETCH_PEERS).prefetch_related(
        Prefetch("attempt_set", Attempt.objects.order_by("n")),
        Prefetch("evidence", evidence if raw else evidence.defer("raw")),
        Prefetch(
            "verdicts",
            Verdict.objects.select_related("person", "confirmed_by").order_by("id"),
        ),
        Prefetch(
            "approvals",
            Approval.objects.select_related("group", "requester").order_by("revision"),
        ),
        Prefetch(
            "approvals__signatures",
            Signature.objects.select_related("person").order_by("id"),
        ),
    )


def _open_reviews() -> QuerySet[Review]:
    rows = Review.objects.filter(state=ReviewState.OPEN)
    return rows.select_related("group", "claimed_by", "verdict__person").order_by("due_at", "id")
