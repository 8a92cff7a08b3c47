"""System checks: problems and ending promises, with their ids."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from recovery import checks
from recovery.contract import effect
from recovery.contract.registry import Registry
from tests.unit.samples import KEYS, contract


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """An empty registry in the place of the installation's."""
    empty = Registry()
    monkeypatch.setattr(checks, "registry", empty)
    return empty


def test_a_problem_is_an_error_that_names_app_operation_and_field(registry: Registry) -> None:
    registry.add_effect(effect("payments.refund", version=1), "shop")
    found = checks.contract_checks(None)
    assert all(message.is_serious() for message in found)
    assert "shop: payments.refund v1: retry: missing; write None if it does not apply" in [m.msg for m in found]
    assert {message.id for message in found} == {"recovery.E002"}


def test_only_the_apps_asked_about(registry: Registry) -> None:
    registry.add_effect(effect("payments.refund", version=1), "shop")
    market, shop = SimpleNamespace(label="market"), SimpleNamespace(label="shop")
    assert checks.contract_checks([market]) == []  # type: ignore[list-item]
    assert checks.contract_checks([shop])  # type: ignore[list-item]


@pytest.mark.parametrize(("days", "warned"), [(-1, True), (29, True), (31, False)])
def test_a_promise_that_ends_is_told_30_days_before(registry: Registry, days: int, warned: bool) -> None:
    until = (timezone.now() + timedelta(days=days)).date()
    registry.add_effect(contract(promise=replace(KEYS, until=until)), "shop")
    assert [message.id for message in checks.contract_checks(None)] == (["recovery.W001"] if warned else [])
