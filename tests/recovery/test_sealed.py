"""A sealed field is read by nobody on the way: not in a table, a log, an event, a title; only by the other side, and by
a person who may, with a line in the history (trap 19)."""

from __future__ import annotations

import json
import logging
from uuid import UUID, uuid4

import pytest
from django.db import connection
from pydantic import ValidationError

from console import payload
from console.api.shapes import EffectWhole
from recovery.actions import revealing
from recovery.actions import runs as run_actions
from recovery.contract import Sealed, registry
from recovery.contract.errors import ParamsInvalid
from recovery.engine.refusals import NothingSealed
from runs import access, queries
from runs.checkpoints import load, tokens
from runs.errors import NotAllowed, ReasonNeeded, Unreadable
from runs.models import Effect, Event, Run
from runs.states import EventKind, RunState
from tests.recovery import sealing
from tests.recovery.engine.world import World
from tests.recovery.stage import act

PIN = 'p"in-8374-täglich'


@pytest.fixture(autouse=True)
def declared(w: World) -> None:
    """The run type with sealed fields; ``w`` takes it out again."""
    registry.register_module(sealing, "tests")


def begin(w: World, charge: str = "ch_1", pin: str = PIN, **data: object) -> UUID:
    given = {"charge": charge, "pin": pin, "limit": 7_000_123, "cards": [{"number": "4929-1"}], **data}
    return run_actions.accept(w.s.here, "test.sealed", given, actor=w.s.oncall_a, act=act("accept")).run


def everything() -> str:
    """Every row of every table of the record as text, bytes in hex."""
    found = []
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        for (table,) in cursor.fetchall():
            cursor.execute(f'SELECT row_to_json(t)::text FROM "{table}" t')
            found += [row[0] for row in cursor.fetchall()]
    return "\n".join(found)


def test_nobody_reads_it_on_the_way_and_the_other_side_gets_it(w: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    run = begin(w)
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    (request,) = w.sandbox.requests()
    sent = json.loads(request["body"]) if isinstance(request["body"], str) else request["body"]
    assert sent["data"] == {"order": "ch_1", "pin": PIN, "limit": 7_000_123}
    told = everything()
    for secret in (PIN, json.dumps(PIN)[1:-1], "in-8374", "7000123", "4929-1", PIN.encode().hex()):
        assert secret not in told, secret
        assert secret not in caplog.text
    row = w.run(run)
    content = load.at(row.workspace_id, run, row.checkpoint_seq).content
    assert "in-8374" not in json.dumps(content) and tokens.is_token(content["data"]["cards"][0]["number"])
    assert row.title == f"Tell ch_1 the pin {tokens.MASK}"


def test_it_is_masked_wherever_it_is_shown(w: World) -> None:
    run = begin(w)
    w.drive()
    effect = w.effect(run)
    assert tokens.is_token(effect.params["pin"])
    assert effect.describe == f"Tell ch_1 the pin {tokens.MASK}"
    access.grant(w.s.oncall_a, w.s.here, ["on-call"])
    shape = EffectWhole.whole(queries.effect_detail(w.s.oncall_a, effect.pk)).model_dump_json()
    assert tokens.PREFIX not in shape and tokens.MASK in shape
    shown = "".join(piece.text for piece in payload.pieces(effect.body))
    assert tokens.PREFIX not in shown and tokens.MASK in shown
    assert f"{Sealed(PIN)!r} {Sealed(PIN)}" == f"Sealed({tokens.MASK}) {tokens.MASK}"


def test_the_same_value_is_the_same_intent(w: World) -> None:
    """Invariant 3: the digest stands for the value, in each process and after each rotation."""
    first, second = begin(w), begin(w)
    w.drive()
    assert len(w.sandbox.requests()) == 1
    assert {w.run(first).state, w.run(second).state} == {RunState.COMPLETED}
    assert Effect.objects.count() == 1
    third = begin(w, pin="another")
    w.drive()
    assert w.run(third).gate[0]["code"] == "key_mismatch"


def test_a_value_of_another_workspace_does_not_open(w: World) -> None:
    with tokens.within(w.s.here.pk):
        token = tokens.seal(PIN)
    with tokens.within(w.s.there.pk):
        assert tokens.seal(PIN) != token, "nor is it seen to be the same (invariant 14)"
    assert tokens.reveal(w.s.here.pk, token) == PIN
    with pytest.raises(Unreadable, match="not of this workspace"):
        tokens.reveal(w.s.there.pk, token)
    with pytest.raises(Unreadable):
        tokens.reveal(w.s.here.pk, token[:-2] + "xx")


def test_a_token_from_outside_is_refused(w: World) -> None:
    """Whoever finds somebody's token must not have it opened by sending it along."""
    with tokens.within(w.s.here.pk):
        token = tokens.seal("theirs")
    with pytest.raises(ParamsInvalid) as refused:
        begin(w, pin=token)
    assert list(refused.value.facts["fields"]) == ["pin"]
    run = begin(w, wait=True)
    w.drive()
    with pytest.raises(ParamsInvalid):
        w.signal(run, "pin.changed", pin=token)


def test_a_signal_brings_another_value(w: World) -> None:
    run = begin(w, wait=True)
    w.drive()
    w.signal(run, "pin.changed", pin="fresh-5521")
    assert "fresh-5521" not in everything()
    w.drive()
    (request,) = w.sandbox.requests()
    assert "fresh-5521" in json.dumps(request["body"])
    assert w.run(run).state == RunState.COMPLETED


def test_what_does_not_fit_is_refused_without_saying_it(w: World) -> None:
    with pytest.raises(ParamsInvalid) as refused:
        begin(w, limit="secret-words")
    assert "secret-words" not in str(refused.value) + json.dumps(refused.value.facts)
    with pytest.raises(ValidationError) as raised:
        sealing.NewPin(pin=["secret-words"])  # type: ignore[arg-type]
    assert "The sealed value does not fit" in str(raised.value)


def test_a_person_who_may_looks_at_it_and_the_history_says_so(w: World) -> None:
    run = begin(w)
    w.drive()
    person = w.s.auditor_d
    access.grant(person, w.s.here, ["administrator"])
    once = act("reveal")
    seen = revealing.reveal(run, "cards[0].number", actor=person, act=once, reason="the customer called")
    assert seen.value == "4929-1" and "4929" not in repr(seen)
    again = revealing.reveal(run, "cards[0].number", actor=person, act=once, reason="the customer called")
    assert again.value == "4929-1" and again.done.replayed
    effect = w.effect(run)
    limit = revealing.reveal(
        run, "limit", effect_id=effect.pk, actor=person, act=act("reveal"), reason="the customer called"
    )
    assert limit.value == 7_000_123
    lines = Event.objects.filter(run_id=run, kind=EventKind.DATA_REVEALED).order_by("seq")
    assert [(line.data["path"], line.data["effect"], line.data["by"]["name"]) for line in lines] == [
        ("cards[0].number", None, person.name),
        ("limit", str(effect.pk), person.name),
    ]
    assert "4929-1" not in everything()


def test_looking_needs_a_permission_a_reason_and_something_sealed(w: World) -> None:
    run = begin(w)
    with pytest.raises(NotAllowed):
        revealing.reveal(run, "pin", actor=w.s.oncall_a, act=act("reveal"), reason="curious")
    access.grant(w.s.auditor_d, w.s.here, ["administrator"])
    with pytest.raises(ReasonNeeded):
        revealing.reveal(run, "pin", actor=w.s.auditor_d, act=act("reveal"), reason=" ")
    for path in ("charge", "nowhere", "cards[9].number", "cards"):
        with pytest.raises(NothingSealed):
            revealing.reveal(run, path, actor=w.s.auditor_d, act=act("reveal"), reason="why")
    assert not Event.objects.filter(run_id=run, kind=EventKind.DATA_REVEALED).exists()


def test_a_key_that_was_rolled_back_seals_nothing_more(w: World) -> None:
    """What was made in a transaction that failed is not kept by the process."""
    from django.db import transaction

    class Stop(Exception):
        pass

    with pytest.raises(Stop), transaction.atomic(), tokens.within(w.s.there.pk):
        lost = tokens.seal("x")
        raise Stop
    with tokens.within(w.s.there.pk):
        kept = tokens.seal("x")
    assert kept != lost and tokens.reveal(w.s.there.pk, kept) == "x"
    assert Run.objects.filter(pk=uuid4()).first() is None
