"""Reading a request: strict JSON, one answer format, the Idempotency-Key, bodies without unknown fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from console.api.problems import ApiError
from recovery.contract import canonical

MOST_BYTES: Final = canonical.MAX_BYTES


class StrictJSONParser(BaseParser):
    """JSON without two readings: no duplicate keys, NaN, huge integers, deep nesting (I-JSON, RFC 7493)."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        """The body's value. Raises ApiError 413 before more than MOST_BYTES are read, and CanonicalError."""
        declared = ((parser_context or {})["request"]).META.get("CONTENT_LENGTH") or "0"
        if not is_count(declared) or int(declared) > MOST_BYTES:
            raise ApiError("body_too_large", 413, most=MOST_BYTES)
        raw = stream.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise ApiError("body_too_large", 413, most=MOST_BYTES)
        return canonical.parse(raw)


def is_count(declared: str) -> bool:
    """Whether a Content-Length is a number that may be looked at: plain digits, and not a megabyte of them."""
    return declared.isascii() and declared.isdigit() and len(declared) < 20


class OneFormat(BaseContentNegotiation):
    """JSON out, whatever Accept says: there is nothing else, and a refusal must be readable too."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """The parser for the Content-Type, parameters such as charset aside; None: not supported."""
        kind = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == kind), None)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> tuple[Any, str]:
        """The first renderer."""
        return renderers[0], renderers[0].media_type


class Body(BaseModel):
    """Base of what is posted: unknown fields are refused, nothing is guessed."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False)


def read_body[B: Body](request: Request, model: type[B]) -> B:
    """The posted body as ``model``. Raises ApiError 422 with each field's path, not with its value."""
    data = request.data
    if not isinstance(data, dict):
        raise ApiError("body_not_object", 422)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = error.errors(include_url=False, include_context=False, include_input=False)
        raise ApiError(
            "body_invalid",
            422,
            errors=[(".".join(map(str, line["loc"])) or "(whole)", line["msg"]) for line in lines],
        ) from error


def idempotency_key(request: Request) -> UUID:
    """The key of a POST: a UUID, bare or as a quoted structured-field string. Raises ApiError 400."""
    given = request.headers.get("Idempotency-Key", "").strip()
    if not given:
        raise ApiError("key_missing", 400, errors=[("Idempotency-Key", "missing")])
    text = given[1:-1] if len(given) > 1 and given[0] == given[-1] == '"' else given
    if len(text) == 36:
        try:
            return UUID(text)
        except ValueError:
            pass  # the refusal below is the same for everything that is no UUID
    raise ApiError("key_format", 400, errors=[("Idempotency-Key", "not a UUID")])
