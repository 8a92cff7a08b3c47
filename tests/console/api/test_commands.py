"""`manage.py token` and `manage.py demo_people`."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from console.management.commands import demo_people
from console.stack import secrets
from runs import access
from runs.models import ApiToken, Dependency, Event, Group, Person, Workspace
from tests.console.api.conftest import RUNS, Cast, problem


def token(*arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("token", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


FOR_A = ("--person", "Oncall-A@acme.example", "--workspace", "acme-pay")


def test_a_token_is_printed_once_works_and_leaves_a_line(cast: Cast) -> None:
    out, err = token(*FOR_A, "--scopes", "runs:read", "runs:write", "--days", "7", "--label", "shop")
    secret = out.strip()
    assert out == f"{secret}\n" and secret.startswith("rcs_") and secret not in err
    row = ApiToken.objects.get()
    assert (row.scopes, row.label) == (["runs:read", "runs:write"], "shop")
    assert Client().get(RUNS, headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    line = Event.objects.get(workspace=cast.acme, run=None, kind="token.made")
    assert line.data["person"] == str(row.person_id) and secret not in line.text and row.digest not in line.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*FOR_A, "--scopes", "runs:sign"), "No scope runs:sign. Known: runs:read"),
        ((*FOR_A, "--scopes", ","), "No scope was given"),
        ((*FOR_A, "--scopes", "runs:read", "--days", "0"), "--days takes 1 to"),
        (("--person", "x@acme.example", "--workspace", "acme-pay", "--scopes", "runs:read"), "Nobody active"),
        ((*FOR_A[:3], "other-pay", "--scopes", "runs:read"), "sees no workspace other-pay"),
        (
            ("--person", "auditor-d@acme.example", *FOR_A[2:], "--scopes", "runs:write"),
            "These roles may: on-call",
        ),
    ],
)
def test_a_token_that_cannot_be_is_refused_with_a_reason(cast: Cast, arguments: Any, said: str) -> None:
    with pytest.raises(CommandError, match=said.replace(".", r"\.")):
        token(*arguments)
    assert not ApiToken.objects.exists()


def test_a_token_for_signals_does_not_read(cast: Cast) -> None:
    secret = token(*FOR_A, "--scopes", "signals:write")[0].strip()
    client = Client(raise_request_exception=False)
    problem(client.get(RUNS, headers={"Authorization": f"Bearer {secret}"}), 403, "scope_missing")


def test_the_demo_people_are_made_with_passwords_of_this_installation(db: None, settings: Any) -> None:
    settings.RECOURSE_SANDBOX_URL = "http://127.0.0.1:8101"
    call_command("demo_people")
    assert set(Workspace.objects.values_list("slug", "environment")) == {
        ("acme-pay", "SANDBOX"),
        ("other-pay", "SANDBOX"),
    }
    accounts = secrets.installed().accounts()
    for account in demo_people.PEOPLE:
        person = Person.objects.get(email=account.email)
        assert person.check_password(accounts[account.email])
        space = Workspace.objects.get(slug=account.workspace)
        wanted = frozenset[str]().union(*(access.ROLES[role] for role in account.roles))
        assert access.permissions(person) == {space.pk: wanted}
    assert len(set(accounts.values())) == len(demo_people.PEOPLE)
    approvers = Group.objects.get(workspace__slug="acme-pay", slug="payments-approvers")
    assert set(approvers.members.values_list("name", flat=True)) == {"Approver B", "Approver C"}
    cards = Dependency.objects.get(workspace__slug="other-pay", name="cards-eu")
    assert cards.base_url == "http://127.0.0.1:8101/cards-eu" and cards.credential.startswith("sandbox")


def test_running_it_again_changes_only_the_sandboxs_address(db: None, settings: Any) -> None:
    settings.RECOURSE_SANDBOX_URL = "http://127.0.0.1:8101"
    call_command("demo_people")
    person = Person.objects.get(name="Approver C")
    access.grant(person, Workspace.objects.get(slug="acme-pay"), [])
    person.set_password("changed by its owner")
    person.save()
    settings.RECOURSE_SANDBOX_URL = "http://127.0.0.1:8202"
    call_command("demo_people")
    person.refresh_from_db()
    assert access.permissions(person) == {} and person.check_password("changed by its owner")
    assert (Workspace.objects.count(), Person.objects.count(), Dependency.objects.count()) == (2, 6, 8)
    assert {d.base_url for d in Dependency.objects.filter(name="mail")} == {"http://127.0.0.1:8202/mail"}


def test_without_a_sandbox_it_says_what_is_missing(db: None, settings: Any) -> None:
    settings.RECOURSE_SANDBOX_URL = None
    with pytest.raises(CommandError, match="RECOURSE_SANDBOX_URL is not set"):
        call_command("demo_people")
