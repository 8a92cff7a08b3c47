"""Signed messages over HTTP: what is not genuine gets one answer and leaves nothing behind."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from recovery.traffic import callbacks
from runs.models import Callback, Dependency, Event
from tests.console.api.conftest import Cast, problem
from tests.recovery.traffic.test_callbacks import OTHER, SECRET, signed

BODY = b'{"type": "refund.succeeded", "data": {"reference": "refund:nobody"}}'


@pytest.fixture
def payments(cast: Cast) -> Dependency:
    row = Dependency.objects.get(workspace=cast.acme, name="payments")
    row.callback_secrets = callbacks.keep_secrets(row, [SECRET])
    row.save()
    return row


def post(dependency: UUID, body: bytes, headers: dict[str, str]) -> Any:
    client = Client(raise_request_exception=False, enforce_csrf_checks=True)
    return client.post(f"/api/v1/callbacks/{dependency}", body, content_type="application/json", headers=headers)


def test_a_genuine_message_is_recorded_before_it_is_answered(payments: Dependency) -> None:
    """Invariant 1; the same again is answered the same and counted once (invariant 15)."""
    for _ in range(2):
        answer = post(payments.pk, BODY, signed(BODY))
        assert (answer.status_code, answer.content) == (204, b"")
    assert Callback.objects.get().message == "msg_1"
    problem(post(payments.pk, BODY + b" ", signed(BODY + b" ")), 409, "callback_mismatch")


def test_what_is_not_genuine_gets_one_answer_and_leaves_nothing(payments: Dependency, cast: Cast) -> None:
    """Fault 31 and invariant 14: a missing dependency, a neighbour's, a forged signature read alike."""
    theirs = Dependency.objects.get(workspace=cast.other, name="payments")
    before = Event.objects.count()
    answers = [
        post(payments.pk, BODY, signed(BODY, secret=OTHER)),
        post(theirs.pk, BODY, signed(BODY)),
        post(uuid4(), BODY, signed(BODY)),
        post(payments.pk, BODY, {}),
        post(payments.pk, b"\xff", signed(BODY)),
    ]
    told = [{**problem(one, 401, "callback_refused"), "instance": "", "request_id": ""} for one in answers]
    assert all(one == told[0] for one in told)
    assert (Callback.objects.count(), Event.objects.count()) == (0, before)


def test_a_message_that_is_too_large_is_not_read(payments: Dependency) -> None:
    body = b" " * (callbacks.MOST_BYTES + 1)
    problem(post(payments.pk, body, signed(body)), 413, "body_too_large")


def test_a_session_or_token_does_not_help(payments: Dependency, cast: Cast) -> None:
    """Only the signature counts."""
    caller = cast.caller("Oncall A")
    answer = caller.client.post(
        f"/api/v1/callbacks/{payments.pk}",
        BODY,
        content_type="application/json",
        headers={"Authorization": f"Bearer {caller.token}"},
    )
    problem(answer, 401, "callback_refused")


def test_the_command_makes_a_secret_says_it_once_and_keeps_it_sealed(
    cast: Cast, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two at once while they are rotated."""
    call_command("callback_secret", workspace="acme-pay", dependency="payments")
    first = capsys.readouterr().out.strip()
    call_command("callback_secret", workspace="acme-pay", dependency="payments")
    second = capsys.readouterr().out.strip()
    row = Dependency.objects.get(workspace=cast.acme, name="payments")
    assert first.startswith("whsec_") and second != first and first not in row.callback_secrets
    for n, secret in enumerate((first, second)):
        assert post(row.pk, BODY, signed(BODY, id=f"msg_{n}", secret=secret)).status_code == 204
    call_command("callback_secret", workspace="acme-pay", dependency="payments", only_newest=True)
    problem(post(row.pk, BODY, signed(BODY, id="msg_3", secret=first)), 401, "callback_refused")
    assert post(row.pk, BODY, signed(BODY, id="msg_4", secret=second)).status_code == 204


def test_the_command_names_what_it_does_not_find(cast: Cast) -> None:
    with pytest.raises(CommandError, match="no dependency nowhere"):
        call_command("callback_secret", workspace="acme-pay", dependency="nowhere")
