"""Notices: one row each, sent by a worker, retried by the sweep; a real web server and a real mail server hear them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message as MessageHandler
from django.core import mail
from django.core.management import CommandError, call_command
from standardwebhooks import Webhook

from console.stack.ports import free_port
from recovery.upkeep import notify
from recovery.upkeep.sweep import Sweep
from runs import clock
from runs.models import Effect, Notice, NoticeTarget, Review
from runs.states import EffectState, NoticeState, ReviewKind
from tests.recovery.engine.world import World
from tests.recovery.stage import later


class Hears(ThreadingHTTPServer):
    """Keeps what was posted; answers with ``status``."""

    status = 204
    heard: list[tuple[dict[str, str], bytes]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Hears)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.heard.append(({k.lower(): v for k, v in self.headers.items()}, body))
        self.send_response(server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def hears() -> Iterator[Hears]:
    with Hears(("127.0.0.1", 0), _Handler) as server:
        server.heard = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class _Mailbox(MessageHandler):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Message] = []

    def handle_message(self, message: Message) -> None:
        self.heard.append(message)


def webhook(w: World, hears: Hears, capsys: pytest.CaptureFixture[str], *kinds: str) -> str:
    """A target; its secret."""
    call_command("notices", workspace=w.s.here.slug, webhook=hears.url, kinds=list(kinds))
    return capsys.readouterr().out.strip()


def asks(w: World) -> Review:
    """A run that asks for signatures."""
    run = w.accept("test.many", "pay", amount=120_500)
    w.advance(run)
    assert w.effect(run).state == EffectState.AWAITING_APPROVAL
    return Review.objects.get(run_id=run, kind=ReviewKind.SIGNATURES_NEEDED)


def swept() -> list[str]:
    """What the sweep rings is done at once."""
    Sweep().run_once()
    due = Notice.objects.filter(state=NoticeState.WAITING, due_at__lte=clock.now()).order_by("due_at")
    return [notify.deliver(row.pk) for row in due]


def test_a_review_is_told_once_signed_with_a_link(
    w: World, hears: Hears, capsys: pytest.CaptureFixture[str], settings: Any
) -> None:
    settings.RECOURSE_ADDRESS = "https://console.example"
    secret = webhook(w, hears, capsys)
    review = asks(w)
    assert swept() == [NoticeState.SENT] and swept() == []
    ((headers, body),) = hears.heard
    told = Webhook(secret).verify(body, headers)
    assert told["type"] == "review.opened"
    assert told["data"]["kind"] == "signatures_needed"
    assert told["data"]["url"] == f"https://console.example/inbox/{review.pk}/"
    assert told["text"].startswith("Signatures needed: Refund") and told["data"]["url"] in told["text"]
    assert headers["webhook-id"] == str(Notice.objects.get().pk)


def test_any_number_of_sweeps_make_one_row(w: World, hears: Hears, capsys: pytest.CaptureFixture[str]) -> None:
    webhook(w, hears, capsys)
    asks(w)
    for _ in range(3):
        Sweep().run_once()
    assert Notice.objects.count() == 1


def test_only_the_kinds_asked_for_and_only_what_was_opened_since(
    w: World, hears: Hears, capsys: pytest.CaptureFixture[str]
) -> None:
    asks(w)
    webhook(w, hears, capsys, "quarantined")
    asks(w)
    run = w.accept("test.broken", mode="raises")
    w.advance(run)
    assert swept() == [NoticeState.SENT]
    assert json.loads(hears.heard[0][1])["data"]["kind"] == "quarantined"


def test_another_workspace_is_told_nothing(w: World, hears: Hears, capsys: pytest.CaptureFixture[str]) -> None:
    """Invariant 14."""
    call_command("notices", workspace=w.s.there.slug, webhook=hears.url)
    asks(w)
    assert swept() == []


def test_a_failure_is_tried_again_under_the_same_id_and_ends_at_last(
    w: World, hears: Hears, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bounded (invariant 10), visible in the row."""
    webhook(w, hears, capsys)
    asks(w)
    hears.status = 500
    assert swept() == ["failed, later again"]
    row = Notice.objects.get()
    assert (row.tries, row.error) == (1, "500")
    assert swept() == [], "not before its pause"
    for pause in notify.PAUSES:
        clock.shift(pause + timedelta(seconds=1))
        swept()
    row.refresh_from_db()
    assert (row.state, row.tries) == (NoticeState.FAILED, len(notify.PAUSES) + 1)
    mine = [headers for headers, _ in hears.heard if headers["webhook-id"] == str(row.pk)]
    assert len(mine) == row.tries
    later(days=30)
    assert notify.deliver(row.pk) == NoticeState.FAILED
    assert [h for h, _ in hears.heard if h["webhook-id"] == str(row.pk)] == mine


def test_whoever_answers_gone_is_told_no_more(w: World, hears: Hears, capsys: pytest.CaptureFixture[str]) -> None:
    webhook(w, hears, capsys)
    asks(w)
    hears.status = 410
    assert swept() == [NoticeState.FAILED]
    assert NoticeTarget.objects.get().ended_at is not None
    asks(w)
    assert swept() == []


def test_two_workers_send_a_notice_once(w: World, hears: Hears, capsys: pytest.CaptureFixture[str]) -> None:
    """The second finds that its row was taken."""
    webhook(w, hears, capsys)
    asks(w)
    Sweep().run_once()
    row = Notice.objects.get()
    Notice.objects.filter(pk=row.pk).update(tries=1, due_at=clock.now() + timedelta(seconds=5))
    assert notify.deliver(row.pk) == "another was first"
    assert hears.heard == []


def test_what_was_settled_before_it_was_told_is_not_told(
    w: World, hears: Hears, capsys: pytest.CaptureFixture[str]
) -> None:
    webhook(w, hears, capsys)
    review = asks(w)
    Sweep().run_once()
    assert review.run_id is not None
    w.cancel(review.run_id)
    w.drive()
    assert notify.deliver(Notice.objects.get().pk) == NoticeState.DROPPED
    assert hears.heard == []


def test_mail_is_sent_by_a_mail_server(w: World, settings: Any) -> None:
    """The same by e-mail, in the language of its target."""
    box = _Mailbox()
    server = Controller(box, hostname="127.0.0.1", port=free_port())
    server.start()
    try:
        settings.MAILERS = {
            "default": {
                "BACKEND": "django.core.mail.backends.smtp.EmailBackend",
                "OPTIONS": {"host": "127.0.0.1", "port": server.port},
            }
        }
        call_command("notices", workspace=w.s.here.slug, email="night@acme.example")
        review = asks(w)
        assert swept() == [NoticeState.SENT]
    finally:
        server.stop()
    (one,) = box.heard
    assert str(one["Subject"]).startswith("[acme-pay] Signatures needed: Refund")
    assert one["Message-ID"] == f"<{Notice.objects.get().pk}@recourse>"
    assert f"/inbox/{review.pk}/" in one.get_payload()


def test_without_a_mail_server_the_row_says_so(w: World, settings: Any) -> None:
    settings.MAILERS = {}
    call_command("notices", workspace=w.s.here.slug, email="night@acme.example")
    asks(w)
    assert swept() == ["failed, later again"]
    assert "RECOURSE_MAIL_HOST" in Notice.objects.get().error


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"webhook": "http://example.com/hook"}, "not https"),
        ({"webhook": "https://user:pass@example.com/"}, "not an address"),
        ({"email": "nobody"}, "not an e-mail"),
        ({"webhook": "https://example.com/", "kinds": ["everything"]}, "No kind everything"),
        ({"end": "https://example.com/"}, "not told anything"),
    ],
)
def test_the_command_names_what_it_does_not_take(w: World, given: dict[str, Any], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        call_command("notices", workspace=w.s.here.slug, **given)


def test_an_address_is_told_once_and_can_be_ended(w: World, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"https://example.com/{uuid4()}"
    call_command("notices", workspace=w.s.here.slug, webhook=url)
    secret = capsys.readouterr().out.strip()
    assert secret.startswith("whsec_") and secret not in NoticeTarget.objects.get().secret
    with pytest.raises(CommandError, match="told already"):
        call_command("notices", workspace=w.s.here.slug, webhook=url)
    call_command("notices", workspace=w.s.here.slug, list=True)
    assert url in capsys.readouterr().out
    call_command("notices", workspace=w.s.here.slug, end=url)
    assert NoticeTarget.objects.get().ended_at is not None


def test_every_kind_of_review_has_its_line() -> None:
    assert set(notify.SENTENCES) == set(ReviewKind)


def test_what_an_effect_is_called_breaks_no_header(w: World, settings: Any) -> None:
    """An author's sentence over somebody's input: a line break in it would be refused at each try."""
    settings.MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
    call_command("notices", workspace=w.s.here.slug, email="night@acme.example")
    effect = asks(w).effect
    assert effect is not None
    Effect.objects.filter(pk=effect.pk).update(describe="Refund\r\nBcc: all@acme.example")
    assert swept() == [NoticeState.SENT]
    assert mail.outbox[0].subject == "[acme-pay] Signatures needed: Refund Bcc: all@acme.example"
    assert mail.outbox[0].recipients() == ["night@acme.example"]
