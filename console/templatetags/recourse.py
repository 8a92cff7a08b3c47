"""The console's words on a page: pills, moments, money, ids, payloads, differences, live topics.

``{% load recourse %}`` gives all of them. Nothing here marks text as safe: markup comes from the partials and
from ``format_html``.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django import template
from django.template import Context
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from console import diff as differences
from console import money, payload, pills, topics, when

register = template.Library()


def _now(context: Context) -> datetime:
    """One moment for the whole page (``now`` of the context), so that its clocks agree."""
    now = context.get("now")
    return now if isinstance(now, datetime) else timezone.now()


# --- pills and turns ---


def _pill(look: pills.Pill, **facts: object) -> dict[str, object]:
    return {"look": look, "words": look.text(**facts)}


@register.inclusion_tag("partials/pill.html")
def pill(thing: str, code: str, waiting_on: str = "", **facts: object) -> dict[str, object]:
    """``{% pill "effect" effect.state dependency="cards-eu" %}``: the pill of a state, with its facts."""
    return _pill(pills.pill_for(thing, code, waiting_on), **facts)


@register.inclusion_tag("partials/pill.html", takes_context=True)
def run_pill(context: Context, run: Any, **facts: object) -> dict[str, object]:
    """The pill of a run, with the timer or event it waits for."""
    if run.wake_at and run.waiting_on == "timer":
        facts.setdefault("until", when.stamp(run.wake_at, _now(context), seconds=False))
    facts.setdefault("event", run.wait_event)
    return _pill(pills.pill_for("run", run.state, run.waiting_on), **facts)


@register.inclusion_tag("partials/turn.html")
def turn(who: str, dependency: str = "") -> dict[str, object]:
    """Whose turn it is: "recourse", "other" (then ``dependency``), "person"; nothing for an empty ``who``."""
    return {"who": who, "words": str(pills.TURNS[who]).format(dependency=dependency) if who else ""}


# --- moments ---


def _time(moment: datetime, words: str, kind: str = "") -> SafeString:
    iso = moment.isoformat()
    if not kind:
        return format_html('<time datetime="{}">{}</time>', iso, words)
    return format_html('<time datetime="{}" data-clock="{}">{}</time>', iso, kind, words)


@register.simple_tag(takes_context=True)
def ago(context: Context, moment: datetime) -> SafeString:
    """For lists: "34 min ago" and the clock beside it; a narrow page shows the one that ``t`` chose."""
    now = _now(context)
    return format_html(
        '<span class="when"><span class="when-span">{}</span> <span class="when-clock">{}</span></span>',
        _time(moment, when.phrase("ago", moment, now), "ago"),
        when.stamp(moment, now),
    )


@register.simple_tag(takes_context=True)
def lasting(context: Context, since: datetime) -> SafeString:
    """How long something has lasted: "for 31 min"."""
    return _time(since, when.phrase("for", since, _now(context)), "for")


@register.simple_tag(takes_context=True)
def due(context: Context, moment: datetime) -> SafeString:
    """A due time of a row: "Due in 1 h 44 min", "Late by 4 min", with the clock in a second line."""
    now = _now(context)
    return format_html(
        '<span class="due">{} <span class="due-clock">{}</span></span>',
        _time(moment, when.phrase("due", moment, now), "due"),
        _("due {clock}").format(clock=when.stamp(moment, now, seconds=False)),
    )


@register.simple_tag(takes_context=True)
def by(context: Context, moment: datetime) -> SafeString:
    """A deadline, clock first: "11:00 (in 1 h 44 min)"."""
    now = _now(context)
    return format_html(
        '<span class="by"><time datetime="{}">{}</time> ({})</span>',
        moment.isoformat(),
        when.stamp(moment, now, seconds=False),
        _time(moment, when.phrase("in", moment, now), "in"),
    )


@register.simple_tag(takes_context=True)
def stamp(context: Context, moment: datetime) -> SafeString:
    """Clock with seconds, and the date if it is not today."""
    return _time(moment, when.stamp(moment, _now(context)))


@register.simple_tag
def here(moment: datetime) -> SafeString:
    """A clock that the page itself puts into its person's zone: for answers to nobody who is signed in."""
    return format_html('<time datetime="{}" data-here>{}</time>', moment.isoformat(), when.clock(moment))


@register.simple_tag
def action_id() -> str:
    """A new action id for a form that is only a button; the same id twice counts once (invariant 15)."""
    return str(uuid4())


@register.simple_tag
def precise(moment: datetime) -> SafeString:
    """Date and clock with milliseconds, for evidence and history."""
    return _time(moment, when.precise(moment))


# --- money, ids, bytes ---


@register.filter
def at_stake(stake: dict[str, Any] | None) -> str:
    """A stored stake in words: "EUR 84.00 out"."""
    return money.at_stake(stake)


@register.filter
def short_id(value: UUID | str) -> str:
    """The last eight digits in two groups: "8f3c-21ab"."""
    digits = str(value).replace("-", "")[-8:]
    return f"{digits[:4]}-{digits[4:]}"


@register.simple_tag
def ident(kind: str, value: UUID | str) -> SafeString:
    """Kind and last eight digits: "run 8f3c-21ab"; the whole id is on the thing's own page."""
    return format_html('<span class="id">{} <code>{}</code></span>', kind, short_id(value))


@register.inclusion_tag("partials/whole_id.html")
def whole_id(kind: str, value: UUID | str) -> dict[str, object]:
    """The whole id with a button that copies it."""
    return {"kind": kind, "short": short_id(value), "value": str(value)}


def _chips(parts: Iterable[payload.Piece]) -> SafeString:
    return format_html_join(
        "",
        "{}{}{}",
        (
            (format_html('<span class="chip">[{}]</span>', part.text), "", "") if part.chip else (part.text, "", "")
            for part in parts
        ),
    )


@register.filter
def chips(text: object) -> SafeString:
    """Text from outside: escaped, with control and direction characters named instead of obeyed."""
    return _chips(payload.pieces(str(text)))


@register.inclusion_tag("partials/payload.html")
def as_sent(text: str, label: str) -> dict[str, object]:
    """Bytes as sent or received, at most 64 KB of them; ``label`` names the region."""
    shown = text[: payload.SHOWN]
    return {
        "text": shown,
        "label": label,
        "whole": payload.size(len(text.encode())) if len(shown) < len(text) else "",
        "part": payload.size(len(shown.encode())),
    }


@register.inclusion_tag("partials/diff.html")
def diff(before: Any, after: Any, caption: str, notes: dict[str, str] | None = None) -> dict[str, object]:
    """The difference of two JSON values by path, unchanged leaves counted."""
    return {"diff": differences.difference(before, after, notes), "caption": caption}


# --- live ---


@register.simple_tag(takes_context=True)
def live_topic(context: Context, workspace: UUID | str, kind: str, value: UUID | str = "") -> SafeString:
    """Makes an element listen: ``<p {% live_topic run.workspace_id "run" run.id %} hx-get=...>``.

    The token is signed for this person; without a signed-in person the element does not listen.
    """
    user = getattr(context.get("request"), "user", None)
    if user is None or not user.is_authenticated:
        return SafeString("")
    topic = topics.Topic(UUID(str(workspace)), kind, str(value))
    return format_html('data-live="{}" data-topic="{}"', topic.name, topics.token_for(user.pk, topic))
