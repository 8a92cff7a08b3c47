"""The inbox: open reviews, the most pressing first, and what Recourse is still checking by itself."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.db.models import (
    FETCH_RAISE,
    Case,
    Count,
    Exists,
    IntegerField,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)

from runs import access, clock
from runs.models import Approval, Effect, Person, Review, Severity, Signature
from runs.queries import paging
from runs.queries.paging import MOST_COUNTED, Page
from runs.states import ApprovalState, EffectState, ReviewState, SignatureState

View = Literal["mine", "unclaimed", "everyone"]

CHECKING = (EffectState.UNKNOWN, EffectState.ACCEPTED)
"""States of an effect whose outcome Recourse looks for; with an open review it is a person's turn."""

_PAYLOADS = (
    "effect__body",
    "effect__params",
    "effect__request",
    "effect__result",
    "approval__body",
    "approval__fields",
)


@dataclass(frozen=True, slots=True)
class InboxRow:
    """One review. ``signed`` of ``needed`` signatures, where it is about an approval.

    ``can_sign`` is a hint for the row ("You can sign"): the signing itself decides.
    """

    review: Review
    late: bool
    needed: int
    signed: int
    you_signed: bool
    can_sign: bool


@dataclass(frozen=True, slots=True)
class InboxPage(Page[InboxRow]):
    """``as_of``: the time that "late" was judged by; kept by the cursor, so that the order stays the same."""

    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class InboxCounts:
    """Open reviews, each number stopped at MOST_COUNTED. ``late`` and ``high`` are of everyone's."""

    mine: int
    unclaimed: int
    everyone: int
    late: int
    high: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Checking:
    """What Recourse checks by itself: how many effects, and when the first of them becomes a person's."""

    count: paging.Count
    next_at: datetime | None


def inbox_page(
    workspace: UUID,
    person: Person,
    *,
    view: View = "everyone",
    kind: Collection[str] = (),
    dependency: Collection[str] = (),
    cursor: str | None = None,
    limit: int = 50,
) -> InboxPage:
    """A page of open reviews: late first, then what cannot be reversed, then by due time, then by id.

    ``kind``: of ReviewKind. ``dependency``: names. What is not loaded raises. Raises BadCursor.
    """
    limit = paging.clamp(limit)
    at = paging.decode("inbox", cursor, int, paging.moment, UUID)
    as_of = _as_of(at) or clock.now()
    rows = _ranked(_open(workspace, person, view, kind, dependency), as_of)
    if at is None:
        rows = rows.order_by("rank", "due_at", "id")
    elif at.back:
        rows = rows.filter(_beyond(at, "lt")).order_by("-rank", "-due_at", "-id")
    else:
        rows = rows.filter(_beyond(at, "gt")).order_by("rank", "due_at", "id")
    # Which ones first, and only then what each shows: joined at once, every open item would be, to be sorted.
    ids = list(rows.values_list("pk", flat=True)[: limit + 1])
    whole = {row.pk: row for row in _ranked(_whole(Review.objects.filter(pk__in=ids)), as_of)}
    found = [whole[id] for id in ids]
    page = paging.cut("inbox", found, limit, at, _key, kept=as_of.isoformat())
    items = _rows(workspace, person, page.items, as_of)
    return InboxPage(items, page.next, page.previous, as_of)


def inbox_rows(workspace: UUID, person: Person, ids: Collection[UUID]) -> list[InboxRow]:
    """The reviews ``ids`` of the workspace, closed ones too, oldest first: for rows read again."""
    rows = Review.objects.filter(workspace=workspace, pk__in=list(ids)[: paging.MOST_ROWS]).order_by("id")
    return _rows(workspace, person, list(_whole(rows)), clock.now())


def inbox_counts(workspace: UUID, person: Person) -> InboxCounts:
    """The numbers of the tabs. One query beside the clock's."""
    now = clock.now()
    rows = Review.objects.filter(workspace=workspace, state=ReviewState.OPEN).order_by()
    rows = rows.annotate(is_late=_late(now))[: MOST_COUNTED + 1]
    found = rows.aggregate(
        mine=Count("pk", filter=Q(claimed_by=person.pk)),
        unclaimed=Count("pk", filter=Q(claimed_by=None)),
        everyone=Count("pk"),
        late=Count("pk", filter=Q(is_late=True)),
        high=Count("pk", filter=Q(severity=Severity.HIGH)),
    )
    return InboxCounts(**{name: min(n, MOST_COUNTED) for name, n in found.items()}, at=now)


def being_checked(workspace: UUID) -> Checking:
    """How many effects are unknown or accepted and not yet a person's."""
    rows = _checking(workspace)[: MOST_COUNTED + 1]
    found = rows.aggregate(n=Count("pk"), next_at=Min("review_at"))
    return Checking(paging.Count.of(found["n"], clock.now()), found["next_at"])


def being_checked_page(workspace: UUID, *, cursor: str | None = None, limit: int = 50) -> Page[Effect]:
    """Those effects, oldest first, with run and dependency; payloads are not loaded. Raises BadCursor."""
    limit = paging.clamp(limit)
    at = paging.decode("checking", cursor, UUID)
    rows = _checking(workspace).select_related("workspace", "run", "dependency")
    rows = rows.defer("body", "params", "request", "result").fetch_mode(FETCH_RAISE)
    if at is None:
        rows = rows.order_by("id")
    elif at.back:
        rows = rows.filter(id__lt=at.key[0]).order_by("-id")
    else:
        rows = rows.filter(id__gt=at.key[0]).order_by("id")
    return paging.cut("checking", list(rows[: limit + 1]), limit, at, lambda effect: (effect.pk,))


def _checking(workspace: UUID) -> QuerySet[Effect]:
    open_reviews = Review.objects.filter(effect=OuterRef("pk"), state=ReviewState.OPEN)
    return Effect.objects.filter(
        ~Exists(open_reviews), workspace=workspace, state__in=CHECKING, next_check_at__isnull=False
    ).order_by()


def _whole(rows: QuerySet[Review]) -> QuerySet[Review]:
    """``rows`` with everything a row of the inbox shows, without payloads; what is not loaded raises."""
    rows = rows.select_related(
        "workspace",
        "run__started_by",
        "effect__dependency",
        "approval__group",
        "approval__requester",
        "verdict__person",
        "group",
        "claimed_by",
    )
    return rows.defer(*_PAYLOADS).fetch_mode(FETCH_RAISE)


def _open(
    workspace: UUID,
    person: Person,
    view: View,
    kind: Collection[str],
    dependency: Collection[str],
) -> QuerySet[Review]:
    rows = Review.objects.filter(workspace=workspace, state=ReviewState.OPEN)
    if view == "mine":
        rows = rows.filter(claimed_by=person.pk)
    elif view == "unclaimed":
        rows = rows.filter(claimed_by=None)
    if kind:
        rows = rows.filter(kind__in=kind)
    if dependency:
        rows = rows.filter(effect__dependency__name__in=dependency)
    return rows


def _late(as_of: datetime) -> Case:
    # due at t means late from t on: the rule of every clock here (R6)
    return Case(When(due_at__lte=as_of, then=Value(True)), default=Value(False))


def _ranked(rows: QuerySet[Review], as_of: datetime) -> QuerySet[Any]:
    return rows.annotate(
        rank=Case(
            When(due_at__lte=as_of, severity=Severity.HIGH, then=Value(0)),
            When(due_at__lte=as_of, then=Value(1)),
            When(severity=Severity.HIGH, then=Value(2)),
            default=Value(3),
            output_field=IntegerField(),
        )
    )


def _key(review: Any) -> tuple[Any, ...]:
    return (review.rank, review.due_at.isoformat(), review.pk)


def _beyond(at: paging.Cursor, side: str) -> Q:
    rank, due_at, id = at.key
    return (
        Q(**{f"rank__{side}": rank})
        | Q(**{"rank": rank, f"due_at__{side}": due_at})
        | Q(**{"rank": rank, "due_at": due_at, f"id__{side}": id})
    )


def _as_of(at: paging.Cursor | None) -> datetime | None:
    if at is None:
        return None
    try:
        return paging.moment(at.kept)
    except ValueError as error:
        raise paging.BadCursor(cursor=at.kept[:80]) from error


def _rows(workspace: UUID, person: Person, reviews: list[Review], as_of: datetime) -> list[InboxRow]:
    approvals = [review.approval_id for review in reviews if review.approval_id]
    standing: dict[UUID, set[UUID]] = {}
    groups: set[UUID] = set()
    may_sign = False
    if approvals:
        rows = Signature.objects.filter(approval__in=approvals, state=SignatureState.SIGNED)
        for asked, signer in rows.values_list("approval_id", "person_id"):
            standing.setdefault(asked, set()).add(signer)
        groups = set(person.recourse_groups.filter(workspace=workspace).values_list("pk", flat=True))
        may_sign = access.can(person, workspace, "sign")
    made = []
    for review in reviews:
        approval = review.approval
        signers = standing.get(approval.pk, set()) if approval else set()
        made.append(
            InboxRow(
                review=review,
                late=review.due_at <= as_of,
                needed=approval.needed if approval else 0,
                signed=len(signers),
                you_signed=person.pk in signers,
                can_sign=bool(
                    approval and may_sign and person.pk not in signers and _eligible(review, approval, person, groups)
                ),
            )
        )
    return made


def _eligible(review: Review, approval: Approval, person: Person, groups: set[UUID]) -> bool:
    """R4 as far as the row knows it: open, in the group, no editor, not the account of who started or asked."""
    had_a_hand = (approval.requester, review.run.started_by if review.run else None)
    return (
        approval.state == ApprovalState.PENDING
        and approval.group_id in groups
        and str(person.pk) not in approval.editors
        and all(other is None or other.owner_id != person.owner_id for other in had_a_hand)
    )
