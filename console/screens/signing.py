"""``/approvals/{id}/decision/``: sign or reject exactly the bytes that were shown."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from console import http
from console.preview import Link, Result
from console.screens import saying, stepup
from console.screens.approval import (
    KEPT,
    REJECT,
    SIGN,
    DecisionForm,
    context_of,
    label_of,
    preview_of,
    run_goes_on,
)
from console.screens.approval_page import ApprovalPage, approval_page
from console.screens.revisions import what_changed
from recovery.actions import approvals, signing
from recovery.actions.common import Done, Subject
from recovery.engine.refusals import TooLate
from runs import clock
from runs.errors import RunsError, Superseded
from runs.models import Approval
from runs.record import Act


@require_http_methods(["GET", "HEAD", "POST"])
def decision(request: HttpRequest, id: UUID) -> HttpResponse:
    """Sign or reject: may they?, reason, still the same bytes?, step-up, record. GET leads to the page."""
    page = approval_page(request, id)
    if request.method != "POST":
        return HttpResponseRedirect(page.url)
    form = DecisionForm(request.POST)
    if not form.is_valid():
        error = page.why_not if page.open else None
        return unfinished(request, page, form) if error is None else saying.refuse(request, error)
    chosen = form.cleaned_data["decision"]
    act = saying.act_of(form, f"approvals.{chosen}", id)
    if not saying.done_before(request, act):
        if (error := untrue(page, form)) is not None:
            subject = Subject("approval", id, page.approval.workspace_id, page.approval.run_id)
            saying.keep_refusal(request, subject, act, error, form.cleaned_data["reason"])
            return refused(request, page, form, error)
        if (ask := stepup.needed(request, label_of(page, chosen))) is not None:
            return ask
    return answered(request, page, form, act)


def unfinished(request: HttpRequest, page: ApprovalPage, form: DecisionForm) -> HttpResponse:
    """The form came back with errors: the decision again, nothing typed is lost."""
    return http.preview(request, preview_of(page, form), status=422)


def untrue(page: ApprovalPage, form: DecisionForm) -> RunsError | None:
    """Why this answer would be refused now; asked before the step-up, and again by the record."""
    approval, to = page.approval, form.cleaned_data["decision"]
    try:
        page.rule.require(page.reader, page.detail.standing)
        signing.refuse_unless_current(approval, form.cleaned_data["digest"])
        signing.refuse_unless_open(approval, page.run, clock.now(), to=to)
        if to == SIGN:
            page.rule.require_first(page.reader, page.detail.standing)
    except RunsError as error:
        return error
    return None


def refused(request: HttpRequest, page: ApprovalPage, form: DecisionForm, error: RunsError) -> HttpResponse:
    """The refusal: with the newer revision and the difference where one replaced this, the reason kept."""
    reason = form.cleaned_data["reason"]
    more: dict[str, Any] = {"kept": reason, "again_url": page.url, "subject": Link(page.url, page.sentence)}
    if isinstance(error, TooLate):
        error.facts["act"] = _("sign") if form.cleaned_data["decision"] == SIGN else _("reject")
    if isinstance(error, Superseded) and error.facts.get("approval"):
        newer = Approval.objects.get(pk=error.facts["approval"])
        seen = Approval.objects.filter(effect=page.approval.effect_id, digest=form.cleaned_data["digest"]).first()
        more["again_url"] = f"/approvals/{newer.pk}/"
        more["again_label"] = _("Read revision {n}").format(n=newer.revision)
        more["diff"] = what_changed(seen or page.approval, newer)
        kept = request.session.get(KEPT, {})
        request.session[KEPT] = {**kept, str(page.approval.effect_id): reason}
    return saying.refuse(request, error, **more)


def answered(request: HttpRequest, page: ApprovalPage, form: DecisionForm, act: Act) -> HttpResponse:
    """Record the answer and say so; beside it, for a page that stays open, the count as it is now."""
    data = form.cleaned_data
    door = approvals.sign if data["decision"] == SIGN else approvals.reject
    given = {"reason": data["reason"], "digest": data["digest"], "saw": page.saw}
    try:
        done = door(page.approval.pk, actor=page.reader, act=act, **given)
    except RunsError as error:
        return refused(request, page, form, error)
    kept = request.session.get(KEPT, {})
    if kept.pop(str(page.approval.effect_id), None) is not None:
        request.session[KEPT] = kept
    again = approval_page(request, page.approval.pk)
    return told_result(request, again, result_of(again, data["decision"], done))


def told_result(request: HttpRequest, page: ApprovalPage, result: Result) -> HttpResponse:
    """The result in place of the form; with htmx the head and what follows are renewed beside it."""
    if not getattr(request, "htmx", False):
        return http.result(request, result)
    return render(request, "approval/answered.html", {**context_of(page), "result": result})


def result_of(page: ApprovalPage, chosen: str, done: Done) -> Result:
    """ "Signed at 09:15:40. 1 of 2. One more signature is needed by 11:00. ..."."""
    facts = {"at": saying.clock(done.at), "n": done.facts.get("signed"), "needed": done.facts.get("needed")}
    links = [Link("/inbox/", _("Back to inbox"))]
    if done.replayed:
        what = _("signed") if chosen == SIGN else _("rejected")
        title = _("Already {what} at {at} by you. Nothing was done twice.").format(what=what, **facts)
    elif chosen == REJECT:
        title = _("Rejected at {at}. It will not be sent. {goes_on}").format(goes_on=run_goes_on(page.run), **facts)
    elif done.facts["granted"]:
        title = _("Signed at {at}. {n} of {needed}. Sending now.").format(**facts)
    else:
        title = _("Signed at {at}. {n} of {needed}. {more} You can withdraw yours until it is sent.").format(
            more=more_needed(page, int(done.facts["needed"]) - int(done.facts["signed"])), **facts
        )
    if page.withdrawable:
        links.append(Link(f"{page.url}withdrawal/", _("Withdraw...")))
    return Result(
        title,
        lines=[_("Event #{n}.").format(n=done.event)],
        links=links,
        subject=Link(page.url, page.sentence),
    )


def more_needed(page: ApprovalPage, left: int) -> str:
    """ "One more signature is needed by 11:00."."""
    by = saying.deadline(page.approval.approve_by)
    if left == 1:
        return _("One more signature is needed by {by}.").format(by=by)
    line = ngettext("{n} more signature is needed by {by}.", "{n} more signatures are needed by {by}.", left)
    return line.format(n=left, by=by)
