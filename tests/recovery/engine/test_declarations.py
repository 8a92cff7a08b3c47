"""What authors declared is kept by its digest, once, and never changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recovery.contract import minutes, registry
from recovery.engine import declarations
from runs.models import ContractVersion
from tests.recovery.engine.world import World


def stored(name: str) -> list[ContractVersion]:
    return list(ContractVersion.objects.filter(name=name).order_by("first_seen_at", "id"))


def test_every_whole_contract_is_kept_once(w: World) -> None:
    """At each start of a process; the second finds nothing new."""
    assert declarations.keep() > 0
    assert declarations.keep() == 0
    names = {one.name for one in declarations.of_this_code()}
    assert {"test.pay", "test.many", "payments.refund", "orders.cancel"} <= names
    (row,) = stored("test.many")
    assert row.digest == registry.run_type("test.many").digest
    assert row.declared == registry.run_type("test.many").declared
    assert set(row.schema) == {"data", "signals"}


def test_what_a_run_and_an_effect_began_under_can_be_read(w: World) -> None:
    declarations.keep()
    run = w.accept("test.many", "pay")
    w.drive()
    kept = {row.digest for row in ContractVersion.objects.all()}
    assert {w.run(run).contract_digest, w.effect(run).contract_digest} <= kept


def test_a_version_changed_in_place_is_noticed(w: World) -> None:
    """Both stay; which came first is told."""
    declarations.keep()
    kept = registry._registry
    before = kept._effects["test.pay", 1]
    kept._effects["test.pay", 1] = replace(before, review_after=minutes(3))
    assert declarations.keep() == 1
    assert declarations.changed_in_place() == [("test.pay", 1, [before.digest, kept._effects["test.pay", 1].digest])]


def test_an_unfinished_contract_is_not_kept(w: World) -> None:
    kept = registry._registry
    kept._effects["test.unfinished", 1] = replace(
        kept._effects["test.pay", 1], operation="test.unfinished", missing=("key",)
    )
    declarations.keep()
    assert stored("test.unfinished") == []


def test_a_worker_keeps_them_when_it_begins(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from recovery.engine import workers

    monkeypatch.setattr(workers, "_me", None)
    monkeypatch.setattr(workers, "_beat", lambda worker: None)
    assert stored("test.many") == []
    workers.me("advance")
    assert len(stored("test.many")) == 1
