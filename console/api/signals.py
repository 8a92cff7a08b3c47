"""``runs/{id}/signals``: tell a run that something happened."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StrictStr
from rest_framework.request import Request
from rest_framework.response import Response

from console.api import schema
from console.api.auth import person_of, require, within
from console.api.base import Endpoint, told
from console.api.parsing import Body, idempotency_key, read_body
from recovery.actions import runs as doors
from runs import queries
from runs.record import Act

ROUTE = "runs.signal"


class SignalToSend(Body):
    """A signal."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "order.changed", "payload": {"amount": 120500}}]}
    )

    name: Annotated[StrictStr, Field(min_length=1, max_length=120, description="A signal the run type declares.")]
    payload: dict[str, Any] = Field(default_factory=dict)


class SignalRecorded(BaseModel):
    """The signal is kept; the run takes it once, when it waits for it."""

    run: UUID
    name: str
    recorded_at: datetime
    event: int
    url: str = Field(description="The run's.")


class RunSignals(Endpoint):
    """Signals to a run."""

    needs: ClassVar[dict[str, tuple[str, ...]]] = {"POST": ("signals:write",)}
    params_at: ClassVar[str] = "payload"

    @schema.acts(SignalToSend, {202: SignalRecorded}, "Signal a run")
    def post(self, request: Request, run: UUID) -> Response:
        """Recorded when this answers 202."""
        key = idempotency_key(request)
        found = queries.visible_run(person_of(request), run, within(request))
        require(request, found.workspace_id, "start")
        body = read_body(request, SignalToSend)
        act = Act.over(key, ROUTE, {"run": str(run), "body": request.data})
        done = doors.signal(found.pk, body.name, body.payload, actor=person_of(request), act=act)
        recorded = SignalRecorded(
            run=found.pk,
            name=body.name,
            recorded_at=done.at,
            event=done.event,
            url=schema.url_of("run", found.pk),
        )
        return told(recorded, 202, schema.replay_headers(done.replayed))
