"""Messages of the other side: evidence about an effect of this workspace, or set aside; never a guess, never twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook

from recovery import failpoints
from recovery.actions import callbacks as actions
from recovery.engine.refusals import AlreadyDone
from recovery.traffic import callbacks
from recovery.traffic.callbacks import Forged, Heard
from runs import clock
from runs.errors import NotAllowed, NotFound
from runs.models import Callback, Dependency, Effect, Event, Evidence, Review
from runs.states import AttemptState, CallbackState, EffectState, EventKind, ReviewKind, RunState, Strength
from tests.recovery.engine.test_unknown import unknown
from tests.recovery.engine.world import World
from tests.recovery.stage import act

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + "plJ3nmyCDGBKInavdOK15jsl2n1yLsSZ"


def dependency(w: World, name: str = "payments", *secrets: str) -> Dependency:
    """The workspace's dependency, with ``secrets`` (one unless given) for its callbacks."""
    row = Dependency.objects.get(workspace=w.s.here, name=name)
    row.callback_secrets = callbacks.keep_secrets(row, list(secrets or [SECRET]))
    row.save(update_fields=["callback_secrets"])
    return row


def message(effect: Effect, **changed: Any) -> bytes:
    """What payments says of the refund ``effect``."""
    data = {
        "id": "re_1",
        "reference": effect.sent_key,
        "status": "succeeded",
        "charge": effect.params["charge"],
        "amount": effect.params["amount"],
        "currency": effect.params["currency"],
        "created": clock.now().isoformat(),
        **changed,
    }
    return json.dumps({"type": "refund.succeeded", "data": data}).encode()


def signed(body: bytes, *, id: str = "msg_1", secret: str = SECRET, at: datetime | None = None) -> dict[str, str]:
    """The three headers of the scheme."""
    at = at or datetime.now(UTC)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(id, at, body.decode()),
    }


def hear(w: World, body: bytes, id: str = "msg_1") -> Heard:
    return callbacks.receive(dependency(w), id, body, datetime.now(UTC))


def test_a_message_with_our_reference_settles_an_unknown(w: World) -> None:
    """It is proof like their own record: the run goes on, nothing is sent again."""
    run = unknown(w, "pay", "payments")
    assert hear(w, message(w.effect(run))) is Heard.MATCHED
    effect = w.effect(run)
    assert (effect.state, effect.reason["code"]) == (EffectState.SUCCEEDED, "proved")
    row = Callback.objects.get()
    proof = Evidence.objects.get(pk=row.evidence)
    assert (row.state, row.effect_id, proof.kind, proof.strength) == (
        CallbackState.MATCHED,
        effect.pk,
        "callback",
        Strength.PROVES,
    )
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert len(w.sandbox.requests()) == 1
    w.sound()


def test_a_message_before_the_answer_settles_and_the_answer_only_confirms(w: World) -> None:
    """Fault 27: the intent is recorded before any byte leaves, so an early message finds it."""
    seen: list[Heard] = []

    def early() -> None:
        failpoints.disarm("advance.before_outcome")
        seen.append(hear(w, message(Effect.objects.get())))

    failpoints.arm("advance.before_outcome", early)
    run = w.accept("test.many", "pay")
    w.advance(run)
    assert seen == [Heard.MATCHED]
    effect = w.effect(run)
    assert effect.state == EffectState.SUCCEEDED
    assert [a.state for a in w.attempts(effect)] == [AttemptState.ANSWERED]
    assert effect.dependency.capacity.in_flight == 0, "the permit came back"
    w.drive()
    assert w.run(run).state == RunState.COMPLETED
    assert w.applied(effect) == 1
    w.sound()


def test_the_same_message_again_changes_nothing(w: World) -> None:
    """Fault 29, one after the other; unique (dependency, message id) keeps it for good."""
    run = unknown(w, "pay", "payments")
    body = message(w.effect(run))
    assert hear(w, body) is Heard.MATCHED
    before = (Event.objects.count(), Evidence.objects.count())
    assert [hear(w, body) for _ in range(3)] == [Heard.AGAIN] * 3
    assert hear(w, message(w.effect(run), amount=1)) is Heard.OTHER_BODY
    assert (Event.objects.count(), Evidence.objects.count()) == before


def test_a_message_that_says_pending_after_the_end_moves_nothing(w: World) -> None:
    """Reordered: the older word comes later."""
    run = unknown(w, "pay", "payments")
    assert hear(w, message(w.effect(run))) is Heard.MATCHED
    assert hear(w, message(w.effect(run), status="pending"), "msg_2") is Heard.MATCHED
    assert w.effect(run).state == EffectState.SUCCEEDED
    w.sound()


def test_a_message_that_contradicts_a_settled_effect_disputes_it(w: World) -> None:
    """Contradicting evidence of the authority, also under an ended run, whose end stays (invariant 5)."""
    run = w.accept("test.many", "pay")
    w.advance(run)
    assert w.run(run).state == RunState.COMPLETED
    assert hear(w, message(w.effect(run), status="failed")) is Heard.MATCHED
    assert w.effect(run).state == EffectState.DISPUTED
    assert w.reviews(run) == [ReviewKind.EVIDENCE_DISAGREES]
    assert w.run(run).state == RunState.COMPLETED
    w.sound()


def test_a_message_with_our_reference_on_other_content_disputes_it(w: World) -> None:
    """Somebody's record is wrong, and no rule picks whose."""
    run = unknown(w, "pay", "payments")
    assert hear(w, message(w.effect(run), amount=999)) is Heard.MATCHED
    assert w.effect(run).state == EffectState.DISPUTED


def test_a_message_after_a_cancellation_revives_nothing(w: World) -> None:
    """Fault 33: the run stays cancelled; what was believed not to have happened is disputed."""
    w.sandbox.dial("payments", reply="reject", times=1)
    run = w.accept("test.many", "pay")
    w.advance(run)
    w.drive()
    ended = w.run(run).state
    assert hear(w, message(w.effect(run))) is Heard.MATCHED
    assert w.effect(run).state == EffectState.DISPUTED
    w.drive()
    assert w.run(run).state == ended
    w.sound()


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b'{"data": {"reference": "refund:nobody"}}',
        b'{"data": []}',
        b'{"data": {"reference": 7}}',
        b"[" * 2000,
        b'{"data": {"reference": "a", "reference": "b"}}',
        b"\xff\xfe\x00",
    ],
)
def test_a_genuine_message_that_matches_nothing_is_set_aside_for_a_person(w: World, body: bytes) -> None:
    """Kept as it came, one review; never a guess."""
    assert hear(w, body) is Heard.ASIDE
    row = Callback.objects.get()
    assert row.state == CallbackState.ASIDE
    assert Review.objects.get().kind == ReviewKind.CALLBACK_ASIDE
    assert Event.objects.get(kind=EventKind.CALLBACK_SET_ASIDE).run_id is None


def test_another_workspaces_effect_is_not_matched(w: World) -> None:
    """Invariant 14: authenticity is not authority; the neighbour's message with our reference is aside there."""
    run = unknown(w, "pay", "payments")
    theirs = Dependency.objects.get(workspace=w.s.there, name="payments")
    before = w.effect(run)
    assert callbacks.receive(theirs, "msg_1", message(before), datetime.now(UTC)) is Heard.ASIDE
    after = w.effect(run)
    assert (after.state, after.version) == (before.state, before.version)
    assert Callback.objects.get().workspace_id == w.s.there.pk


def test_a_later_generation_is_matched_by_the_key_it_was_sent_under(w: World) -> None:
    """The key of generation n is {key}/n; the first one's message is the first one's."""
    w.sandbox.dial("payments", reply="reject", times=1)
    charge = w.charge()
    first = w.accept("test.many", ("pay", charge))
    w.advance(first)
    second = w.accept("test.many", ("pay", charge))
    w.sandbox.dial("payments", reply="drop", times=1)
    w.advance(second)
    effect = w.effect(second)
    assert effect.sent_key.endswith("/2")
    assert hear(w, message(effect)) is Heard.MATCHED
    assert w.effect(second).state == EffectState.SUCCEEDED
    assert w.effect(first).state == EffectState.REJECTED


def _late(w: World, body: bytes) -> dict[str, str]:
    return signed(body, at=datetime.now(UTC) - timedelta(minutes=6))


FORGERIES: dict[str, Callable[[World, bytes], dict[str, str]]] = {
    "another secret": lambda w, body: signed(body, secret=OTHER),
    "another body": lambda w, body: signed(body + b" "),
    "too old": _late,
    "from the future": lambda w, body: signed(body, at=datetime.now(UTC) + timedelta(minutes=6)),
    "no signature": lambda w, body: {**signed(body), "webhook-signature": ""},
    "another version": lambda w, body: {**signed(body), "webhook-signature": "v2,AAAA"},
    "no comma": lambda w, body: {**signed(body), "webhook-signature": "v1"},
    "not base64": lambda w, body: {**signed(body), "webhook-signature": "v1,***"},
    "another id": lambda w, body: {**signed(body), "webhook-id": "msg_9"},
    "odd time": lambda w, body: {**signed(body), "webhook-timestamp": "nan"},
    "no time": lambda w, body: {**signed(body), "webhook-timestamp": ""},
}


@pytest.mark.parametrize("how", FORGERIES)
def test_what_is_not_genuine_is_refused(w: World, how: str) -> None:
    """Fault 31: forged, altered, too old, of another tenant's secret."""
    body = b'{"data": {}}'
    with pytest.raises(Forged):
        callbacks.verify(dependency(w), FORGERIES[how](w, body), body)


def test_secrets_are_rotated_without_a_gap(w: World) -> None:
    """Both count while both are kept; one that was taken away does not."""
    body = b'{"data": {}}'
    both = dependency(w, "payments", OTHER, SECRET)
    assert callbacks.verify(both, signed(body), body) and callbacks.verify(both, signed(body, secret=OTHER), body)
    one = dependency(w, "payments", OTHER)
    with pytest.raises(Forged):
        callbacks.verify(one, signed(body), body)
    assert SECRET not in one.callback_secrets


def test_a_dependency_without_a_secret_hears_nobody(w: World) -> None:
    body = b'{"data": {}}'
    with pytest.raises(Forged):
        callbacks.verify(Dependency.objects.get(workspace=w.s.here, name="mail"), signed(body), body)


def test_putting_a_message_away_takes_a_person_a_reason_and_happens_once(w: World) -> None:
    assert hear(w, b'{"data": {}}') is Heard.ASIDE
    row = Callback.objects.get()
    for actor, refusal in ((w.s.auditor_d, NotAllowed), (w.s.outsider_e, NotFound)):
        with pytest.raises(refusal):
            actions.dismiss(row.pk, actor=actor, act=act("dismiss"), reason="a test of theirs")
    again = act("dismiss")
    actions.dismiss(row.pk, actor=w.s.oncall_a, act=again, reason="a test of theirs")
    assert actions.dismiss(row.pk, actor=w.s.oncall_a, act=again, reason="a test of theirs").replayed
    row.refresh_from_db()
    assert row.state == CallbackState.DISMISSED
    assert Review.objects.get().state == "closed"
    with pytest.raises(AlreadyDone):
        actions.dismiss(row.pk, actor=w.s.oncall_g, act=act("dismiss"), reason="again")
