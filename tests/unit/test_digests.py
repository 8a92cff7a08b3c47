"""Canonical JSON, strict parsing and the digests over them (RFC 8785, RFC 7493; security rules R2, R3)."""

from __future__ import annotations

import json

import pytest

from recovery.contract import canonical
from recovery.contract.canonical import CanonicalError

SIGNED = {
    "tenant": "acme-pay",
    "run": "r",
    "effect": "e",
    "operation": "payments.refund",
    "target": "ch_8LM2",
    "params": {"charge": "ch_8LM2", "amount": 120500, "currency": "USD"},
    "stake": {"kind": "money", "direction": "out", "amount": 120500, "currency": "USD"},
    "account": "payments",
    "credential": "payments-live",
    "precondition": None,
    "policy": "ab" * 32,
    "revision": 2,
    "method": "POST",
    "url": "https://api.payments.example/v1/refunds",
    "key": "refund:ch_8LM2",
    "body": '{"amount":120500,"charge":"ch_8LM2","currency":"USD"}',
}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a":1,"a":2}', "$.a"),
        ('{"a":[{"b":1,"b":2}]}', "$.a[0].b"),
        ('{"x":{"not a name":1,"not a name":1}}', "$.x['not a name']"),
        ('{"a":NaN}', "$.a"),
        ("[Infinity]", "$[0]"),
        ('{"a":-Infinity}', "$.a"),
        ('{"a":1e400}', "$.a"),
        ('{"a":9007199254740992}', "$.a"),
        ('{"a":' + "9" * 5000 + "}", "$.a"),
        ('{"a":"e\\u0301"}', "$.a"),
        ('{"e\\u0301":1}', "$.e\u0301"),
        ('{"a":"\\ud800"}', "$.a"),
        ("[" * 33 + "]" * 33, "$" + "[0]" * 32),
        ("[" * 100_000 + "]" * 100_000, None),
        ('{"a":1', "$"),
        ("\ufeff{}", "$"),
    ],
)
def test_what_is_refused_is_named_by_its_path(text: str, path: str | None) -> None:
    """Trap 28, bad input: duplicate keys, NaN, huge integers, depth: refused, and the field named."""
    with pytest.raises(CanonicalError) as refused:
        canonical.parse(text)
    if path is not None:
        assert refused.value.path == path


def test_too_large_and_not_utf8_are_refused() -> None:
    """Trap 29: at most 1 MB; bytes must be UTF-8."""
    with pytest.raises(CanonicalError, match="at most 1000000"):
        canonical.parse(b'"' + b"x" * 1_000_000 + b'"')
    with pytest.raises(CanonicalError, match="not UTF-8 at byte 1"):
        canonical.parse(b'"\xff"')


def test_what_is_allowed_is_read() -> None:
    """The limits themselves are inside."""
    assert canonical.parse(b'{"a":[9007199254740991,-9007199254740991,1.5,"\\u00e9",null,true]}') == {
        "a": [2**53 - 1, 1 - 2**53, 1.5, "\u00e9", None, True]
    }
    assert canonical.parse("[" * 32 + "]" * 32)
    assert canonical.parse('"e\\u0301"', nfc=False) == "e\u0301"


def test_bytes_are_those_of_the_rfc() -> None:
    """RFC 8785, 3.2.2: the example of the RFC, byte for byte."""
    value = json.loads(
        '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],'
        '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}'
    )
    assert (
        canonical.dumps(value)
        == (
            '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
            '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
        ).encode()
    )


@pytest.mark.parametrize("value", [{"a": {1, 2}}, {"a": object()}, {"a": float("nan")}, {1: 2}, {"a": 2**60}])
def test_what_cannot_be_written_is_named(value: object) -> None:
    """Unserialisable data: the field's path named, nothing half written."""
    with pytest.raises(CanonicalError) as refused:
        canonical.dumps(value)
    assert refused.value.path in ("$", "$.a")


def test_intent_digest_is_about_operation_target_and_params_only() -> None:
    """Invariant 3: one intent, one digest; the order of keys does not matter, any value does."""
    base = {"operation": "payments.refund", "target": "ch", "params": {"a": 1, "b": 2}}
    same = canonical.intent_digest(**base)
    assert canonical.intent_digest(**{**base, "params": {"b": 2, "a": 1}}) == same
    for change in ({"operation": "x.y"}, {"target": "cx"}, {"params": {"a": 1, "b": 3}}):
        assert canonical.intent_digest(**{**base, **change}) != same


@pytest.mark.parametrize("name", sorted(SIGNED))
def test_approval_digest_covers_every_field(name: str) -> None:
    """R2 and R3: a change of any signed field gives another digest."""
    other = {**SIGNED, name: 3 if name == "revision" else {"x": 1} if _is_object(name) else "other"}
    fields, changed = canonical.approval_fields(**SIGNED), canonical.approval_fields(**other)
    assert canonical.approval_digest(fields) != canonical.approval_digest(changed)


def _is_object(name: str) -> bool:
    return name in ("params", "stake", "precondition")


def test_digests_do_not_drift() -> None:
    """A digest that changes for reasons nobody meant gets switched off: these two are written down."""
    assert canonical.approval_digest(canonical.approval_fields(**SIGNED)) == APPROVAL
    assert canonical.intent_digest(operation="payments.refund", target="ch", params={"a": 1}) == INTENT


APPROVAL = "1033535d6edb8677fda6c527cf3d443b86bfa9ceb20f79e88c40b1cadcbea6be"
INTENT = "85679a73b035e1abca9da7c3f04eada27de326e33b62f2a954d828243758cda6"


def test_check_code_can_be_read_aloud() -> None:
    """Screens 1.5: the first eight hex digits."""
    assert canonical.check_code("4f2a91c0" + "0" * 56) == "4F2A-91C0"
