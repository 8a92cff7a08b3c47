"""Refusals on the wire: RFC 9457 problem+json with a stable ``code``, what did not happen, where, what to do.

``handle`` is the one place where an exception becomes an answer. It never says more than the caller may see,
and what nobody foresaw is logged and answered without detail (fails closed).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar, Final

from django.db import InterfaceError, OperationalError
from django.http import Http404
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, ConfigDict, Field
from rest_framework import exceptions
from rest_framework.response import Response

from console import words
from recovery.contract.errors import CanonicalError, ParamsInvalid, UnknownRunType
from runs.errors import RunsError
from runs.queries import BadCursor

log = logging.getLogger(__name__)

MEDIA_TYPE: Final = "application/problem+json"


class FieldProblem(BaseModel):
    """One part of the request that was not understood."""

    field: str = Field(description="Path from the top of the body (input.amount), or a header or query parameter.")
    why: str


class Problem(BaseModel):
    """Why nothing was done (RFC 9457). Programs decide by ``code``, which never changes its meaning."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:recourse:problem:params_invalid",
                    "title": "Unprocessable Entity",
                    "status": 422,
                    "code": "params_invalid",
                    "detail": "Not accepted. The input does not fit orders.cancel.",
                    "what_now": "Correct the fields named in errors and send it with a new Idempotency-Key.",
                    "instance": "/api/v1/workspaces/acme-pay/runs",
                    "request_id": "5f0c2c5f1d2e",
                    "errors": [{"field": "input.amount", "why": "Input should be greater than 0"}],
                    "facts": {"subject": "orders.cancel"},
                }
            ]
        }
    )

    type: str = Field(description="urn:recourse:problem: and the code.")
    title: str = Field(description="The HTTP status in words.")
    status: int
    code: str
    detail: str = Field(description="What did not happen, and why, in the language of Accept-Language.")
    what_now: str = Field(description="What to do; empty when the detail says it.")
    instance: str = Field(description="The path that was asked for.")
    request_id: str = Field(description="Also in the log of the installation; empty when there is none.")
    errors: list[FieldProblem]
    facts: dict[str, Any] = Field(description="Names, times and numbers the sentence is made from.")


class ApiError(RunsError):
    """A refusal of the API itself, before any door of the engine was reached."""

    headers: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        code: str,
        status: int,
        *,
        errors: Sequence[tuple[str, str]] = (),
        message: str = "",
        **facts: Any,
    ) -> None:
        super().__init__(message or code, **facts)
        self.code = code  # type: ignore[misc]  # one class for all codes of the API; WORDS lists them
        self.status = status  # type: ignore[misc]
        self.errors = list(errors)


_NEW_KEY: Final = _("Correct it and send it with a new Idempotency-Key.")

WORDS: Final[dict[str, tuple[str | Promise, str | Promise]]] = {
    "key_missing": (
        _("Not accepted. The header Idempotency-Key is missing."),
        _("Send a fresh UUID with each request, and the same one again when you repeat it."),
    ),
    "key_format": (
        _("Not accepted. The Idempotency-Key is not a UUID."),
        _("Send a UUID, such as 0b9c6a2e-5b1c-4a7e-9d0e-2f6f1d7a8b3c."),
    ),
    "action_mismatch": (
        _("Nothing was done. This Idempotency-Key was already used with another body."),
        _("The first request stands as it was. For another one, use a new key."),
    ),
    "action_in_flight": (
        _("Not answered yet. The same request is being recorded now."),
        _("Send it again with the same key: it counts once."),
    ),
    "not_canonical": (_("Not read. The body is not JSON as we take it, at {path}: {why}."), _NEW_KEY),
    "body_too_large": (
        _("Not read. The body has more than {most} bytes."),
        _("Keep large content elsewhere and send a reference to it."),
    ),
    "body_not_object": (_("Not accepted. The body has to be a JSON object."), _NEW_KEY),
    "body_invalid": (_("Not accepted. The body is not as this address needs it."), _NEW_KEY),
    "params_invalid": (
        _("Not accepted. The input does not fit {subject}."),
        _("Correct the fields named in errors and send it with a new Idempotency-Key."),
    ),
    "unknown_run_type": (
        _("Not accepted. There is no run type {type} here. Known: {known}."),
        _("Use one of the names, or install the app that declares it."),
    ),
    "query_invalid": (_("Not read. The address has a query that we do not know."), _("See errors.")),
    "bad_cursor": (
        _("Not read. The cursor was not made by this list."),
        _("Take next or previous from an answer as they are, or leave the cursor out."),
    ),
    "unauthenticated": (
        _("Nothing was done. This needs a token."),
        _("Send Authorization: Bearer with a token made by manage.py token."),
    ),
    "token_refused": (
        _("Nothing was done. The token is unknown, has expired, or its person may not come in any more."),
        _("Make a new one with manage.py token."),
    ),
    "callback_refused": (
        _("Nothing was done. The message is not signed as this address needs it, or is too old."),
        _("Sign id, timestamp and body with the secret of this dependency (Standard Webhooks)."),
    ),
    "callback_mismatch": (
        _("Nothing was done. This message id was used before, with another body."),
        _("Give each message an id of its own."),
    ),
    "scope_missing": (
        _("Nothing was done. The token lacks the scope {scope}."),
        _("Make a token that has it, if its person may do this."),
    ),
    "method_not_allowed": (
        _("Nothing was done. This address does not take {method}."),
        _("It takes {allowed}."),
    ),
    "unsupported_media_type": (
        _("Not read. The body is {media_type}."),
        _("Send Content-Type: application/json."),
    ),
    "throttled": (
        _("Nothing was done. Too many requests at once."),
        _("Wait for as long as Retry-After says, then send the same again with the same key."),
    ),
    "csrf": (
        _("Nothing was done. The session's CSRF token is missing or old."),
        _("Programs use a token instead of a session."),
    ),
    "record_away": (
        _("Not saved. Recourse cannot reach its record."),
        _("Send it again with the same Idempotency-Key: it counts once."),
    ),
    "internal": (
        _("Recourse met something that nobody foresaw. It does not know whether this was done."),
        _("Ask GET /api/v1/actions/ with the key of a POST whether it was recorded, or send it again with that key."),
    ),
    "not_found": (_("Nothing here that you can see."), _("Check the address and the token's workspace.")),
    "not_allowed": (
        _("You can see this but not do it. It needs {permission}, which these roles have: {roles}."),
        _("Ask an administrator of the workspace."),
    ),
}
"""Codes of the API, what happened and what to do. Other codes have their words in ``console.words``."""


def sentence(code: str, facts: Mapping[str, Any]) -> tuple[str, str]:
    """What happened and what to do now. A sentence whose facts are missing falls back to the plain words."""
    detail, what_now = WORDS.get(code, ("", ""))
    if not detail:
        return words.refusal(code, facts), ""
    told = {name: ", ".join(map(str, v)) if isinstance(v, list | tuple) else v for name, v in facts.items()}
    try:
        return str(detail).format(**told), str(what_now).format(**told)
    except KeyError:
        return words.refusal(code, facts), ""


def answer(
    code: str,
    status: int,
    *,
    path: str,
    request_id: str = "",
    facts: Mapping[str, Any] | None = None,
    errors: Sequence[tuple[str, str]] = (),
) -> dict[str, Any]:
    """The body of a problem."""
    given = dict(facts or {})
    detail, what_now = sentence(code, given)
    problem = Problem(
        type=f"urn:recourse:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        code=code,
        detail=detail,
        what_now=what_now,
        instance=path,
        request_id=request_id,
        errors=[FieldProblem(field=field, why=why) for field, why in errors],
        facts=given,
    )
    return problem.model_dump(mode="json")


def handle(error: Exception, context: Mapping[str, Any]) -> Response:
    """The answer to ``error``. Every refusal of record, engine and API comes through here."""
    request = context["request"]
    refused = _translated(error, request.content_type or "")
    headers: dict[str, str] = {}
    if refused.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="recourse"'
    if refused.status == 503:
        headers["Retry-After"] = "5"
    if isinstance(error, exceptions.Throttled):
        headers["Retry-After"] = str(max(1, int(getattr(error, "wait", None) or 1)))
    if isinstance(refused, ApiError):
        errors = refused.errors
    elif isinstance(refused, ParamsInvalid):
        errors = [(f"{context['view'].params_at}.{path}", why) for path, why in refused.fields.items()]
    else:
        errors = []
    facts = {name: value for name, value in refused.facts.items() if name != "fields"}
    body = answer(
        refused.code,
        refused.status,
        path=request.path,
        request_id=getattr(request, "request_id", ""),
        facts=facts,
        errors=errors,
    )
    return Response(body, status=refused.status, headers=headers, content_type=MEDIA_TYPE)


def _translated(error: Exception, media_type: str) -> RunsError:
    """``error`` as a refusal of ours. ``media_type``: of the request."""
    match error:
        case CanonicalError():
            # Whatever it is to the engine, a body that is no canonical JSON is a bad request.
            path = error.path.strip("'")
            return ApiError("not_canonical", 400, errors=[(path, error.why)], path=path, why=error.why)
        case UnknownRunType():
            errors = [("type", str(error))]
            return ApiError("unknown_run_type", 422, errors=errors, known=_known_types(), **error.facts)
        case BadCursor():
            return ApiError("bad_cursor", 400, errors=[("cursor", "not made by this list")])
        case RunsError():
            return error
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return ApiError("unauthenticated", 401)
        case exceptions.MethodNotAllowed():
            return ApiError("method_not_allowed", 405, **getattr(error, "facts", {}))
        case exceptions.UnsupportedMediaType():
            # Their sentence is translated, and not every language quotes the type.
            return ApiError("unsupported_media_type", 415, media_type=media_type[:100])
        case exceptions.Throttled():
            return ApiError("throttled", 429)
        case exceptions.PermissionDenied():
            return ApiError("csrf", 403)
        case exceptions.NotFound() | Http404():
            return ApiError("not_found", 404)
        case exceptions.ParseError():
            return ApiError("not_canonical", 400, path="$", why=str(error.detail))
        case OperationalError() | InterfaceError():
            log.error("the record is away: %s", error)
            return ApiError("record_away", 503)
        case _:
            log.exception("a request to the API ended in %s", type(error).__name__, exc_info=error)
            return ApiError("internal", 500)


def _known_types() -> list[str]:
    from recovery.contract import registry

    return sorted({run_type.name for run_type in registry.run_types() if not run_type.internal})
