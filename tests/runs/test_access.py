"""Who may do what: roles add up, belong to one workspace, and are read anew each time (invariant 14)."""

from __future__ import annotations

from typing import Any

import pytest

from runs import access
from runs.errors import NotAllowed, NotFound
from runs.models import Person, Workspace
from tests.runs.make import World

ALL = frozenset(code for code, _ in Workspace._meta.permissions)


def test_the_roles_are_the_five_and_hold_only_known_permissions() -> None:
    assert set(access.ROLES) == {"on-call", "approver", "auditor", "author", "administrator"}
    assert frozenset().union(*access.ROLES.values()) == ALL
    assert all("see" in names for names in access.ROLES.values())


def test_nobody_signs_or_confirms_by_being_on_call_alone() -> None:
    assert not access.ROLES["on-call"] & {"sign", "confirm", "administer", "audit"}


def test_a_stranger_sees_nothing_and_is_told_nothing(world: World) -> None:
    """404, not 403: a refusal must not tell that there is something."""
    assert list(access.workspaces_for(world.person)) == []
    assert not access.can(world.person, world.ws, "see")
    with pytest.raises(NotFound):
        access.require(world.person, world.ws, "see")


@pytest.mark.parametrize("role", sorted(access.ROLES))
def test_a_role_allows_what_it_lists_and_nothing_more(world: World, role: str) -> None:
    access.grant(world.person, world.workspace, [role])
    assert access.permissions(world.person) == {world.ws: access.ROLES[role]}
    for permission in ALL:
        assert access.can(world.person, world.ws, permission) is (permission in access.ROLES[role])
        if permission in access.ROLES[role]:
            access.require(world.person, world.ws, permission)
        else:
            with pytest.raises(NotAllowed):
                access.require(world.person, world.ws, permission)


def test_roles_add_up(world: World) -> None:
    access.grant(world.person, world.workspace, ["on-call", "approver"])
    assert access.permissions(world.person)[world.ws] == access.ROLES["on-call"] | access.ROLES["approver"]


def test_granting_again_replaces_what_was_held(world: World) -> None:
    access.grant(world.person, world.workspace, ["on-call", "approver"])
    access.grant(world.person, world.workspace, ["auditor"])
    assert access.permissions(world.person)[world.ws] == access.ROLES["auditor"]
    access.grant(world.person, world.workspace, [])
    assert access.permissions(world.person) == {}


def test_a_role_in_one_workspace_is_nothing_in_the_next(world: World) -> None:
    """Invariant 14."""
    access.grant(world.person, world.workspace, list(access.ROLES))
    assert list(access.workspaces_for(world.person)) == [world.workspace]
    with pytest.raises(NotFound):
        access.require(world.person, world.other.pk, "see")


def test_an_account_that_is_switched_off_holds_nothing_at_once(world: World) -> None:
    """What was read before does not count: the check reads the account again."""
    access.grant(world.person, world.workspace, ["administrator"])
    Person.objects.filter(pk=world.person.pk).update(is_active=False)
    assert world.person.is_active
    assert not access.can(world.person, world.ws, "see")
    with pytest.raises(NotFound):
        access.require(world.person, world.ws, "administer")
    assert access.names_who_can(world.ws, "administer") == []


def test_a_refusal_names_who_can(world: World) -> None:
    access.grant(world.person, world.workspace, ["on-call"])
    access.grant(world.second, world.workspace, ["approver"])
    with pytest.raises(NotAllowed) as refused:
        access.require(world.person, world.ws, "sign")
    assert refused.value.facts == {"permission": "sign", "roles": ["approver"], "names": ["Approver B"]}


def test_signers_are_those_with_the_permission_in_the_group(world: World) -> None:
    access.grant(world.person, world.workspace, ["approver"])
    access.grant(world.second, world.workspace, ["approver"])
    world.group.members.add(world.second)
    assert list(access.people_who_can(world.ws, "sign", world.group)) == [world.second]
    assert access.names_who_can(world.ws, "sign") == ["Approver B", "Oncall A"]


def test_permissions_are_one_query(world: World, django_assert_num_queries: Any) -> None:
    access.grant(world.person, world.workspace, list(access.ROLES))
    access.grant(world.person, world.other, list(access.ROLES))
    with django_assert_num_queries(1):
        assert len(access.permissions(world.person)) == 2
