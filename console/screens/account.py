"""``/account/``: a person's own settings. They change how pages look for them, and nothing of the record."""

from __future__ import annotations

import zoneinfo
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from console.shell import KEYS_COOKIE, languages
from runs.models import Person

_A_YEAR = 365 * 24 * 3600


def _zones() -> list[tuple[str, str]]:
    return [(name, name.replace("_", " ")) for name in sorted(zoneinfo.available_timezones())]


class AccountForm(forms.Form):
    """Language, zone, theme, single-key shortcuts."""

    language = forms.ChoiceField(label=gettext_lazy("Language"), choices=languages)
    zone = forms.ChoiceField(label=gettext_lazy("Time zone"), choices=_zones)
    theme = forms.ChoiceField(label=gettext_lazy("Light or dark"), choices=Person.Theme.choices)
    keys = forms.BooleanField(
        label=gettext_lazy("Single-key shortcuts"),
        required=False,
        help_text=gettext_lazy("For this device. Press ? on any page to see them."),
    )


@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Show and save the settings; after saving, the page again (post, redirect, get)."""
    person: Any = request.user
    keys_on = request.COOKIES.get(KEYS_COOKIE) != "off"
    form = AccountForm(
        request.POST or None,
        initial={"language": person.language, "zone": person.zone, "theme": person.theme, "keys": keys_on},
    )
    if request.method == "POST" and form.is_valid():
        chosen = form.cleaned_data
        Person.objects.filter(pk=person.pk).update(
            language=chosen["language"], zone=chosen["zone"], theme=chosen["theme"]
        )
        answer = HttpResponseRedirect("/account/?saved=1")
        answer.set_cookie(
            KEYS_COOKIE, "on" if chosen["keys"] else "off", max_age=_A_YEAR, samesite="Lax",
            secure=request.is_secure(), httponly=True,
        )  # fmt: skip
        return answer
    context = {"form": form, "saved": "saved" in request.GET, "title": _("Account")}
    return render(request, "account.html", context, status=422 if form.errors else 200)
