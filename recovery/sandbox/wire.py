"""What goes over the wire: a reply, its JSON, and the shapes of an error: a provider's own, and a problem."""

import json
from dataclasses import dataclass
from typing import Any, Literal

type Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer ready to leave. `way` says how it leaves: sent, or the connection ends without a byte.

    "drop" closes the connection in order (FIN); "reset" tears it (RST).
    """

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    way: Literal["send", "drop", "reset"] = "send"


class BadJson(ValueError):
    """The body is not a JSON object in UTF-8."""


def dump(value: object) -> bytes:
    """Compact JSON in UTF-8; what may not be JSON (NaN) is refused."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def load(body: bytes) -> Json:
    """The JSON object in `body`. Raises BadJson with a sentence a person can act on."""
    try:
        value = json.loads(body.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise BadJson("the body is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise BadJson(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadJson("the body must be a JSON object")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def answer(status: int, value: object, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """A JSON answer."""
    return Reply(status, dump(value), headers)


def error(status: int, code: str, message: str, **more: object) -> Reply:
    """A provider's own error: {"error": {"code", "message", ...}}."""
    return answer(status, {"error": {"code": code, "message": message, **more}})


def problem(status: int, title: str, detail: str, errors: list[Json] | None = None) -> Reply:
    """A refusal of the controls, as application/problem+json (RFC 9457); `errors` names each field."""
    value: Json = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    if errors is not None:
        value["errors"] = errors
    return Reply(status, dump(value), content_type="application/problem+json")
