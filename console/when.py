"""Moments and spans in words. The same rules run in ``static/js/clocks.js``; a browser test compares both.

Absolute times are in the activated zone of the person; the zone itself is said once, in the status line.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext

SPANS: Final[dict[str, str | Promise]] = {
    "s": _("{s} s"),
    "ms": _("{m} min {s} s"),
    "m": _("{m} min"),
    "hm": _("{h} h {m} min"),
    "h": _("{h} h"),
    "dh": _("{d} d {h} h"),
    "d": _("{d} d"),
}
"""How a span is written: at most its two largest units."""

KINDS: Final[dict[str, str | Promise]] = {
    "ago": _("{span} ago"),
    "for": _("for {span}"),
    "in": _("in {span}"),
    "past": _("{span} past"),
    "due": _("Due in {span}"),
    "late": _("Late by {span}"),
}
"""Sentences around a span; ``in`` turns into ``past`` and ``due`` into ``late`` when the moment is over."""


def span(seconds: float) -> str:
    """``seconds`` (sign ignored): "40 s", "1 min 20 s", "34 min", "1 h 44 min", "38 h", "2 d 3 h"."""
    total = int(abs(seconds))
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 60:
        form = "s"
    elif total < 120:
        form = "ms" if total % 60 else "m"
    elif hours < 1:
        form = "m"
    elif hours < 24:
        form = "hm" if minutes % 60 else "h"
    elif days < 2:
        form = "h"
    else:
        form = "dh" if hours % 24 else "d"
    parts = {
        "s": total % 60,
        "m": minutes % 60,
        "h": hours % 24 if form == "dh" else hours,
        "d": days,
    }
    return str(SPANS[form]).format(**parts)


def phrase(kind: str, moment: datetime, now: datetime) -> str:
    """The sentence of ``kind`` about ``moment`` as seen at ``now``; raises KeyError for an unknown kind."""
    ahead = (moment - now).total_seconds()
    if kind == "in" and ahead < 0:
        kind = "past"
    elif kind == "due" and ahead < 0:
        kind = "late"
    return str(KINDS[kind]).format(span=span(ahead))


def clock(moment: datetime, *, seconds: bool = True) -> str:
    """The time of day, 24 hours: "03:12:41" or "03:12"."""
    return date_format(timezone.localtime(moment), "H:i:s" if seconds else "H:i")


def stamp(moment: datetime, now: datetime, *, seconds: bool = True) -> str:
    """The clock, with the date when ``moment`` is not today, with the year when it is not this year's."""
    local, today = timezone.localtime(moment), timezone.localtime(now)
    said = clock(moment, seconds=seconds)
    if local.date() == today.date():
        return said
    if local.year == today.year:
        day = date_format(local, pgettext("date of this year, Django date format", "j M"))
    else:
        day = date_format(local, pgettext("date of another year, Django date format", "j M Y"))
    return f"{day} {said}"


def precise(moment: datetime) -> str:
    """Date and clock with milliseconds, for evidence that may be read aloud: "2026-11-30 03:12:41.204"."""
    local = timezone.localtime(moment)
    return f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03d}"


def zone_label(moment: datetime) -> str:
    """The offset of the activated zone at ``moment``: "UTC+08:00"."""
    offset = timezone.localtime(moment).strftime("%z")
    return f"UTC{offset[:3]}:{offset[3:]}"
