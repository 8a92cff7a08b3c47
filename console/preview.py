"""What a preview and a result of an action say; the templates give the same lines in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django import forms


@dataclass(frozen=True)
class Link:
    """An address and its words."""

    url: str
    label: str


@dataclass(frozen=True)
class Choice:
    """One of two opposing acts of one form: what it posts as ``decision``, and its words."""

    value: str
    label: str


@dataclass(frozen=True)
class Preview:
    """The page of an action before it is done. Empty lines are left out.

    ``post_url`` takes the form; ``button`` names the consequence; "Leave as it is" leads to ``leave_url``.
    ``slot`` is the URL of the part that says "Changed at ..." while the form never changes under a hand;
    ``live`` is the topic (workspace, kind, id) that makes it look. ``body`` is a template between lines and
    form, given ``extra``. ``subject`` is the thing that the action is about. ``fields`` is a template that
    shows the form's fields in its own way. With ``other`` the form has two opposing buttons, apart from each
    other: ``button`` posts ``decision`` as ``choice``, the outlined one posts its own value.
    """

    title: str
    post_url: str
    button: str
    leave_url: str
    form: forms.Form
    will: Sequence[str] = ()
    will_not: Sequence[str] = ()
    irreversible: Sequence[str] = ()
    based_on: Sequence[str] = ()
    leave: str = ""
    outlined: bool = False
    slot: str = ""
    live: tuple[Any, str, Any] | None = None
    body: str = ""
    fields: str = ""
    choice: str = ""
    other: Choice | None = None
    subject: Link | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """What an action did ("Recorded at 03:14:10: the refund happened. Event #23.") and what follows.

    ``after`` is a template below it, given ``extra``: what goes on by itself and changes while it is read.
    """

    title: str
    lines: Sequence[str] = ()
    links: Sequence[Link] = ()
    tone: str = "ok"
    subject: Link | None = None
    after: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
