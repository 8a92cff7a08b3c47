"""``/approvals/{id}/withdrawal/``: take one's own signature back while the request was not used (R9)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from console import http
from console.forms import ReasonForm
from console.preview import Link, Preview, Result
from console.screens import saying
from console.screens.approval_page import ApprovalPage, approval_page
from recovery.actions import approvals, signing
from recovery.actions.common import Done
from recovery.engine.refusals import NothingToWithdraw, TooLate
from runs.errors import RunsError
from runs.states import ApprovalState


@require_http_methods(["GET", "HEAD", "POST"])
def withdrawal(request: HttpRequest, id: UUID) -> HttpResponse:
    """Take one's own signature back while it was not used (R9). Medium: a reason, no step-up."""
    page = approval_page(request, id)
    if request.method != "POST":
        error = cannot_withdraw(page)
        form = ReasonForm.fresh()
        return http.preview(request, withdrawing(page, form)) if error is None else late(request, page, error)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return http.preview(request, withdrawing(page, form), status=422)
    act = saying.act_of(form, "approvals.withdraw", id)
    try:
        done = approvals.withdraw(id, actor=page.reader, act=act, reason=form.cleaned_data["reason"])
    except RunsError as error:
        return late(request, page, error, kept=form.cleaned_data["reason"])
    return http.result(request, withdrawn(page, done))


def cannot_withdraw(page: ApprovalPage) -> RunsError | None:
    """Why there is nothing to take back."""
    if page.approval.state == ApprovalState.CONSUMED:
        return TooLate(**signing.sent_facts(page.approval))
    if page.mine is None:
        return NothingToWithdraw()
    return None


def late(request: HttpRequest, page: ApprovalPage, error: RunsError, **more: Any) -> HttpResponse:
    """A withdrawal that is refused, with the way back."""
    subject = Link(page.url, page.sentence)
    back = {"again_url": page.url, "again_label": _("Back to the request"), "subject": subject}
    return saying.refuse(request, error, **back, **more)


def withdrawing(page: ApprovalPage, form: ReasonForm) -> Preview:
    """What taking a signature back leads to."""
    return Preview(
        title=_("Withdraw your signature"),
        post_url=f"{page.url}withdrawal/",
        button=_("Withdraw my signature"),
        leave_url=page.url,
        form=form,
        will=[_("your signature no longer counts. It is kept in the history.")],
        will_not=[_("nothing is sent until enough people have signed again.")],
        based_on=[page.basis],
        subject=Link(page.url, page.sentence),
    )


def withdrawn(page: ApprovalPage, done: Done) -> Result:
    """ "Withdrawn at 09:20:01. 0 of 2. ..."."""
    title = _("Withdrawn at {at}. {n} of {needed}. Event #{event}.")
    if done.replayed:
        title = _("Already withdrawn at {at} by you. Nothing was done twice.")
    facts = {"at": saying.clock(done.at), "event": done.event}
    said = title.format(n=done.facts["signed"], needed=done.facts["needed"], **facts)
    return Result(said, links=[Link(page.url, _("Back to the request"))], subject=Link(page.url, page.sentence))
