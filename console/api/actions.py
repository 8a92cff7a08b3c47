"""``actions/{uuid}``: was it recorded? For a caller whose answer was lost on the way."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from pydantic import BaseModel, Field
from rest_framework.request import Request
from rest_framework.response import Response

from console.api import schema
from console.api.auth import SCOPES, person_of, within
from console.api.base import Endpoint, told
from console.api.pagination import Query
from runs import queries
from runs.errors import NotFound
from runs.models import Action


class ActionShape(BaseModel):
    """Something the caller did, recorded once."""

    id: UUID
    workspace: str
    route: str = Field(description="What it was: runs.accept, runs.signal, ...")
    at: datetime
    run: UUID | None
    first_event: int
    last_event: int
    facts: dict[str, Any]
    url: str | None = Field(description="The run's; null where it has none.")

    @classmethod
    def of(cls, action: Action) -> Self:
        """From the record's row with its workspace."""
        result = action.result
        run = result.get("run")
        return cls(
            id=action.id,
            workspace=action.workspace.slug,
            route=action.route,
            at=action.at,
            run=run,
            first_event=result["first"],
            last_event=result["last"],
            facts=result.get("facts") or {},
            url=schema.url_of("run", UUID(run)) if run else None,
        )


class Actions(BaseModel):
    """All that the caller did under this id: one, unless the id was used at several addresses."""

    items: list[ActionShape]


class OneAction(Endpoint):
    """An action by its Idempotency-Key."""

    needs: ClassVar[dict[str, tuple[str, ...]]] = {"GET": tuple(SCOPES)}

    @schema.reads(Actions, "Ask whether an action was recorded")
    def get(self, request: Request, action: UUID) -> Response:
        """404: nothing was recorded under this id by this person; sending it again counts once."""
        Query(request, paged=False)
        found = queries.actions_of(person_of(request), action, within=within(request))
        if not found:
            raise NotFound
        return told(Actions(items=[ActionShape.of(one) for one in found]))
