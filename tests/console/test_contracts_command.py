"""`manage.py contracts`: what is declared, for people and for programs."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from recovery.contract import registry
from recovery.engine import declarations

pytestmark = pytest.mark.django_db


def said(*args: str) -> str:
    out = StringIO()
    call_command("contracts", *args, stdout=out)
    return out.getvalue()


def read(*args: str) -> Any:
    return json.loads(said(*args))


def test_it_lists_versions_digests_and_what_is_wrong() -> None:
    rows = {(row["name"], row["version"]): row for row in read("--json")}
    refund = rows["payments.refund", 1]
    assert refund["digest"] == registry.effect_contract("payments.refund").digest[:8]
    assert (refund["kind"], refund["dependency"], refund["wrong"]) == ("operation", "payments", [])
    assert rows["orders.cancel", 1]["kind"] == "run_type"
    assert "payments.refund" in said()


def test_it_names_what_is_missing() -> None:
    """Also of what cannot be used at all."""
    from recovery.contract import effect

    kept = registry._registry
    before = [dict(kept._effects), list(kept._problems), dict(kept._found_in)]
    try:
        kept.add_effect(effect("shop.unfinished", version=1), "tests")
        kept.add_effect(effect("shop.versionless"), "tests")
        rows = {row["name"]: row for row in read("--json")}
    finally:
        kept._effects, kept._problems, kept._found_in = before  # type: ignore[assignment]
    assert "promise (recovery.E002)" in rows["shop.unfinished"]["wrong"]
    assert rows["shop.versionless"]["kind"] == "not usable"


def test_it_says_what_differs() -> None:
    found = {one["path"]: one for one in read("--diff", "payments.refund", "cards.refund@1", "--json")}
    assert found["promise.keys"] == {"path": "promise.keys", "was": True, "now": False}
    assert "retry.classes[unknown]: 'unknown' -> nothing" in said("--diff", "payments.refund", "cards.refund")
    assert "nothing differs" in said("--diff", "payments.refund", "payments.refund@1")


def test_a_stored_version_is_found_by_its_digest() -> None:
    """What a run began under can be compared with what is declared now, also when no code has it any more."""
    declarations.keep()
    digest = registry.effect_contract("mail.send").digest
    kept = registry._registry
    before = dict(kept._effects)
    try:
        del kept._effects["mail.send", 1]
        assert read("--declared", f"mail.send@{digest[:8]}")["dependency"] == "mail"
        assert "no" in said("--stored")
    finally:
        kept._effects = before
    with pytest.raises(CommandError, match="no contract 'mail.send@9'"):
        said("--schema", "mail.send@9")


def test_the_schema_is_json_schema_of_each_part() -> None:
    parts = read("--schema", "orders.cancel")
    assert set(parts) == {"data", "signals:order.changed"}
    assert parts["data"]["$schema"].endswith("2020-12/schema")
    assert parts["data"]["$id"] == "urn:recourse:run_type:orders.cancel:1:data"
    assert "charge" in parts["data"]["properties"]
    assert read("--schema", "payments.refund")["params"]["properties"]["amount"]["maximum"] == 99_999_999


def test_it_tells_the_age_of_each_proof() -> None:
    rows = read("--proofs", "--json")
    assert {
        "name": "orders.cancel",
        "version": 1,
        "proof": "kill between send and record",
        "last": None,
        "days": "never shown",
    } in rows
