"""Pins and paths by themselves: what follows from a version that moved, and what a check names at each start."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from recovery.contract import Migration, OnChange, Pin, Pins, Proof, RunContract, StateSchema
from recovery.contract.inspection import run_type_findings
from recovery.contract.pins import PARTS, compare
from recovery.contract.runs import REVALIDATED
from tests.unit.test_run_types import TEN, Sample


def pin(part: str = "model", now: str | None = "2", rule: OnChange = OnChange.PIN, **more: Any) -> Pin:
    return Pin(part, now, rule, more.get("keeps", frozenset()), more.get("shown_by"))


@pytest.mark.parametrize(
    ("rule", "more", "answer"),
    [
        (OnChange.PIN, {"keeps": frozenset({"1"})}, OnChange.PIN),
        (OnChange.PIN, {"keeps": frozenset({"0"})}, OnChange.ASK),
        (OnChange.MIGRATE, {"shown_by": {"1": "evaluation 7"}}, OnChange.MIGRATE),
        (OnChange.MIGRATE, {"shown_by": {"0": "evaluation 6"}}, OnChange.ASK),
        (OnChange.ASK, {}, OnChange.ASK),
    ],
)
def test_what_follows_when_a_part_has_moved(rule: OnChange, more: dict[str, Any], answer: OnChange) -> None:
    """Pin, migrate or ask; a rule that cannot be kept asks, it is never guessed at."""
    pins = Pins(pinned=("type", pin(rule=rule, **more)), migrates_from={})
    (moved,) = compare(pins, {"model": "1"}, {"model": "2"})
    assert (moved.kept, moved.now, moved.answer) == ("1", "2", answer)
    assert bool(moved.shown_by) is (answer == OnChange.MIGRATE)


def test_what_did_not_move_is_no_news() -> None:
    pins = Pins(pinned=(pin(),), migrates_from={})
    assert compare(pins, {"model": "2"}, {"model": "2"}) == []
    assert compare(pins, {}, {"model": "2"}) == [], "it was never pinned"
    assert compare(pins, {"prompt": "1"}, {"model": "2"}) == [], "it is not pinned any more"


def test_a_new_version_of_a_part_is_no_other_contract() -> None:
    """The digest covers the rule; the versions are compared by themselves. So is the day of a proof."""

    def digest(now: str, last: date | None) -> str:
        pins = Pins(pinned=("type", pin(now=now)), migrates_from={})
        body = {"contract": RunContract(**{**TEN, "pins": pins, "proofs": (Proof(name="kill", last=last),)})}
        return type("Sample", (Sample,), body)().digest

    assert digest("1", None) == digest("2", date(2026, 1, 1))
    rule = Pins(pinned=("type", pin(rule=OnChange.ASK)), migrates_from={})
    asks = type("Sample", (Sample,), {"contract": RunContract(**{**TEN, "pins": rule, "proofs": ()})})
    assert asks().digest != digest("1", None)


def test_a_run_keeps_what_is_pinned_and_the_two_of_recourse() -> None:
    pins = Pins(pinned=("type", pin(), pin("prompt", "p-9")), migrates_from={})
    cls = type("Sample", (Sample,), {"contract": RunContract(**{**TEN, "pins": pins})})
    assert cls().config == {"model": "2", "prompt": "p-9", "workflow": "1", "schema": "1"}


class Text(BaseModel):
    text: str


def found(version: int = 2, data: type[BaseModel] = Text, **ten: Any) -> set[tuple[str, str, str]]:
    """What a check says of a run type in ``version`` with these points: id, field, beginning of the text."""
    body = {"version": version, "Data": data, "contract": RunContract(**{**TEN, **ten})}
    cls = type("Odd", (Sample,), body)
    return {(f.id, f.field, f.text) for f in run_type_findings(cls)}


def works(step: str, data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "then", {"text": data["note"]}


SCHEMA = StateSchema(version=2, migrates_from={1: Migration(lambda d: {"text": d["note"]}, {"note": "a"})})
TYPE = Pins(pinned=("type",), migrates_from={1: Migration(works, ("begin", {"note": "a"}))})


def test_paths_that_come_through_are_fine() -> None:
    assert found(state_schema=SCHEMA, pins=TYPE) == set()


@pytest.mark.parametrize(
    ("migration", "says"),
    [
        (lambda d: d, "needs a Migration with a sample"),
        (Migration(lambda d: {"text": d["other"]}, {"note": "a"}), "'other'"),
        (Migration(lambda d: {"text": 7}, {"note": "a"}), "1 validation error"),
        (Migration(lambda d: {"text": object()}, {"note": "a"}), "$.text: object cannot be written as JSON"),
    ],
    ids=["bare", "raises", "does not fit", "cannot be kept"],
)
def test_a_path_that_does_not_come_through_is_named(migration: Any, says: str) -> None:
    """A path that was never walked is none."""
    ((id, field, text),) = found(state_schema=StateSchema(version=2, migrates_from={1: migration}))
    assert (id, field) == ("E013", "contract.state_schema")
    assert text.startswith("from 1: ") and says in text


def test_a_path_back_or_to_nowhere_is_named() -> None:
    back = Pins(pinned=("type",), migrates_from={2: TYPE.migrates_from[1]})
    assert ("E013", "contract.pins", "from 2: is not older than 2; nothing is moved back") in found(pins=back)
    lost = Pins(pinned=("type",), migrates_from={1: Migration(lambda s, d: ("gone", {"text": ""}), ("begin", {}))})
    assert ("E013", "contract.pins", "from 1: leads to 'gone', and there is no such step") in found(pins=lost)
    later = StateSchema(version=1, migrates_from={3: SCHEMA.migrates_from[1]})
    assert {id for id, _field, _text in found(state_schema=later)} == {"E013"}


@pytest.mark.parametrize(
    ("pinned", "says"),
    [
        (("model",), "'model' needs a Pin; by name there are contract and type"),
        ((pin("colour"),), f"'colour' is none of {', '.join(PARTS)}"),
        ((pin("workflow", "3"),), "workflow: now is None for workflow and schema, and a version for every other part"),
        ((pin(now=None),), "model: now is None for workflow and schema, and a version for every other part"),
        ((pin(rule=OnChange.MIGRATE),), "model: migrate names in shown_by what shows that it is right"),
        ((pin(), pin(now="3")), "model is pinned twice"),
    ],
)
def test_pins_that_make_no_sense_are_named(pinned: tuple[Any, ...], says: str) -> None:
    assert found(version=1, pins=Pins(pinned=pinned, migrates_from={})) == {("E004", "contract.pins", says)}


def test_the_other_points_are_checked_too() -> None:
    names = ", ".join(REVALIDATED)
    assert found(revalidation=("identity", "weather")) == {
        ("E004", "contract.revalidation", f"'weather' is none of {names}")
    }
    assert found(proofs=("kill",)) == {("E004", "contract.proofs", "needs Proof(name, last)")}
    odd = type("Odd", (Sample,), {"replan": "nowhere", "context_bytes": 0})
    assert {(f.id, f.field) for f in run_type_findings(odd)} == {("E010", "replan"), ("E004", "context_bytes")}


def test_a_pin_is_data() -> None:
    assert replace(pin(), now="3").declared() == pin().declared()
