"""Addresses of the shell's tests: a heavy action on nothing, and pages that break in each way."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import include, path

from console import http
from console.forms import VersionForm
from console.preview import Preview, Result
from console.screens import stepup
from runs.errors import StaleVersion

VERSION = 4
"""What the pretended thing stands at."""

done: list[dict[str, object]] = []
"""What the action did, in order."""


def _preview(form: VersionForm) -> Preview:
    return Preview(
        title="Record that this refund happened",
        post_url="/heavy/",
        button="Record: the refund happened",
        leave_url="/account/",
        form=form,
        will=["The refund becomes Happened."],
    )


def heavy(request: HttpRequest) -> HttpResponse:
    """The shape of every heavy view: form, still true?, step-up, action."""
    if request.method != "POST":
        return http.preview(request, _preview(VersionForm.fresh(version=VERSION)))
    form = VersionForm(request.POST)
    if not form.is_valid():
        return http.preview(request, _preview(form), status=422)
    if form.cleaned_data["version"] != VERSION:
        return http.refusal(
            request, StaleVersion(thing="The effect", at="03:13:58", who="callback"), preview=_preview(form)
        )
    if (ask := stepup.needed(request, "Record: the refund happened")) is not None:
        return ask
    done.append(form.cleaned_data)
    return http.result(request, Result("Recorded at 03:14:10: the refund happened. Event #23."))


def broken(request: HttpRequest, how: int) -> HttpResponse:
    """Answers in the way that is asked for."""
    if how == 403:
        raise PermissionDenied
    if how == 503:
        raise OperationalError("the server closed the connection")
    if how == 500:
        raise RuntimeError("a secret that no page may show")
    raise Http404("run 42 of other-pay")


handler400 = "console.http.bad_request"
handler403 = "console.http.not_allowed"
handler404 = "console.http.not_here"
handler500 = "console.http.server_error"

urlpatterns = [
    path("heavy/", heavy),
    path("broken/<int:how>/", broken),
    path("", include("console.screens.urls")),
]
