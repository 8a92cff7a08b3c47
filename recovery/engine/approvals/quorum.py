"""Who may sign one request, and whether enough people can (R4, R5).

Evaluated anew at each vote and at each send.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from runs import access
from runs.errors import AlreadySigned, NotInGroup, OwnRequest
from runs.models import Approval, Group, Person, Signature
from runs.states import SignatureState

NAMES = 3
"""Names in a refusal; how many more there are is said as a number."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may sign: active members of ``group`` with the permission, but nobody in ``barred`` or of the same
    owner.

    ``barred`` maps people to why: ``started``, ``asked`` or ``edited`` (R4). ``able``: who holds the permission in the
    group, where it was read for several rules at once.
    """

    workspace: UUID
    group: Group
    needed: int
    barred: Mapping[UUID, str]
    owners: Mapping[str, str]
    able: Sequence[Person] | None = None

    def candidates(self) -> list[Person]:
        """Everyone who may sign now, by name. One query, unless ``able`` was given."""
        people = access.people_who_can(self.workspace, "sign", self.group) if self.able is None else self.able
        return [p for p in people if p.pk not in self.barred and p.owner_id not in self.owners]

    def can_be_met(self) -> bool:
        """Whether enough people of different owners may sign (R14 asked of a request)."""
        return self.how_many() >= self.needed

    def how_many(self) -> int:
        """How many different owners may sign now."""
        return len({p.owner_id for p in self.candidates()})

    def good(self, signatures: Iterable[Signature]) -> list[Signature]:
        """The standing signatures whose signers may still sign, one an owner, oldest first (R5)."""
        may = {p.pk: p.owner_id for p in self.candidates()}
        kept: dict[str, Signature] = {}
        for one in sorted(signatures, key=lambda s: s.at):
            if one.state == SignatureState.SIGNED and one.person_id in may:
                kept.setdefault(may[one.person_id], one)
        return list(kept.values())

    def require(self, person: Person, standing: Iterable[Signature]) -> None:
        """Refuse unless ``person`` may sign or reject now. ``person`` is read afresh by the caller.

        Raises OwnRequest, NotAllowed, NotInGroup. Who signed already is :meth:`require_first`'s.
        """
        taken = {s.person_id for s in standing}
        why = self.barred.get(person.pk)
        if why is not None:
            raise OwnRequest(why=why, **self.told(taken))
        if person.owner_id in self.owners:
            raise OwnRequest(why="same_owner", of=self.owners[person.owner_id], **self.told(taken))
        access.require(person, self.workspace, "sign")
        if not self.group.members.filter(pk=person.pk).exists():
            raise NotInGroup(group=self.group.slug, group_name=self.group.name, **self.told(taken))

    def require_first(self, person: Person, standing: Iterable[Signature]) -> None:
        """Refuse a second signature of one person or of one owner (distinct people, R4).

        Raises AlreadySigned.
        """
        for one in standing:
            if one.person_id == person.pk:
                raise AlreadySigned(why="signed", at=one.at.isoformat(), who=person.name)
            if one.person.owner_id == person.owner_id:
                raise AlreadySigned(why="same_owner", at=one.at.isoformat(), who=one.person.name)

    def told(self, without: Iterable[UUID] = ()) -> dict[str, Any]:
        """Names of those who can, as a refusal says them."""
        left_out = set(without)
        names = [p.name for p in self.candidates() if p.pk not in left_out]
        return {"names": names[:NAMES], "more": max(len(names) - NAMES, 0)}


def rule_for(
    workspace: UUID,
    group: Group,
    needed: int,
    *,
    started_by: UUID | None,
    requester: UUID | None,
    editors: Iterable[UUID | str],
) -> Rule:
    """The rule of a request that is being made."""
    barred = _barred(started_by, requester, editors)
    owners = {p.owner_id: p.name for p in Person.objects.filter(pk__in=barred)}
    return Rule(workspace, group, needed, barred, owners)


def _barred(started_by: UUID | None, requester: UUID | None, editors: Iterable[UUID | str]) -> dict[UUID, str]:
    barred: dict[UUID, str] = {UUID(str(one)): "edited" for one in editors}
    if requester is not None:
        barred[requester] = "asked"
    if started_by is not None:
        barred[started_by] = "started"
    return barred


def rules_of(approvals: Iterable[Approval]) -> list[Rule]:
    """The rules of several stored requests, in their order: a query a group and one for the people of all of them."""
    asked = [(one, _barred(one.run.started_by_id, one.requester_id, one.editors)) for one in approvals]
    able: dict[UUID, list[Person]] = {}
    for one, _of_it in asked:
        if one.group_id not in able:
            able[one.group_id] = list(access.people_who_can(one.workspace_id, "sign", one.group))
    people = Person.objects.in_bulk({id for _one, barred in asked for id in barred})
    return [
        Rule(
            one.workspace_id,
            one.group,
            one.needed,
            barred,
            {people[id].owner_id: people[id].name for id in barred if id in people},
            able[one.group_id],
        )
        for one, barred in asked
    ]


def rule_of(approval: Approval) -> Rule:
    """The rule of a stored request, with the people as they are now."""
    return rule_for(
        approval.workspace_id,
        approval.group,
        approval.needed,
        started_by=approval.run.started_by_id,
        requester=approval.requester_id,
        editors=approval.editors,
    )


def standing(approval: Approval) -> list[Signature]:
    """The signatures that were not withdrawn, oldest first, with their people."""
    rows = Signature.objects.filter(approval_id=approval.pk, state=SignatureState.SIGNED)
    return list(rows.select_related("person").order_by("at", "id"))
