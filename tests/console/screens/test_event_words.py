"""A line of the timeline says why in words, never by a code of the engine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.screens import event_words
from runs.models import Event
from runs.states import EventKind


def _said(kind: EventKind, **data: Any) -> str:
    text = json.dumps({"seq": 1, "moves": [], "data": data})
    said = event_words.say(Event(seq=1, kind=kind, text=text), None)
    assert said is not None
    return said.text


@pytest.mark.parametrize("code", sorted(event_words.HELD))
def test_why_an_effect_was_held_back_is_told_in_words(code: str) -> None:
    """As the sender tells it, and as a decision does."""
    words = str(event_words.HELD[code])
    assert _said(EventKind.EFFECT_HELD_BACK, code=code, facts={}) == f"Not sent: {words}"
    assert _said(EventKind.EFFECT_HELD_BACK, decision={"reason": code}) == f"Not sent: {words}"
