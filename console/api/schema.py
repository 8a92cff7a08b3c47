"""The API describes itself (OpenAPI 3.1): the classes that answer, examples, the problems of each address.

``reads`` and ``acts`` are what the endpoints say about their methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, TypeVar
from uuid import UUID

from django.urls import reverse
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from pydantic import BaseModel
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.auth import SCOPES
from console.api.base import Endpoint
from console.api.problems import MEDIA_TYPE, Problem
from runs.queries import MOST_ROWS

F = TypeVar("F", bound=Callable[..., Any])

_WHY: Final = {
    400: "The request cannot be read: header, query or JSON.",
    401: "No token, or one that is not valid now.",
    403: "Seen, but the scope or the role is missing.",
    404: "Nothing here that the caller can see.",
    405: "The address does not take this method.",
    409: "The same request is being recorded now, or the thing is in another state.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "Read and not accepted; each field is named. Or: the key was used with another body.",
    429: "Too many requests; Retry-After says how long to wait.",
    503: "The record cannot be reached.",
}
_READING: Final = (400, 401, 403, 404, 405, 429, 503)
_ACTING: Final = (*_READING, 409, 413, 415, 422)

SETTINGS: Final[dict[str, Any]] = {
    "TITLE": "Recourse",
    "VERSION": "1",
    "DESCRIPTION": (
        "Start runs, signal them, read what became of them. Each POST needs an Idempotency-Key (a UUID): the "
        "same key with the same body counts once. Refusals are problem+json (RFC 9457)."
    ),
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "COMPONENT_SPLIT_REQUEST": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "SORT_OPERATIONS": True,
    "TAGS": [],
}


def _problems(statuses: tuple[int, ...]) -> dict[Any, Any]:
    return {(status, MEDIA_TYPE): OpenApiResponse(response=Problem, description=_WHY[status]) for status in statuses}


def _answers(answers: Mapping[int, type[BaseModel]]) -> dict[Any, Any]:
    return {
        (status, "application/json"): OpenApiResponse(response=model, description=_first_line(model))
        for status, model in answers.items()
    }


def _first_line(model: type[BaseModel]) -> str:
    return (model.__doc__ or model.__name__).strip().splitlines()[0]


def reads(
    shape: type[BaseModel], summary: str, *, query: Mapping[str, str] | None = None, paged: bool = False
) -> Callable[[F], F]:
    """Describe a GET that answers ``shape``. ``query``: its parameters, with what each is."""
    told = {**(query or {})}
    parameters = [OpenApiParameter(name, OpenApiTypes.STR, description=why) for name, why in told.items()]
    if paged:
        parameters += [
            OpenApiParameter("cursor", OpenApiTypes.STR, description="next or previous of an answer, as it is."),
            OpenApiParameter("limit", OpenApiTypes.INT, description=f"Rows, 1 to {MOST_ROWS}; 50 unless given."),
        ]
    return extend_schema(
        summary=summary, parameters=parameters, responses={**_answers({200: shape}), **_problems(_READING)}
    )


def acts(body: type[BaseModel], answers: Mapping[int, type[BaseModel]], summary: str) -> Callable[[F], F]:
    """Describe a POST that takes ``body`` and an Idempotency-Key."""
    key = OpenApiParameter(
        "Idempotency-Key",
        OpenApiTypes.UUID,
        OpenApiParameter.HEADER,
        required=True,
        description="A fresh UUID; the same again when the request is repeated.",
    )
    replayed = OpenApiParameter(
        "Idempotent-Replayed",
        OpenApiTypes.BOOL,
        OpenApiParameter.HEADER,
        response=list(answers),
        description="true: this was recorded before, nothing was done now.",
    )
    return extend_schema(
        summary=summary,
        parameters=[key, replayed],
        request={"application/json": body},
        responses={**_answers(answers), **_problems(_ACTING)},
    )


def hears(summary: str) -> Callable[[F], F]:
    """Describe a POST of somebody else's message, signed by the Standard Webhooks scheme; answers 204."""
    header = OpenApiParameter.HEADER
    parameters = [
        OpenApiParameter(name, OpenApiTypes.STR, header, required=True, description=why)
        for name, why in (
            ("webhook-id", "Its own id; the same again counts once."),
            ("webhook-timestamp", "Seconds since 1970; five minutes of tolerance."),
            ("webhook-signature", "v1,base64 over id.timestamp.body; several with spaces between."),
        )
    ]
    return extend_schema(
        summary=summary,
        parameters=parameters,
        request={"application/json": OpenApiTypes.OBJECT},
        responses={204: OpenApiResponse(description="Recorded."), **_problems((401, 405, 409, 413, 503))},
        auth=[],
    )


def replay_headers(replayed: bool) -> dict[str, str]:
    """The header of an answer that was given before."""
    return {"Idempotent-Replayed": "true"} if replayed else {}


def url_of(name: str, id: UUID) -> str:
    """The API's address of a thing."""
    return reverse(f"api:{name}", args=[id])


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How a token is sent."""

    target_class = "console.api.auth.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """A bearer token; made by a command."""
        scopes = ", ".join(SCOPES)
        return {
            "type": "http",
            "scheme": "bearer",
            "description": f"Made by manage.py token. Scopes: {scopes}.",
        }


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The browser's session."""

    target_class = "console.api.auth.BrowserSession"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """A cookie."""
        from django.conf import settings

        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}


class SchemaView(Endpoint):
    """The description itself, as JSON."""

    needs: ClassVar[dict[str, tuple[str, ...]]] = {"GET": tuple(SCOPES)}

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        """OpenAPI 3.1."""
        return Response(describe(), content_type="application/vnd.oai.openapi+json")


def describe() -> dict[str, Any]:
    """The OpenAPI document."""
    with patched_settings(SETTINGS):
        found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found


__all__ = ["acts", "describe", "reads", "replay_headers", "url_of"]
