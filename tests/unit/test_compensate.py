"""Which effect is mended by what, in which order, and why one is not: pure (DESIGN section 5, Compensation)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils.translation import gettext_lazy as _

from recovery.contract import Authorization, VerifiedBy, registry
from recovery.contract.inspection import effect_findings
from recovery.contract.mending import LeftOut, PlanItem, derived_key
from recovery.contract.registry import Registry
from recovery.engine import compensate
from runs.models import Effect
from runs.states import EffectState
from tests.recovery.engine import compensable
from tests.recovery.engine.registered import registered
from tests.unit.samples import T0, at

NOW = at(10_000)


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    with registered():
        registry.register_module(compensable, "tests")
        yield


def happened(n: int, name: str, *, state: EffectState = EffectState.SUCCEEDED, **changes: Any) -> Effect:
    """The n-th effect of a run, settled n seconds after it began."""
    request = compensable.ask(name, f"ch_{n}", amount=changes.pop("amount", 8400))
    given: dict[str, Any] = {
        "id": UUID(int=n),
        "ordinal": n,
        "operation": request.contract.operation,
        "contract_version": 1,
        "params": request.data,
        "state": state,
        "describe": request.sentence("en"),
        "irreversible": str(request.contract.irreversible or ""),
        "result": {"id": f"re_{n}", "version": 7},
        "requested_at": T0,
        "settled_at": at(n),
        **changes,
    }
    return Effect(**given)


def plan(*effects: Effect, **given: Any) -> list[PlanItem]:
    return compensate.compose(effects, now=given.pop("now", NOW), **given)


def order(items: list[PlanItem]) -> list[int]:
    return [item.effect.int for item in items if item.active]


def codes(items: list[PlanItem]) -> dict[int, str]:
    return {item.effect.int: item.left_out.code for item in items if item.left_out is not None}


def test_later_effects_come_first_where_no_contract_says_otherwise() -> None:
    assert order(plan(happened(1, "flight"), happened(3, "hotel"), happened(2, "flight"))) == [3, 2, 1]


def test_contracts_decide_the_order() -> None:
    """The charge is given back after hotel and flight, although it came last."""
    items = plan(happened(1, "hotel"), happened(2, "flight"), happened(3, "charge"))
    assert order(items) == [2, 1, 3]
    assert [sorted(o.int for o in item.after) for item in items] == [[], [], [1, 2]]
    assert [item.n for item in items] == [1, 2, 3]


def test_what_waits_for_itself_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A circle of the contracts is no order; the rest has one."""
    rule = replace(compensable.by("trip.unbook"), after=("trip.charge",))
    circular = replace(compensable.hotel, compensation=rule)
    monkeypatch.setitem(registry._registry._effects, ("trip.hotel", 1), circular)
    items = plan(happened(1, "hotel"), happened(2, "flight"), happened(3, "charge"))
    assert (order(items), codes(items)) == ([2], {1: "order_cycle", 3: "order_cycle"})


def test_the_request_is_made_from_the_original() -> None:
    (item,) = plan(happened(1, "hotel"))
    assert (item.by, item.version, item.key) == ("trip.unbook", 1, derived_key(UUID(int=1)))
    assert item.params == {"charge": "un-ch_1", "amount": 8400, "currency": "EUR"}
    assert (item.knew, item.residual, item.verified_by) == (7, "a fee for ch_1", VerifiedBy.READBACK)
    assert item.preconditions == ["the stay has not begun"]


def test_only_what_happened_is_in_a_plan() -> None:
    """Whole or in part; what is refused, unknown or mended already is not."""
    items = [happened(n, "flight", state=state) for n, state in enumerate(EffectState, 1)]
    found = {EffectState(item.state) for item in plan(*items)}
    assert found == {EffectState.SUCCEEDED, EffectState.PARTIAL}


@pytest.mark.parametrize(
    ("effect", "given", "code"),
    [
        (lambda: happened(1, "letter"), {}, "irreversible"),
        (lambda: happened(1, "letter", irreversible=""), {}, "no_compensation"),
        (lambda: happened(1, "flight"), {"only": []}, "not_chosen"),
        (lambda: happened(1, "flight"), {"busy": [UUID(int=1)]}, "being_mended"),
        (lambda: happened(1, "brief"), {}, "too_late"),
        (lambda: happened(1, "brief", amount=9000), {"now": at(60)}, "not_allowed"),
        (lambda: happened(1, "flight", contract_version=9), {}, "cannot_be_asked"),
        (lambda: happened(1, "flight", params={"charge": "x"}), {}, "cannot_be_asked"),
        (
            lambda: happened(1, "flight"),
            {"kept": {UUID(int=1): LeftOut(code="by_person", facts={"who": "A", "reason": "r"})}},
            "by_person",
        ),
    ],
)
def test_what_is_left_out_says_why(effect: Any, given: dict[str, Any], code: str) -> None:
    items = plan(effect(), **given)
    assert codes(items) == {1: code}
    assert code in compensate.LEFT_OUT
    facts = items[0].left_out.facts if items[0].left_out else {}
    assert str(compensate.LEFT_OUT[code]).format(**facts)


def test_the_limits_are_exact() -> None:
    """``within``: at the very end it is too late."""
    hour = timedelta(hours=1)
    assert codes(plan(happened(1, "brief"), now=at(1) + hour - timedelta(seconds=1))) == {}
    assert codes(plan(happened(1, "brief"), now=at(1) + hour)) == {1: "too_late"}


def test_an_authors_function_that_raises_leaves_the_item_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = compensable.by("trip.unbook", request=lambda p, result: result["nothing"])
    monkeypatch.setitem(registry._registry._effects, ("trip.flight", 1), replace(compensable.flight, compensation=rule))
    (item,) = plan(happened(1, "flight"))
    assert item.left_out is not None and "nothing" in item.left_out.facts["said"]


def test_nothing_to_mend_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = compensable.by("trip.unbook", request=lambda p, result: None)
    monkeypatch.setitem(registry._registry._effects, ("trip.flight", 1), replace(compensable.flight, compensation=rule))
    assert codes(plan(happened(1, "flight"))) == {1: "nothing_to_mend"}


def test_signed_before_only_where_the_contract_said_so() -> None:
    """R15: pre-approval is a matter of the contract that was signed, and of signatures that were given."""
    for name, approved, signed in (
        ("signed", [UUID(int=1)], True),
        ("signed", [], False),
        ("charge", [UUID(int=1)], False),
    ):
        (item,) = plan(happened(1, name), approved=approved)
        assert (item.approved, item.signatures) == (signed, 0 if signed else 2)


def test_the_digest_covers_the_order_and_every_item() -> None:
    items = plan(happened(1, "flight"), happened(2, "hotel"))
    digest = compensate.plan_digest(UUID(int=5), 1, items)
    assert digest == compensate.plan_digest(UUID(int=5), 1, plan(happened(1, "flight"), happened(2, "hotel")))
    out = [i.model_copy(update={"left_out": LeftOut(code="not_chosen")}) for i in items]
    seen = [i.model_copy(update={"knew": 8}) for i in items]
    others = [(UUID(int=6), 1, items), (UUID(int=5), 2, items), (UUID(int=5), 1, items[::-1])]
    for id, revision, other in [*others, (UUID(int=5), 1, out), (UUID(int=5), 1, seen)]:
        assert compensate.plan_digest(id, revision, other) != digest


def test_what_stays_names_the_unmended_and_the_residue() -> None:
    items = plan(happened(1, "hotel"), happened(2, "letter"), happened(3, "flight"))
    assert [(line["what"], line["code"]) for line in compensate.stays(items, [UUID(int=1)])] == [
        ("Flight ch_3", "not_mended"),
        ("a fee for ch_1", "residual"),
        ("Write about ch_2", "irreversible"),
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"request": None}, "request needs a function"),
        ({"allowed": 1}, "allowed needs a function"),
        ({"authorization": "own"}, "authorization must be one of Authorization"),
        ({"verified_by": "eyes"}, "verified_by must be one of VerifiedBy"),
        ({"within": timedelta(0)}, "within must be longer than nothing"),
        ({"residual": "a fee"}, "residual is not translatable: wrap it in gettext_lazy"),
    ],
)
def test_a_wrong_declaration_is_named(change: dict[str, Any], told: str) -> None:
    wrong = replace(compensable.flight, compensation=compensable.by("trip.unbook", **change))
    assert [f.text for f in effect_findings(wrong) if f.field == "compensation"] == [told]


def test_what_a_declaration_refers_to_must_exist_and_be_able_to() -> None:
    """E012: an operation nobody declares; a readback that is not there."""
    own = Registry()
    own.add_effect(replace(compensable.flight, compensation=compensable.by("trip.nowhere")), "t")
    own.add_effect(replace(compensable.hotel, compensation=compensable.by("trip.unpost")), "t")
    own.add_effect(compensable.unpost, "t")
    assert {(p.subject, p.text) for p in own.problems() if p.id == "recovery.E012"} == {
        ("trip.flight v1", "no operation 'trip.nowhere' is declared"),
        ("trip.hotel v1", "trip.unpost has no readback that could verify it"),
    }


def test_the_contracts_digest_covers_who_allows_it() -> None:
    """What signers of the original pre-approve is part of what they sign (R2, R15)."""
    base = compensable.flight
    pre = compensable.by("trip.unbook", authorization=Authorization.PRE_APPROVED)
    worded = compensable.by("trip.unbook", residual=_("another sentence"))
    assert replace(base, compensation=pre).digest != base.digest
    assert (
        replace(base, compensation=worded).digest
        == replace(base, compensation=compensable.by("trip.unbook", residual=_("a sentence"))).digest
    )
