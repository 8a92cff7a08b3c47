"""Who signed in, stepped up and left is in the history of each workspace they see, and only there."""

from __future__ import annotations

import pytest
from django.test import Client

from runs import access
from runs.history import chain
from runs.models import Event, Person, Workspace
from runs.states import EventKind

pytestmark = pytest.mark.django_db


def test_signing_in_and_out_are_lines_of_the_workspaces_history() -> None:
    mine = Workspace.objects.create(slug="mine", name="Mine", environment="SANDBOX")
    other = Workspace.objects.create(slug="other", name="Other", environment="SANDBOX")
    person = Person.objects.create_user("a@acme.example", "Oncall A", "a long pass phrase")
    access.grant(person, mine, ["on-call"])
    client = Client()
    client.post("/sign-in/", {"username": person.email, "password": "a long pass phrase"})
    client.post("/sign-out/")
    lines = Event.objects.filter(workspace=mine, run=None).order_by("seq")
    assert [line.kind for line in lines] == [EventKind.PERSON_SIGNED_IN, EventKind.PERSON_SIGNED_OUT]
    assert all(line.actor_id == person.pk for line in lines)
    mine.refresh_from_db()
    assert chain.verify_workspace(mine).ok
    assert not Event.objects.filter(workspace=other).exists()


def test_a_wrong_password_leaves_no_line() -> None:
    mine = Workspace.objects.create(slug="mine", name="Mine", environment="SANDBOX")
    person = Person.objects.create_user("a@acme.example", "Oncall A", "a long pass phrase")
    access.grant(person, mine, ["on-call"])
    Client().post("/sign-in/", {"username": person.email, "password": "wrong"})
    assert not Event.objects.exists()
