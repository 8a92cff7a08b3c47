"""Who calls: a person's token, or their session in the browser. What an endpoint does not name is refused.

A token is asked anew at each request: does it exist, has it expired, is its person active, what may they do
in the token's workspace now. One query. It may do what its scopes and its person's roles both allow.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import DateTimeField, Func, OuterRef
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from console.api.problems import ApiError
from runs import access
from runs.errors import NotAllowed, NotFound
from runs.models import ApiToken, Person, Workspace, WorkspaceUserPermission
from runs.queries import visible_workspace

PREFIX: Final = "rcs_"
SCOPES: Final = {"runs:read": "see", "runs:write": "start", "signals:write": "start"}
"""Each scope, and the permission its person must hold as well."""

LONGEST_DAYS: Final = 366


class RecordNow(Func):
    """The record's time, inside a query; tests shift it."""

    function = "runs_now"
    arity = 0
    output_field = DateTimeField()


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token allows now. ``held``: its person's permissions in its only workspace."""

    token: UUID
    workspace: Workspace
    scopes: frozenset[str]
    held: frozenset[str]


def new_secret() -> tuple[str, str]:
    """A token's text, shown once, and the digest that is kept."""
    secret = PREFIX + secrets.token_urlsafe(32)
    return secret, digest_of(secret)


def digest_of(secret: str) -> str:
    """SHA-256 hex. The secret has 256 random bits, so that no salt and no slow hash is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer rcs_...``"""

    def authenticate(self, request: Request) -> tuple[Person, Grant] | None:
        """Person and grant; None without the header. Raises ApiError 401, the same for every reason."""
        scheme, _space, secret = request.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return None
        if scheme.lower() != "bearer" or not secret.startswith(PREFIX) or len(secret) > 200:
            raise ApiError("token_refused", 401)
        held = WorkspaceUserPermission.objects.filter(
            user=OuterRef("person"), content_object=OuterRef("workspace")
        ).values("permission__codename")
        row = (
            ApiToken.objects.filter(digest=digest_of(secret), expires_at__gt=RecordNow(), person__is_active=True)
            .select_related("person", "workspace")
            .annotate(held=ArraySubquery(held))
            .first()
        )
        if row is None or "see" not in row.held:
            raise ApiError("token_refused", 401)
        _used(row)
        return row.person, Grant(row.pk, row.workspace, frozenset(row.scopes), frozenset(row.held))

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        return 'Bearer realm="recourse"'


def _used(row: ApiToken) -> None:
    """Note the use at most once a minute: it is for people to see, and must not make each request a write."""
    rows = ApiToken.objects.filter(pk=row.pk)
    if row.last_used_at is None:
        rows.filter(last_used_at=None).update(last_used_at=RecordNow())
    elif datetime.now(row.last_used_at.tzinfo) - row.last_used_at > timedelta(minutes=1):
        rows.filter(last_used_at__lt=RecordNow() - timedelta(minutes=1)).update(last_used_at=RecordNow())


class BrowserSession(SessionAuthentication):
    """The session of a signed-in person; anything but reading needs the CSRF token."""


class Named(BasePermission):
    """Only what the endpoint's ``needs`` names, by method: one of these scopes. All else is refused."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises NotAuthenticated, MethodNotAllowed or ApiError 403."""
        if not request.user.is_authenticated:
            raise exceptions.NotAuthenticated
        method = "GET" if request.method == "HEAD" else str(request.method)
        needs: dict[str, tuple[str, ...]] = view.needs
        if method not in needs:
            refused = exceptions.MethodNotAllowed(method)
            refused.facts = {"method": method, "allowed": sorted(needs)}  # type: ignore[attr-defined]
            raise refused
        grant = request.auth
        if isinstance(grant, Grant) and not grant.scopes.intersection(needs[method]):
            raise ApiError("scope_missing", 403, scope=" or ".join(needs[method]))
        return True


def person_of(request: Request) -> Person:
    """Who calls; ``Named`` has let nobody else in."""
    person = request.user
    assert isinstance(person, Person)
    return person


def within(request: Request) -> UUID | None:
    """The only workspace that this caller reaches; None: all that the person sees."""
    return request.auth.workspace.pk if isinstance(request.auth, Grant) else None


def workspace_for(request: Request, slug: str, permission: str) -> Workspace:
    """The workspace of the address, if the caller sees it and holds ``permission``.

    No query for a token: its grant was read with it. Raises NotFound, NotAllowed.
    """
    if isinstance(request.auth, Grant):
        workspace = request.auth.workspace
        if workspace.slug != slug:
            raise NotFound
    else:
        workspace = visible_workspace(person_of(request), slug)
    require(request, workspace.pk, permission)
    return workspace


def require(request: Request, workspace: UUID, permission: str) -> None:
    """Refuse a caller who does not hold ``permission`` in a workspace they see. Raises NotAllowed."""
    grant = request.auth
    if isinstance(grant, Grant):
        if permission not in grant.held:
            roles = access.roles_with(permission)
            raise NotAllowed(permission=permission, roles=roles, names=access.names_who_can(workspace, permission))
    elif permission != "see":
        access.require(person_of(request), workspace, permission)


__all__ = [
    "LONGEST_DAYS",
    "SCOPES",
    "BrowserSession",
    "Grant",
    "Named",
    "TokenAuthentication",
    "digest_of",
    "new_secret",
    "person_of",
    "require",
    "within",
    "workspace_for",
]
