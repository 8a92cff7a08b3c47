"""Revisions of one request: which one a reader saw last, and what differs between two."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

from django.http import HttpRequest

from console import money
from console.diff import Diff, difference
from runs.models import Approval

_SEEN: Final = "approvals_seen"
"""Key of the session: by effect, the revision that was looked at last."""

_REMEMBERED: Final = 50


def looked_at(request: HttpRequest, approval: Approval) -> int | None:
    """The revision of the same effect that this browser looked at last."""
    seen: int | None = request.session.get(_SEEN, {}).get(str(approval.effect_id))
    return seen


def remember(request: HttpRequest, approval: Approval) -> None:
    """Keep in the session which revision was looked at, so that the next one can say what changed since."""
    key, revision = str(approval.effect_id), approval.revision
    seen = request.session.get(_SEEN, {})
    if seen.get(key) == revision:
        return
    seen.pop(key, None)
    kept = dict(list(seen.items())[-_REMEMBERED + 1 :])
    request.session[_SEEN] = {**kept, key: revision}


def what_changed(before: Approval, now: Approval) -> Diff:
    """Two revisions by what would be sent: the body by its paths, then everything else that is signed."""
    old, new = _signed(before), _signed(now)
    return difference(old, new, _notes(before, now, old, new))


_IN_THE_BODY: Final = frozenset({"body", "params", "stake", "revision", "target"})


def _signed(approval: Approval) -> dict[str, Any]:
    body: Any = {"body": approval.body}
    with suppress(ValueError):  # bytes that are no JSON are compared as text
        body = json.loads(approval.body)
    rest = {name: value for name, value in approval.fields.items() if name not in _IN_THE_BODY}
    return {**rest, **body} if isinstance(body, dict) else {**rest, "body": body}


def _notes(before: Approval, now: Approval, old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    """Amounts in words, beside the minor units that are sent."""
    was, is_ = before.fields["stake"] or {}, now.fields["stake"] or {}
    if was.get("kind") != "money" or is_.get("kind") != "money":
        return {}
    words = " -> ".join(money.amount(int(one["amount"]), str(one["currency"])) for one in (was, is_))
    return {
        name: words
        for name in old
        if old[name] == was["amount"] and new.get(name) == is_["amount"] and old[name] != new[name]
    }
