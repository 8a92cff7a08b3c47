"""Answers that are not a screen of their own: refusals, results, and the pages for what went wrong.

Each is a whole page for a plain request and a part for htmx, so that links and forms work without JavaScript.
"""

from __future__ import annotations

import sys
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template import loader
from django.utils.translation import gettext as _

from console import words
from console.preview import Link, Preview, Result
from runs.errors import RunsError


def part(request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    """``template`` alone for htmx; the same inside the shell otherwise."""
    if getattr(request, "htmx", False):
        return render(request, template, context, status=status)
    return render(request, "part_page.html", {**context, "part": template}, status=status)


def preview(request: HttpRequest, what: Preview, *, status: int = 200) -> HttpResponse:
    """The preview of an action: 200 when first shown, 422 when its form came back with errors."""
    return part(
        request,
        "partials/action_preview.html",
        {"preview": what, "title": what.title, "subject": what.subject},
        status=status,
    )


def result(request: HttpRequest, what: Result) -> HttpResponse:
    """What an action did, in place of its preview; its heading takes focus."""
    return part(request, "partials/result.html", {"result": what, "title": what.title, "subject": what.subject})


def refusal(
    request: HttpRequest,
    error: RunsError,
    *,
    preview: Preview | None = None,
    again_url: str = "",
    again_label: str = "",
    diff: Any = None,
    diff_caption: str = "",
    kept: str = "",
    subject: Link | None = None,
) -> HttpResponse:
    """A refused action: what did not happen, why, what now; the typed reason stays in ``preview``'s form.

    ``diff`` (console.diff.Diff) is what the person saw against what is now. ``kept`` is the typed reason where the
    form itself is of no use any more. ``subject`` is the thing it is about,
    where no ``preview`` says so. The status is the error's own.
    """
    context = {
        "sentence": words.refusal(error.code, error.facts),
        "code": error.code,
        "preview": preview,
        "subject": preview.subject if preview else subject,
        "again_url": again_url,
        "again_label": again_label or _("Read it again"),
        "diff": diff,
        "diff_caption": diff_caption or _("What changed"),
        "kept": kept,
        "title": words.refusal(error.code, error.facts),
    }
    return part(request, "partials/refusal.html", context, status=error.status)


def _bare(request: HttpRequest, template: str, status: int) -> HttpResponse:
    """A page that touches neither the record nor the session: it must work when they do not."""
    context = {"request_id": getattr(request, "request_id", ""), "path": request.path}
    return HttpResponse(loader.render_to_string(template, context), status=status)


def not_here(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404: the same words for what is foreign and what does not exist (invariant 14)."""
    return _bare(request, "errors/404.html", 404)


def not_allowed(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403: seen, but not allowed."""
    return _bare(request, "errors/403.html", 403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403: the form was made before a sign-in or a sign-out."""
    return _bare(request, "errors/csrf.html", 403)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """400: nothing was read from it."""
    return _bare(request, "errors/400.html", 400)


def server_error(request: HttpRequest) -> HttpResponse:
    """500, or 503 when the record is away: a view or a middleware could not reach PostgreSQL."""
    cause = sys.exc_info()[1]
    if isinstance(cause, (OperationalError, InterfaceError)):
        answer = _bare(request, "errors/503.html", 503)
        answer["Retry-After"] = "5"
        return answer
    return _bare(request, "errors/500.html", 500)
