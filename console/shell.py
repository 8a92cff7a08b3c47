"""What every page of the shell needs: one moment, the person's zone and theme, the way to the lists."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import get_language, to_locale
from django.utils.translation import gettext_lazy as _

from console import when

KEYS_COOKIE: Final = "recourse_keys"
"""Cookie of this device; "off" switches single-key shortcuts off (WCAG 2.2, 2.1.4)."""


@dataclass(frozen=True)
class Place:
    """A list of the shell: its key after ``g``, its address, its name, its icon."""

    key: str
    url: str
    label: str
    icon: str
    current: bool
    count: int | None = None


_LISTS: Final = (("i", "inbox", _("Inbox"), "inbox"), ("r", "runs", _("Runs"), "queue-list"))


def places(request: HttpRequest) -> list[Place]:
    """The lists, of the workspace at hand if there is one."""
    workspace = getattr(request, "workspace", None)
    prefix = f"/w/{workspace.slug}" if workspace else ""
    found = []
    for key, name, label, icon in _LISTS:
        url = f"{prefix}/{name}/"
        count = getattr(request, "inbox_count", None) if name == "inbox" else None
        found.append(Place(key, url, str(label), icon, request.path.startswith((url, f"/{name}/")), count))
    return found


def languages() -> list[tuple[str, str]]:
    """The languages that pages can be read in: the source language and those with a catalogue of ours."""
    return [
        (code, str(name))
        for code, name in settings.LANGUAGES
        if code == settings.LANGUAGE_CODE
        or any((Path(root) / to_locale(code) / "LC_MESSAGES/django.mo").exists() for root in settings.LOCALE_PATHS)
    ]


def clock_words() -> dict[str, Any]:
    """Everything that the scripts say, in the reader's language."""
    return {
        "spans": {name: str(text) for name, text in when.SPANS.items()},
        "kinds": {name: str(text) for name, text in when.KINDS.items()},
        "live": str(_("Live")),
        "stopped": str(_("Live updates stopped at {clock}. Checking every 15 s.")),
        "away": str(_("Recourse cannot reach its record. Nothing can be saved.")),
        "back": str(_("Live updates are back.")),
        "copied": str(_("Copied")),
        "absolute": str(_("Times are shown as clock times.")),
        "relative": str(_("Times are shown as ages.")),
    }


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context processor. Reads the person that the middleware has already loaded; asks the record nothing."""
    now = timezone.now()
    person = getattr(request, "user", None)
    signed_in = bool(person and person.is_authenticated)
    return {
        "now": now,
        "signed_in": signed_in,
        "zone": timezone.get_current_timezone_name(),
        "zone_label": when.zone_label(now),
        "as_of": when.clock(now),
        "theme": getattr(person, "theme", "system") if signed_in else "system",
        "keys": "off" if request.COOKIES.get(KEYS_COOKIE) == "off" else "on",
        "language": get_language() or settings.LANGUAGE_CODE,
        "languages": languages(),
        "places": places(request) if signed_in else [],
        "workspace": getattr(request, "workspace", None),
        "script_words": clock_words(),
        "request_id": getattr(request, "request_id", ""),
    }
