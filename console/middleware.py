"""Around each request: its id, the person's zone and language, sign-in without losing what was typed.

Order: RequestId first of all; SignedIn and PersonSettings after Django's session, locale and authentication.
"""

from __future__ import annotations

import re
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


class NothingHidden:
    """Shows control and direction characters on a page by their name, ``[U+202E]``.

    Names, sentences and reasons are strangers' words. What turns the direction or cannot be seen would let a page
    read otherwise than what is signed or decided; it is replaced here, once, for every place of every page.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not response.streaming and response.get("Content-Type", "").startswith("text/html"):
            page = response.content
            if _HIDDEN.search(page):
                response.content = _HIDDEN.sub(lambda match: b"[U+%04X]" % ord(match[0].decode()), page)
        return response


_HIDDEN = re.compile(
    "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]|"  # C0 but for tab and the ends of lines
    "\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]".encode("latin-1")
)
"""C1 controls and the marks, embeddings, overrides and isolates of direction, as UTF-8. No template has any of them."""


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
