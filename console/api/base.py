"""What every address of the API shares: who may come in, how it reads, how it answers, how it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django.db import DatabaseError
from django.utils.cache import patch_cache_control
from pydantic import BaseModel
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.api import limits, problems
from console.api.auth import BrowserSession, Named, TokenAuthentication
from console.api.parsing import OneFormat, StrictJSONParser
from recovery.actions.common import Subject, note_refusal
from recovery.contract.errors import ContractError
from runs.errors import NotFound, RunsError
from runs.models import Person
from runs.record import Act


class Endpoint(APIView):
    """Base of all addresses. ``needs``: by method, the scopes of which a token needs one; no other method."""

    needs: ClassVar[dict[str, tuple[str, ...]]] = {}
    params_at: ClassVar[str] = "input"
    """Where in the body the engine's params are, for the paths in a refusal."""

    authentication_classes: ClassVar[Any] = [TokenAuthentication, BrowserSession]
    permission_classes: ClassVar[Any] = [Named]
    throttle_classes: ClassVar[Any] = [limits.PerCaller]
    parser_classes: ClassVar[Any] = [StrictJSONParser]
    renderer_classes: ClassVar[Any] = [JSONRenderer]
    content_negotiation_class = OneFormat

    @property
    def allowed_methods(self) -> list[str]:
        """What the header Allow says."""
        return sorted(self.needs)

    def get_exception_handler(self) -> Callable[[Exception, Any], Response]:
        """The one handler, whatever the settings say."""
        return problems.handle

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        """No answer of a person's record stays in a cache on the way."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        patch_cache_control(answer, no_store=True, private=True)
        return answer


class Nowhere(Endpoint):
    """Addresses below /api/v1/ that do not exist: a problem, not a page."""

    needs: ClassVar[dict[str, tuple[str, ...]]] = {}
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Any method, with or without a token, is told the same."""
        raise NotFound


def told(body: BaseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer with ``body``."""
    return Response(body.model_dump(mode="json"), status=status, headers=headers)


@contextmanager
def refusals_kept(subject: Subject, *, actor: Person, act: Act) -> Iterator[None]:
    """Write a refusal into the workspace's history, in a transaction of its own, limited per actor.

    Input that does not fit is told to the caller only: nobody was refused anything.
    """
    try:
        yield
    except ContractError:
        raise
    except RunsError as refused:
        try:
            note_refusal(subject, refused, actor=actor, act=act, reason=None)
        except DatabaseError as lost:
            # the caller is refused all the same, and must hear why
            problems.log.warning("a refusal (%s) was not written: %s", refused.code, type(lost).__name__)
        raise
