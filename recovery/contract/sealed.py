"""``Sealed[str]``: a field of run data or params that nobody reads on the way.

It is sealed by itself the moment it is recorded. Steps, logs, events, screens and the API see a mask; only the port
opens it, as the bytes leave. A person sees it by an action of its own, which leaves an event.
"""

from __future__ import annotations

from typing import Any, get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, ValidationError, core_schema

from recovery.contract.errors import ParamsInvalid
from runs.checkpoints import tokens


class Sealed[T]:
    """A value that is not shown. Made from the value, or from its token as the record keeps it.

    A field of it has no default but None (``Sealed[str] | None = None``): a secret in code is none.
    """

    __slots__ = ("_token", "_value")

    def __init__(self, value: T | str) -> None:
        known = tokens.is_token(value)
        self._token: str | None = str(value) if known else None
        self._value = None if known else value

    @property
    def token(self) -> str:
        """As the record keeps it. Raises NoWorkspace where a new value has no workspace to be sealed for."""
        # Not remembered: an instance that a class holds may be written for more than one workspace.
        return tokens.seal(self._value) if self._token is None else self._token

    def __repr__(self) -> str:
        return f"Sealed({tokens.MASK})"

    def __str__(self) -> str:
        return tokens.MASK

    def __format__(self, spec: str) -> str:
        return tokens.MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sealed) and self.token == other.token

    def __hash__(self) -> int:
        return hash(self.token)

    def __reduce__(self) -> Any:
        return Sealed, (self.token,)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (inner,) = get_args(source) or (str,)

        def validated(value: Any, check: core_schema.ValidatorFunctionWrapHandler) -> Sealed[Any]:
            if isinstance(value, Sealed):
                return value
            if tokens.is_token(value):
                return Sealed(value)
            try:
                return Sealed(check(value))
            except ValidationError as error:
                # Pydantic's own words would quote the value.
                raise PydanticCustomError("sealed", "The sealed value does not fit") from error.with_traceback(None)

        return core_schema.no_info_wrap_validator_function(
            validated,
            handler.generate_schema(inner),
            serialization=core_schema.plain_serializer_function_ser_schema(_token, return_schema=_TEXT),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        told = dict(handler(schema))
        return {**told, "writeOnly": True}


_TEXT = core_schema.str_schema()


def _token(value: Sealed[Any]) -> str:
    return value.token


def plain(value: Any) -> Any:
    """A JSON value with each Sealed as its token: what a port's body function gives, before it is written."""
    if isinstance(value, Sealed):
        return value.token
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def refuse_tokens(subject: str, given: Any) -> None:
    """Refuse tokens that come from outside: each is somebody's sealed value. Raises ParamsInvalid naming the paths."""
    found = list(tokens.tokens_in(given))
    if found:
        raise ParamsInvalid(subject, {path or "(whole)": "A sealed token is not taken from outside" for path in found})
