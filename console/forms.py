"""Forms of actions. Each carries its action id (invariant 15), and what the person saw if it decides."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any, Self

from django import forms
from django.utils.translation import gettext_lazy as _


class ActForm(forms.Form):
    """A light action: the action id alone. The same id twice counts once."""

    action = forms.UUIDField(widget=forms.HiddenInput)

    @classmethod
    def fresh(cls, **seen: Any) -> Self:
        """An unbound form with a new action id and what the page shows (``version``, ``digest``, ...)."""
        return cls(initial={"action": uuid.uuid4(), **seen})

    def full_clean(self) -> None:
        """Django's cleaning; then the first field with an error takes focus when the form is shown again."""
        super().full_clean()
        for name in self.errors:
            if name in self.fields and not self.fields[name].widget.is_hidden:
                self.fields[name].widget.attrs["autofocus"] = True
                break

    def again(self, **seen: Any) -> Self:
        """After a refusal: what was typed, with a new action id and what the page shows now."""
        typed = {name: self.data.get(name) for name in self.fields if name not in ("action", "version", "digest")}
        return type(self)(initial={**typed, "action": uuid.uuid4(), **seen})

    def body_digest(self) -> str:
        """SHA-256 in hex over what was posted, without the action id: tells a repeat from another body."""
        body = {name: value for name, value in self.cleaned_data.items() if name != "action"}
        return hashlib.sha256(json.dumps(body, sort_keys=True, default=str).encode()).hexdigest()


class ReasonForm(ActForm):
    """A medium action: a reason that is kept for good. White space alone is no reason."""

    reason = forms.CharField(
        label=_("Reason (kept for good, shown to auditors)"),
        max_length=2000,
        strip=True,
        widget=forms.Textarea(attrs={"rows": 3, "required": False, "autocomplete": "off"}),
        error_messages={
            "required": _("Not recorded. Say why: the reason is kept with the decision."),
            "max_length": _("Not recorded. The reason is longer than %(limit_value)d characters."),
        },
    )


class VersionForm(ReasonForm):
    """An action on what the person saw at ``version``; another version now is refused (409)."""

    version = forms.IntegerField(min_value=1, max_value=2**31 - 1, widget=forms.HiddenInput)


class DigestForm(ReasonForm):
    """A signature, a rejection, a confirmation: bound to the digest on the page (R3)."""

    digest = forms.RegexField(r"^[0-9a-f]{64}$", widget=forms.HiddenInput)


class StepUpForm(forms.Form):
    """Confirm it is you: the password again. Its field name never collides with an action's own fields."""

    step_up_password = forms.CharField(
        label=_("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
        error_messages={"required": _("That did not match.")},
    )
