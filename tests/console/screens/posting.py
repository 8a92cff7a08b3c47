"""Filling the forms of a page as a browser would: hidden fields as they stand, ticks as they are ticked."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from uuid import uuid4

from tests.console.screens.scene import PASSWORD


def fields(response: Any, address: str) -> dict[str, list[str]]:
    """What the form that posts to ``address`` would send unchanged, without the CSRF token."""
    page = response.content.decode()
    found = re.search(rf'<form[^>]*action="{re.escape(address)}".*?</form>', page, re.S)
    assert found, f"no form to {address}"
    kept: dict[str, list[str]] = {}
    for tag in re.findall(r"<input\b[^>]*>", found[0]):
        attributes = dict(re.findall(r'(\w[\w-]*)="([^"]*)"', tag))
        box = attributes.get("type") == "checkbox"
        if "name" not in attributes or (box and not re.search(r"\bchecked\b", tag)):
            continue
        kept.setdefault(unescape(attributes["name"]), []).append(unescape(attributes.get("value", "")))
    for name, value in re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>\s*(.*?)</textarea>', found[0], re.S):
        kept[name] = [unescape(value).strip()]
    return {name: values for name, values in kept.items() if name != "csrfmiddlewaretoken"}


def press(client: Any, opened: Any, address: str, *, step_up: bool = True, **typed: Any) -> Any:
    """Press a button of an opened page: its own fields, what was ``typed``, and the password where it is asked."""
    sent = {**fields(opened, address), **typed}
    if step_up:
        sent["step_up_password"] = PASSWORD
    return client.post(address, sent)


def act() -> dict[str, str]:
    """The only field of a light form."""
    return {"action": str(uuid4())}
