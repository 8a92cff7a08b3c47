"""Telling people that something needs them: one row each message, sent by a worker, retried by the sweep.

A notice is a doorbell with an address: the review stands whether anybody hears of it or not, and the link in it leads
to a page, never to an act. Webhooks are signed by the Standard Webhooks scheme, their body also carries ``text``, which
Slack and its like show. The pauses between tries are that scheme's own schedule (75 h 35 m in all).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from smtplib import SMTPException
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage, MailerDoesNotExist
from django.db import connection
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, override
from standardwebhooks import Webhook

from recovery import failpoints
from recovery.ports.base import AnswerKind
from recovery.ports.http import call
from runs import clock, secret_text
from runs.errors import Undecryptable
from runs.models import Channel, Notice, NoticeTarget, Review
from runs.states import NoticeState, ReviewKind, ReviewState

log = logging.getLogger("recourse.notify")

PAUSES: Final = tuple(timedelta(seconds=s) for s in (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400))
"""Between the tries; one more failure than there are pauses is the last."""

TIMEOUT_S: Final = 15.0
GONE: Final = 410
"""By the scheme: whoever answers so wants no more."""

ERROR_KEPT: Final = 300

SENTENCES: Final[dict[str, str | Promise]] = {
    ReviewKind.SIGNATURES_NEEDED: gettext_lazy("Signatures needed: {what}"),
    ReviewKind.OUTCOME_UNKNOWN: gettext_lazy("Nobody knows whether it happened: {what}"),
    ReviewKind.EVIDENCE_DISAGREES: gettext_lazy("The evidence disagrees: {what}"),
    ReviewKind.PARTIAL_OUTCOME: gettext_lazy("It happened in part: {what}"),
    ReviewKind.CONFIRM_DECISION: gettext_lazy("A decision needs a second person: {what}"),
    ReviewKind.RESUMPTION: gettext_lazy("Goes on, or not: {what}"),
    ReviewKind.QUARANTINED: gettext_lazy("Quarantined: {what}"),
    ReviewKind.COMPENSATION_INCOMPLETE: gettext_lazy("Mended in part: {what}"),
    ReviewKind.CALLBACK_ASIDE: gettext_lazy("A message of {dependency} matches nothing here"),
    ReviewKind.NOT_SENDING: gettext_lazy("Nothing is sent to {dependency}"),
    ReviewKind.DRAIN_STOPPED: gettext_lazy("The backlog of {dependency} waits for a person"),
    ReviewKind.BREAK_GLASS: gettext_lazy("A break-glass needs a second person: {what}"),
    ReviewKind.HISTORY_ALARM: gettext_lazy("The record was changed from outside"),
}
"""One line for each kind of review."""

_MAKE: Final = """
INSERT INTO runs_notice (id, workspace_id, target_id, review_id, state, tries, due_at, made_at, error)
SELECT uuidv7(), r.workspace_id, t.id, r.id, 'waiting', 0, runs_now(), runs_now(), ''
FROM runs_noticetarget t
JOIN runs_review r ON r.workspace_id = t.workspace_id AND r.state = 'open' AND r.opened_at >= t.since
WHERE t.ended_at IS NULL AND (t.kinds = '[]'::jsonb OR t.kinds ? r.kind)
  AND NOT EXISTS (SELECT 1 FROM runs_notice n WHERE n.review_id = r.id AND n.target_id = t.id)
LIMIT %s
ON CONFLICT DO NOTHING
"""
_TAKE: Final = """
UPDATE runs_notice SET tries = tries + 1, due_at = runs_now() + %s::interval
WHERE id = %s AND state = 'waiting' AND due_at <= runs_now() AND tries = %s
"""


def make(limit: int) -> int:
    """A row for each open review and each target that wants its kind. Any number of sweeps make each once."""
    with connection.cursor() as cursor:
        cursor.execute(_MAKE, [limit])
        made = int(cursor.rowcount)
    if made:
        failpoints.hit("notify.made")
    return made


def deliver(notice_id: UUID) -> str:
    """Send a notice that is due, once. Returns what came of it, for the log.

    The next try is recorded before this one is made, so that a worker that dies sends it again, later, under the same
    message id: the other side knows a repeat.
    """
    notice = Notice.objects.select_related("target", "review__run", "review__effect", "workspace").get(pk=notice_id)
    if notice.state != NoticeState.WAITING:
        return notice.state
    if notice.target.ended_at is not None or (notice.review.state != ReviewState.OPEN and not notice.tries):
        return _ended(notice, NoticeState.DROPPED, "nobody needs to hear of it any more")
    pause = PAUSES[min(notice.tries, len(PAUSES) - 1)]
    failpoints.hit("notify.before_take")
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [str(pause.total_seconds()) + " s", notice.pk, notice.tries])
        if cursor.rowcount != 1:
            return "another was first"
    failpoints.hit("notify.after_take")
    notice.tries += 1
    connection.close()  # given back to the pool: none is held during the call
    failpoints.hit("notify.before_send")
    problem = _by_webhook(notice) if notice.target.channel == Channel.WEBHOOK else _by_mail(notice)
    failpoints.hit("notify.after_send")
    if not problem:
        return _ended(notice, NoticeState.SENT, "")
    if problem == str(GONE):
        NoticeTarget.objects.filter(pk=notice.target_id, ended_at=None).update(ended_at=clock.now())
        return _ended(notice, NoticeState.FAILED, "the address wants no more")
    log.warning("notice %s to %s, try %d: %s", notice.pk, notice.target, notice.tries, problem)
    if notice.tries > len(PAUSES):
        return _ended(notice, NoticeState.FAILED, problem)
    Notice.objects.filter(pk=notice.pk, state=NoticeState.WAITING).update(error=problem[:ERROR_KEPT])
    return "failed, later again"


def told(notice: Notice) -> dict[str, Any]:
    """The body of a webhook: what stands in the inbox, and a link. No payload, no evidence, no secret."""
    review = notice.review
    with override(notice.target.language):
        line = sentence(review)
        text = f"{line}\n{_('Due {at}').format(at=review.due_at.isoformat(timespec='minutes'))}\n{link(review)}"
    return {
        "type": "review.opened",
        "timestamp": notice.made_at.isoformat(),
        "data": {
            "workspace": notice.workspace.slug,
            "environment": notice.workspace.environment,
            "review": str(review.pk),
            "kind": review.kind,
            "severity": review.severity,
            "due_at": review.due_at.isoformat(),
            "run": None if review.run_id is None else str(review.run_id),
            "effect": None if review.effect_id is None else str(review.effect_id),
            "title": line,
            "url": link(review),
        },
        "text": text,
    }


def sentence(review: Review) -> str:
    """One line about ``review`` in the active language."""
    what = review.effect.describe if review.effect is not None else review.run.title if review.run is not None else ""
    facts: Mapping[str, Any] = review.why.get("facts") or {}
    return str(SENTENCES[review.kind]).format(what=what, dependency=facts.get("dependency", ""))


def link(review: Review) -> str:
    """The page of what the review is about; a GET that changes nothing. Without an address of ours, its path."""
    return f"{settings.RECOURSE_ADDRESS or ''}/inbox/{review.pk}/"


def seal_secret(target: NoticeTarget, secret: str) -> str:
    """The column that keeps what a webhook is signed with."""
    return secret_text.seal(secret, _place(target))


def _by_webhook(notice: Notice) -> str:
    """Why it was not taken, or an empty text."""
    target = notice.target
    try:
        secret = secret_text.unseal(target.secret, _place(target))
    except Undecryptable as error:
        return str(error)
    body = json.dumps(told(notice), ensure_ascii=False)
    now = datetime.now(UTC)
    headers = [
        (b"Content-Type", b"application/json"),
        (b"webhook-id", str(notice.pk).encode()),
        (b"webhook-timestamp", str(int(now.timestamp())).encode()),
        (b"webhook-signature", Webhook(secret).sign(str(notice.pk), now, body).encode()),
    ]
    answer = call("POST", target.address, headers, body.encode(), TIMEOUT_S, None)
    if answer.kind is not AnswerKind.ANSWERED or answer.status is None:
        return answer.error or "no answer"
    return "" if 200 <= answer.status < 300 else str(answer.status)


def _by_mail(notice: Notice) -> str:
    """The same by e-mail; its Message-ID is the notice's, so that a repeat is known as one."""
    body = told(notice)
    message = EmailMessage(
        subject=" ".join(f"[{notice.workspace.slug}] {body['data']['title']}".split())[:200],
        body=body["text"],
        from_email=settings.RECOURSE_MAIL_FROM,
        to=[notice.target.address],
        headers={"Message-ID": f"<{notice.pk}@recourse>", "Auto-Submitted": "auto-generated"},
    )
    try:
        message.send(using="default")
    except MailerDoesNotExist:
        return "no mail server is set: RECOURSE_MAIL_HOST"
    except (SMTPException, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _ended(notice: Notice, state: NoticeState, error: str) -> str:
    rows = Notice.objects.filter(pk=notice.pk, state=NoticeState.WAITING)
    failpoints.hit("notify.before_outcome")
    rows.update(state=state, ended_at=clock.now(), error=error[:ERROR_KEPT])
    failpoints.hit("notify.after_outcome")
    return state


def _place(target: NoticeTarget) -> str:
    return f"runs_noticetarget|{target.pk}|secret"
