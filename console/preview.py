"""What a preview and a result of an action say. The templates give both always the same lines in the same order."""

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
class Preview:
    """The page of an action before it is done. Empty lines are left out.

    ``post_url`` takes the form; ``button`` names the consequence; ``leave_url`` is where "Leave as it is" leads.
    ``slot`` is the URL of the part that says "Changed at ..." while the form itself never changes under a hand;
    ``live`` is the topic (kind, workspace, id) that makes it look. ``body`` is a template between lines and form. ``subject`` is the thing that the action is about.
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
    live: tuple[str, Any, Any] | None = None
    body: str = ""
    subject: Link | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """What an action did: "Recorded at 03:14:10: the refund happened. Event #23." and what follows from it."""

    title: str
    lines: Sequence[str] = ()
    links: Sequence[Link] = ()
    tone: str = "ok"
    subject: Link | None = None
