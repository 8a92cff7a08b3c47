"""A form with two opposing buttons: which one was pressed is a field, and the buttons are what shows it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.safestring import SafeString


class Pressed(forms.HiddenInput):
    """Renders nothing: the pressed button posts the value."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """An empty text."""
        return SafeString("")
