"""What differs between two declarations."""

from __future__ import annotations

from dataclasses import replace

from recovery.contract import FailureClass, minutes
from recovery.contract.differences import ABSENT, differences
from tests.unit import samples


def test_nothing_differs_from_itself() -> None:
    assert differences(samples.contract().declared, samples.contract().declared) == []


def test_each_difference_is_named_by_its_path() -> None:
    """Limits, statuses and classes: what was and what is now; words of a list as words."""
    before = samples.contract()
    retry = replace(samples.RETRY, attempts=5, classes=frozenset({FailureClass.TRANSIENT, FailureClass.OVERLOAD}))
    http = replace(samples.HTTP, transient=frozenset({500, 503}))
    after = samples.contract(version=2, retry=retry, outcomes=http, timeout=minutes(1))
    told = {str(one) for one in differences(before.declared, after.declared)}
    assert told == {
        "version: 1 -> 2",
        "retry.attempts: 3 -> 5",
        "retry.classes[unknown]: 'unknown' -> nothing",
        "outcomes.transient[500]: nothing -> 500",
        "timeout: 10 -> 60",
    }


def test_what_comes_and_goes_is_said_as_such() -> None:
    (gone,) = differences({"a": 1}, {})
    assert (gone.was, gone.now) == (1, ABSENT)
    assert gone.as_json() == {"path": "a", "was": 1}
    (come,) = differences({"a": None}, {"a": {"b": 1}})
    assert come.as_json() == {"path": "a", "was": None, "now": {"b": 1}}


def test_lists_of_things_are_compared_by_place() -> None:
    assert [str(one) for one in differences([{"a": 1}], [{"a": 2}, {"b": 1}])] == [
        "[0].a: 1 -> 2",
        "[1]: nothing -> {'b': 1}",
    ]


def test_sentences_are_in_neither_side() -> None:
    from django.utils.translation import gettext_lazy as _

    other = samples.contract(describe=_("Give {amount} back for {charge}"))
    assert differences(samples.contract().declared, other.declared) == []
