"""Declaring effects and run types: requests, digests, and what a check names (DESIGN section 6)."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, ConfigDict, Field

from recovery.contract import EffectContract, Money, Target, effect, hours
from recovery.contract.effects import AUTHORS_FIELDS, key_problem
from recovery.contract.errors import ContractIncomplete, KeyInvalid, ParamsInvalid, UnknownOperation
from recovery.contract.registry import Problem, Registry
from tests.unit.samples import FIELDS, HTTP, KEYS, RETRY, contract, facts_only, keys_only, neither


def found(*things: Any, app: str = "shop") -> list[Problem]:
    """The problems of a registry that holds ``things``."""
    registry = Registry()
    module = ModuleType(f"{app}.contracts")
    for number, thing in enumerate(things):
        setattr(module, f"thing_{number}", thing)
    registry.register_module(module, app)
    return registry.problems()


def named(problems: list[Problem]) -> set[tuple[str, str]]:
    return {(problem.id, problem.field) for problem in problems}


@pytest.mark.parametrize("whole", [contract(), facts_only(), keys_only(), neither()])
def test_a_whole_contract_has_no_problem(whole: EffectContract) -> None:
    assert found(whole) == []


@pytest.mark.parametrize("name", AUTHORS_FIELDS)
def test_a_missing_field_is_named_and_nothing_crashes(name: str) -> None:
    """No field has a default; the check names app, operation and field."""
    unfinished = effect("payments.refund", **{k: v for k, v in FIELDS.items() if k != name})
    problems = found(unfinished)
    assert ("recovery.E002", name) in named(problems)
    text = str(next(p for p in problems if p.id == "recovery.E002"))
    assert text.startswith("shop: payments.refund") and name in text
    with pytest.raises(ContractIncomplete, match=name):
        unfinished(charge="ch", amount=1, currency="EUR")


def test_everything_missing_names_everything() -> None:
    assert {field for _id, field in named(found(effect("payments.refund")))} >= set(AUTHORS_FIELDS)


class Unserialisable(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    charge: str
    made: object
    thread: ModuleType


class Endless(BaseModel):
    charge: str = Field(max_length=400)
    amount: int
    currency: str = ""


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"colour": "red"}, ("recovery.E003", "colour")),
        ({"version": 0}, ("recovery.E004", "version")),
        ({"timeout": 10}, ("recovery.E004", "timeout")),
        ({"deadline": timedelta(0)}, ("recovery.E004", "deadline")),
        ({"reserve": hours(48)}, ("recovery.E004", "deadline")),
        ({"deadline": hours(9)}, ("recovery.E004", "deadline")),
        ({"retry": replace(RETRY, owner="celery")}, ("recovery.E004", "retry")),
        ({"retry": replace(RETRY, total=hours(24))}, ("recovery.E004", "retry")),
        ({"promise": replace(KEYS, window=None)}, ("recovery.E004", "promise")),
        ({"outcomes": replace(HTTP, success=frozenset({402}))}, ("recovery.E004", "outcomes")),
        ({"requires": []}, ("recovery.E004", "requires")),
        ({"requires": [Target("nobody")]}, ("recovery.E004", "requires")),
        ({"requires": [Target("charge"), "luck"]}, ("recovery.E004", "requires")),
        ({"evidence": ["rumour", "readback"]}, ("recovery.E004", "evidence")),
        ({"evidence": ["answer"]}, ("recovery.E004", "evidence")),
        ({"reconcile": "later"}, ("recovery.E004", "reconcile")),
        ({"scope": "world"}, ("recovery.E004", "scope")),
        ({"escalate_to": "Payments Oncall"}, ("recovery.E004", "escalate_to")),
        ({"key": "refund"}, ("recovery.E004", "key")),
        ({"dependency": object()}, ("recovery.E006", "dependency")),
        ({"dependency": "The Payments"}, ("recovery.E006", "dependency")),
        ({"promise": replace(KEYS, key_max_length=64)}, ("recovery.E007", "key")),
        ({"params": Endless}, ("recovery.E007", "key")),
        ({"params": Unserialisable}, ("recovery.E008", "params.thread")),
        ({"params": dict}, ("recovery.E008", "params.")),
        ({"describe": "Refund it"}, ("recovery.E011", "describe")),
        ({"irreversible": "gone"}, ("recovery.E011", "irreversible")),
        ({"describe": _("Refund {sum}")}, ("recovery.E004", "describe")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_is_named(change: dict[str, Any], problem: tuple[str, str]) -> None:
    """Each wrong declaration is refused by a check with its id and field."""
    assert problem in named(found(contract(**change)))


def test_an_operation_needs_its_form() -> None:
    assert ("recovery.E004", "operation") in named(found(effect("Refund", **FIELDS)))


def test_declared_twice_is_named_and_the_same_object_is_not_twice() -> None:
    one = contract()
    assert found(one, one) == []
    assert ("recovery.E005", "version") in named(found(one, contract()))
    assert found(one, contract(version=2)) == []


def test_the_newest_version_is_found_and_older_ones_by_number() -> None:
    """A version's code stays while a live run needs it."""
    registry = Registry()
    for version in (2, 10, 9):
        registry.add_effect(contract(version=version), "shop")
    assert registry.effect_contract("payments.refund").version == 10
    assert registry.effect_contract("payments.refund", 9).version == 9
    for asked in (("payments.refund", 3), ("payments.charge", None)):
        with pytest.raises(UnknownOperation):
            registry.effect_contract(*asked)


class _Config:
    """As much of an app as discovery looks at."""

    def __init__(self, name: str, module: ModuleType) -> None:
        self.name, self.label, self.module = name, name, module


def test_a_contracts_module_that_cannot_be_imported_is_named(tmp_path, monkeypatch) -> None:
    """An author's broken module never crashes discovery, and hides no other app's contracts."""
    for name, text in (("broken_shop", "1 / 0\n"), ("sound_shop", "from tests.unit.samples import KEYS\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
        (tmp_path / name / "contracts.py").write_text(text)
    (tmp_path / "plain_shop").mkdir()
    (tmp_path / "plain_shop" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    configs = [_Config(name, __import__(name)) for name in ("broken_shop", "plain_shop", "sound_shop")]
    registry = Registry()
    registry.discover(configs)  # type: ignore[arg-type]
    assert [(p.id, p.app) for p in registry.problems()] == [("recovery.E001", "broken_shop")]
    assert "ZeroDivisionError" in str(registry.problems()[0]) and "line 1" in str(registry.problems()[0])
    assert "sound_shop.contracts" in sys.modules


def test_invalid_params_are_named_field_by_field() -> None:
    """Bad input: each field named, the given value never repeated."""
    with pytest.raises(ParamsInvalid) as refused:
        contract()(charge="x" * 65, amount="secret", currency=None)
    assert set(refused.value.fields) == {"charge", "amount", "currency"}
    assert "secret" not in str(refused.value)


def test_a_request_says_what_it_is() -> None:
    request = contract()(charge="ch_3QK9", amount=8400, currency="EUR")
    assert request.target == "ch_3QK9"
    assert request.key(None) == "refund:ch_3QK9"
    assert request.stake == Money("out", 8400, "EUR")
    assert request.sentence("en") == "Refund EUR 84.00 on charge ch_3QK9"
    assert request.data == {"charge": "ch_3QK9", "amount": 8400, "currency": "EUR"}
    assert contract().load(request.data) is not None


@pytest.mark.parametrize(("amount", "needed"), [(99_999, None), (100_000, 2)])
def test_signatures_from_the_limit_on(amount: int, needed: int | None) -> None:
    rule = contract()(charge="ch", amount=amount, currency="EUR").signatures()
    assert (rule.needed if rule else None) == needed


@pytest.mark.parametrize("key", ["", "with space", "naïve", "line\nbreak", "x" * 252, 7, None])
def test_a_key_that_cannot_be_sent_is_refused(key: object) -> None:
    """A key goes into a header as it is; room for /n stays."""
    assert key_problem(key, 255)
    with pytest.raises(KeyInvalid):
        contract(key=lambda run, p: key)(charge="ch", amount=1, currency="EUR").key(None)


def test_the_longest_key_is_allowed() -> None:
    assert key_problem("x" * 251, 255) is None


class TestDigest:
    """The digest covers data, never sentences or code; it changes when something one decides on changes."""

    def test_sentences_and_docstrings_do_not_count(self) -> None:
        class Params(FIELDS["params"]):  # type: ignore[misc]
            """Quite another text."""

        Params.__name__ = "Params"
        other = contract(describe=_("Give back"), irreversible=_("gone"), params=Params)
        assert other.digest == contract().digest

    @pytest.mark.parametrize(
        "change",
        [
            {"version": 2},
            {"retry": replace(RETRY, attempts=4)},
            {"promise": replace(KEYS, window=hours(23))},
            {"timeout": timedelta(seconds=9)},
            {"irreversible": None},
            {"approval": replace(FIELDS["approval"], needed=3)},
            {"approval": replace(FIELDS["approval"], when=replace(FIELDS["approval"].when, limit=1))},
            {"outcomes": replace(HTTP, transient=frozenset())},
            {"escalate_to": "others"},
            {"params": Endless},
        ],
    )
    def test_data_counts(self, change: dict[str, Any]) -> None:
        assert contract(**change).digest != contract().digest

    def test_it_is_the_same_in_the_next_process(self) -> None:
        """Sets have no order of their own: the digest is written down here."""
        assert contract().digest == DIGEST


DIGEST = "afdf32bb73800c3da112112176e71898fc2557841a11636e13b50bfcfdc0a5f2"
