"""What the other side repeats of a sealed field is masked before its answer is kept (trap 19)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recovery.engine.outbound import _without_echo
from recovery.ports.base import Answer, AnswerKind
from runs.checkpoints import tokens

NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (b'{"pin": "t\xc3\xa4g\\"8374"}', '{"pin": "••••"}'),
        (b'{"pin": "t\\u00e4g\\"8374"}', '{"pin": "••••"}'),
        (b'{"other": 1}', '{"other": 1}'),
    ],
)
def test_an_echo_is_masked(body: bytes, left: str) -> None:
    """As UTF-8 and as ASCII JSON writes it."""
    answer = Answer(AnswerKind.ANSWERED, NOW, NOW, 200, body=body)
    assert _without_echo(answer, ('täg"8374',)).body.decode() == left
    assert _without_echo(answer, ()).body == body


def test_a_token_inside_a_text_is_masked_and_the_rest_stays() -> None:
    assert tokens.masked({"a": ["x rcs1.abc-_9 y", 1, None]}) == {"a": [f"x {tokens.MASK} y", 1, None]}
    assert tokens.masked("nothing here") == "nothing here"


def test_paths_of_tokens_are_found_wherever_they_are() -> None:
    assert list(tokens.tokens_in({"a": {"b": [1, "rcs1.x"]}, "c": "plain"})) == ["a.b[1]"]
