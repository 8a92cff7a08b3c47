"""The second person: another one, of another owner, with the right to say so (R4, R13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from runs import access
from runs.errors import NotAllowed, SamePerson
from runs.models import Person

NAMED: Final = 4
"""Names that a refusal gives of people who could."""


def require_second(workspace: UUID, person: Person, first: Person, permissions: Sequence[str]) -> None:
    """Refuse a second person who is ``first``, of the same owner, or without any of ``permissions``.

    Raises SamePerson, NotAllowed; both name who could.
    """
    if person.owner_id == first.owner_id:
        why = "person" if person.pk == first.pk else "owner"
        raise SamePerson(why=why, who=first.name, names=second_people(workspace, first, permissions))
    if not access.permissions(person).get(workspace, frozenset()).intersection(permissions):
        names = second_people(workspace, first, permissions)
        raise NotAllowed(permission=permissions[0], roles=access.roles_with(permissions[0]), names=names)


def second_people(workspace: UUID, first: Person, permissions: Sequence[str]) -> list[str]:
    """Names of people who could give the second answer."""
    people: dict[UUID, Person] = {}
    for permission in permissions:
        people |= {p.pk: p for p in access.people_who_can(workspace, permission)}
    return sorted(p.name for p in people.values() if p.owner_id != first.owner_id)[:NAMED]
