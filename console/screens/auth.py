"""Sign-in, sign-out and the language of the sign-in page."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, cast

from axes.helpers import get_cool_off
from django import forms
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.i18n import set_language

from console import http, when


class SignInForm(AuthenticationForm):
    """E-mail and password. Unknown, wrong and disabled give the same answer (ASVS 6.3.8)."""

    username = forms.EmailField(
        label=gettext_lazy("E-mail"),
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}),
        error_messages={
            "required": gettext_lazy("That did not match."),
            "invalid": gettext_lazy("That did not match."),
        },
    )
    password = forms.CharField(
        label=gettext_lazy("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
        error_messages={"required": gettext_lazy("That did not match.")},
    )
    error_messages = {  # noqa: RUF012 - the shape that Django's form reads
        "invalid_login": gettext_lazy("That did not match."),
        "inactive": gettext_lazy("That did not match."),
    }

    def clean_username(self) -> str:
        """Addresses are kept in lower case."""
        return str(self.cleaned_data["username"]).lower()


class SignIn(LoginView):
    """``/sign-in/``: a page, or a part when a page of a signed-out person asks for it in place."""

    authentication_form = SignInForm
    template_name = "auth/sign_in.html"
    next_page = "/inbox/"
    redirect_authenticated_user = True

    def get_template_names(self) -> list[str]:
        return ["partials/signed_out.html"] if getattr(self.request, "htmx", False) else [self.template_name]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        goes_on = self.get_redirect_url() not in ("", "/", self.next_page)
        return super().get_context_data(goes_on=goes_on, title=_("Sign in"), **kwargs)

    def form_invalid(self, form: forms.Form) -> HttpResponse:
        response = self.render_to_response(self.get_context_data(form=form))
        response.status_code = 422
        return response

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        if not getattr(self.request, "htmx", False):
            return response
        said = {"token": get_token(self.request), "person": str(self.request.user.pk)}
        part = render(self.request, "partials/signed_in.html", {"now": timezone.now()})
        part["HX-Trigger"] = json.dumps({"recourse:signed-in": said})
        return part


class SignOut(LogoutView):
    """``/sign-out/``: POST only. The sockets of the session close (see ``console/apps.py``)."""

    next_page = "/sign-in/"


def too_many(request: HttpRequest, response: HttpResponse | None = None, credentials: Any = None) -> HttpResponse:
    """Answer of django-axes after too many tries from one address for one account name, known or not."""
    wait = cast("timedelta | None", get_cool_off(request)) or timedelta(minutes=15)
    sentence = _("Too many tries from here. Try again in {span}.").format(span=when.span(wait.total_seconds()))
    if request.user.is_authenticated:  # a step-up, not a sign-in
        answer = http.part(request, "partials/refusal.html", {"sentence": sentence, "title": sentence}, status=429)
        answer["Retry-After"] = str(int(wait.total_seconds()))
        return answer
    context = {
        "sentence": sentence,
        "title": _("Sign in"),
        "form": SignInForm(request),
        "now": timezone.now(),
    }
    template = "partials/signed_out.html" if getattr(request, "htmx", False) else "auth/sign_in.html"
    answer = render(request, template, context, status=429)
    answer["Retry-After"] = str(int(wait.total_seconds()))
    return answer


language = login_not_required(set_language)
"""``/language/``: POST only; keeps the choice in a cookie and goes back to a page of ours."""
