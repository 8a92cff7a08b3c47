"""Around each request: its id, the person's zone and language, sign-in without losing what was typed.

Order: RequestId first of all; SignedIn and PersonSettings after Django's session, locale and authentication.
"""

from __future__ import annotations

import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone, translation

Handler = Callable[[HttpRequest], HttpResponse]


class RequestId:
    """Gives each request an id (said on error pages and in the log) and keeps answers out of caches."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.request_id = uuid.uuid4().hex[:12]  # type: ignore[attr-defined]
        response = self.get_response(request)
        response["Request-Id"] = request.request_id  # type: ignore[attr-defined]
        if not response.has_header("Cache-Control"):
            response["Cache-Control"] = "no-store"
        return response


class SignedIn(LoginRequiredMiddleware):
    """Everything needs a person. A part of a page asked for without one answers 401 with the sign-in form.

    The answer goes to the page's own slot, never over a form: what was typed there is kept.
    """

    def handle_no_permission(self, request: HttpRequest, view_func: Any) -> HttpResponse:
        """Redirect a page to sign-in; for htmx the form itself, aimed at ``#sign-in-slot``."""
        if not getattr(request, "htmx", False):
            return super().handle_no_permission(request, view_func)
        from console.screens.auth import SignInForm

        context = {"form": SignInForm(request), "now": timezone.now()}
        response = render(request, "partials/signed_out.html", context, status=401)
        response["HX-Retarget"] = "#sign-in-slot"
        response["HX-Reswap"] = "innerHTML"
        return response


class PersonSettings:
    """Activates the zone and language of the signed-in person for this request."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.COOKIES and request.user.is_authenticated:
            person: Any = request.user
            with timezone.override(zoneinfo.ZoneInfo(person.zone)), translation.override(person.language):
                request.LANGUAGE_CODE = translation.get_language()  # type: ignore[attr-defined]
                response = self.get_response(request)
                response.headers.setdefault("Content-Language", translation.get_language())
                return response
        return self.get_response(request)
