"""``runs/{id}/events``: a run's history, line by line, in sequence."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from pydantic import BaseModel, Field
from rest_framework.request import Request
from rest_framework.response import Response

from console.api import schema
from console.api.auth import person_of, within
from console.api.base import Endpoint, told
from console.api.pagination import Query
from console.api.shapes import Paged, Who
from runs import queries
from runs.models import Event
from runs.queries import Cursor


class EventShape(BaseModel):
    """One line of history. ``hash`` covers the stored text, which names ``prev``."""

    seq: int
    kind: str
    at: datetime
    actor: Who | None = Field(description="null: Recourse itself.")
    behalf: str | None
    reason: str | None
    action: UUID | None
    moves: list[dict[str, Any]] = Field(description="What changed its state: thing, id, from, to.")
    data: dict[str, Any]
    prev: str
    hash: str

    @classmethod
    def of(cls, event: Event) -> Self:
        """From the record's row with its actor."""
        body = event.body
        return cls(
            seq=event.seq,
            kind=event.kind,
            at=event.at,
            actor=Who.of(event.actor),
            behalf=body.get("behalf"),
            reason=body.get("reason"),
            action=body.get("action"),
            moves=body["moves"],
            data=body["data"],
            prev=body["prev"],
            hash=event.hash,
        )


class Events(Paged):
    """A page of history, oldest first."""

    items: list[EventShape]


class RunEvents(Endpoint):
    """The history of a run."""

    needs: ClassVar[dict[str, tuple[str, ...]]] = {"GET": ("runs:read",)}

    @schema.reads(Events, "List the events of a run", paged=True)
    def get(self, request: Request, run: UUID) -> Response:
        """From the first event on."""
        query = Query(request)
        at = queries.decode("events", query.cursor, int)
        found = queries.visible_run(person_of(request), run, within(request))
        if at is not None and at.back:
            page = queries.events_page(found, before=at.key[0], limit=query.limit)
        else:
            page = queries.events_page(found, after=at.key[0] if at else 0, limit=query.limit)
        return told(
            Events(
                items=[EventShape.of(event) for event in page.items],
                next=None if page.later is None else queries.encode("events", Cursor((page.later,))),
                previous=None if page.earlier is None else queries.encode("events", Cursor((page.earlier,), True)),
            )
        )
