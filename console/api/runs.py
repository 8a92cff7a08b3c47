"""``workspaces/{w}/runs`` and ``runs/{id}``: start runs, find them, read one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID

from django.urls import reverse
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, StrictStr
from rest_framework.request import Request
from rest_framework.response import Response

from console.api import schema
from console.api.auth import person_of, within, workspace_for
from console.api.base import Endpoint, refusals_kept, told
from console.api.pagination import Query
from console.api.parsing import Body, idempotency_key, read_body
from console.api.shapes import Paged, RunShort, RunWhole
from recovery.actions import runs as doors
from recovery.actions.common import Subject
from runs import queries
from runs.record import Act
from runs.states import RunState, WaitingOn

ROUTE = "runs.accept"


def _instant(value: Any) -> datetime:
    try:
        return queries.moment(value)
    except (TypeError, ValueError) as error:
        raise ValueError("has to be text, as 2026-12-01T18:00:00+08:00") from error


When = Annotated[AwareDatetime, BeforeValidator(_instant)]
"""An instant as RFC 3339 text with its offset, within the calendar; numbers, also as text, are refused."""


class RunToStart(Body):
    """A run to start."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "orders.cancel",
                    "input": {"order": "A-10427", "charge": "ch_3QK9", "amount": 8400, "currency": "EUR"},
                    "goal": "order cancelled, refunded",
                    "deadline": "2026-12-01T18:00:00+08:00",
                }
            ]
        }
    )

    type: Annotated[StrictStr, Field(min_length=1, max_length=120, description="Name of a run type.")]
    input: Annotated[dict[str, Any], Field(description="The run's data, as the run type declares it.")]
    goal: Annotated[StrictStr, Field(max_length=500, description="What is true when it has worked.")] = ""
    deadline: When | None = None
    priority: Annotated[StrictInt, Field(ge=-100, le=100, description="Higher goes first.")] = 0
    principal: Annotated[
        StrictStr | None,
        Field(min_length=1, max_length=200, description="On whose authority; the token's person unless given."),
    ] = None


class RunAccepted(BaseModel):
    """The run is recorded and will be carried out. A repeat with the same key gets the same answer."""

    id: UUID
    workspace: str
    type: str
    state: str = Field(description="accepted: it was, when this was recorded; ask url for now.")
    accepted_at: datetime
    event: int = Field(description="Sequence of the event that recorded it.")
    url: str


class Runs(Paged):
    """A page of runs, newest first."""

    items: list[RunShort]


class WorkspaceRuns(Endpoint):
    """Runs of a workspace."""

    needs: ClassVar[dict[str, tuple[str, ...]]] = {"GET": ("runs:read",), "POST": ("runs:write",)}

    @schema.reads(
        Runs,
        "List runs",
        query={
            "state": "One or more states, repeated or with commas.",
            "type": "One or more run types.",
            "waiting_on": "What waiting runs wait for, one or more.",
            "q": "A whole id, its last 8 digits (8f3c-21ab), or a business reference.",
        },
        paged=True,
    )
    def get(self, request: Request, slug: str) -> Response:
        """Newest first."""
        query = Query(request, ("state", "type", "waiting_on", "q"))
        workspace = workspace_for(request, slug, "see")
        page = queries.runs_page(
            workspace.pk,
            states=query.several("state", RunState.values),
            types=query.several("type"),
            waiting_on=query.several("waiting_on", WaitingOn.values),
            q=query.one("q"),
            cursor=query.cursor,
            limit=query.limit,
        )
        return told(Runs(items=[RunShort.of(row) for row in page.items], next=page.next, previous=page.previous))

    @schema.acts(RunToStart, {202: RunAccepted}, "Start a run")
    def post(self, request: Request, slug: str) -> Response:
        """Recorded when this answers 202; carried out by the workers, in their own time."""
        key = idempotency_key(request)
        workspace = workspace_for(request, slug, "start")
        body = read_body(request, RunToStart)
        act = Act.over(key, ROUTE, {"workspace": slug, "body": request.data})
        about = Subject("workspace", workspace.pk, workspace.pk, None)
        person = person_of(request)
        with refusals_kept(about, actor=person, act=act):
            done = doors.accept(
                workspace,
                body.type,
                body.input,
                goal=body.goal,
                deadline=body.deadline,
                priority=body.priority,
                principal=body.principal or person.email,
                actor=person,
                act=act,
            )
        url = reverse("api:run", args=[done.run])
        accepted = RunAccepted(
            id=done.run,
            workspace=workspace.slug,
            type=body.type,
            state=RunState.ACCEPTED,
            accepted_at=done.at,
            event=done.event,
            url=url,
        )
        return told(accepted, 202, schema.replay_headers(done.replayed) | {"Location": url})


class OneRun(Endpoint):
    """A run."""

    needs: ClassVar[dict[str, tuple[str, ...]]] = {"GET": ("runs:read",)}

    @schema.reads(RunWhole, "Read a run")
    def get(self, request: Request, run: UUID) -> Response:
        """As it stands now."""
        Query(request, paged=False)
        found = queries.visible_run(person_of(request), run, within(request))
        counts = queries.effect_counts(found.workspace_id, [found.pk]).get(found.pk, {})
        return told(RunWhole.whole(found, counts))
