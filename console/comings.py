"""Who signed in, confirmed it is them, or left: lines of the history of each workspace that the person sees."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.http import HttpRequest

from console.screens.stepup import stepped_up
from runs import access, record
from runs.models import Person
from runs.states import EventKind


def connect() -> None:
    """Listen to Django's signals; connecting again changes nothing."""
    user_logged_in.connect(_signed_in, dispatch_uid="recourse.signed_in")
    user_logged_out.connect(_signed_out, dispatch_uid="recourse.signed_out")
    stepped_up.connect(_stepped_up, dispatch_uid="recourse.stepped_up")


def _signed_in(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    _note(user, EventKind.PERSON_SIGNED_IN)


def _signed_out(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    _note(user, EventKind.PERSON_SIGNED_OUT)


def _stepped_up(sender: Any, request: HttpRequest, person: Person, **kwargs: Any) -> None:
    _note(person, EventKind.PERSON_STEPPED_UP)


def _note(person: Any, kind: EventKind) -> None:
    if not isinstance(person, Person):
        return
    for workspace in access.workspaces_for(person):
        record.note(workspace.pk, kind, actor=person.pk, data={"name": person.name, "how": "password"})
