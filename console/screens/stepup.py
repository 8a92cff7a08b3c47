"""Step-up: a heavy action asks who is there, at most five minutes before it happens (ASVS 7.5.3).

In place of the preview stands "Confirm it is you". Its form posts to the action's own address and carries all
its fields, so after the password the action goes on by itself and checks version or digest again.

A heavy view reads::

    form = DigestForm(request.POST)
    ...                                        # form errors, then: is what the person saw still true?
    if (ask := stepup.needed(request, _("Sign: send USD 1,205.00"))) is not None:
        return ask
    done = actions.approvals.sign(...)         # checks again, under the lock
"""

from __future__ import annotations

import time
from typing import Final

from django.contrib.auth import authenticate
from django.dispatch import Signal
from django.http import HttpRequest, HttpResponse

from console import http
from console.forms import StepUpForm

FRESH_FOR: Final = 300
"""Seconds that a step-up lasts; signing in is none."""

FIELD: Final = "step_up_password"
_AT: Final = "stepped_up_at"
_NOT_CARRIED: Final = frozenset({FIELD, "csrfmiddlewaretoken"})

stepped_up: Final = Signal()
"""Sent with ``request`` and ``person`` after each step-up, so that it is recorded."""


def fresh(request: HttpRequest) -> bool:
    """True if this session stepped up at most five minutes ago."""
    at = request.session.get(_AT)
    return at is not None and 0 <= time.time() - at <= FRESH_FOR


def needed(request: HttpRequest, button: str) -> HttpResponse | None:
    """None when the pressed action may go on, else the answer to give now (403): "Confirm it is you".

    ``button`` is the label of what was pressed; the step-up's own button repeats it. With a right password in
    the POST the session's key is rotated (ASVS 7.2.4) and the action goes on in the same request.
    """
    if fresh(request):
        return None
    wrong = False
    if FIELD in request.POST:
        person = authenticate(request, username=request.user.get_username(), password=request.POST[FIELD])
        if person is not None and person.pk == request.user.pk:
            request.session[_AT] = time.time()
            request.session.cycle_key()
            stepped_up.send(sender=None, request=request, person=person)
            return None
        wrong = True
    carried = [(name, value) for name, values in request.POST.lists() if name not in _NOT_CARRIED for value in values]
    context = {
        "carried": carried,
        "button": button,
        "wrong": wrong,
        "form": StepUpForm(),
        "post_url": request.path,
    }
    return http.part(request, "partials/step_up.html", {**context, "title": button}, status=403)
