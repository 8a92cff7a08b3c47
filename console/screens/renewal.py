"""``/approvals/{id}/renewal/``: ask again after a request ran out, or when nobody could sign it."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from console import http
from console.forms import ReasonForm
from console.preview import Link, Preview, Result
from console.screens import saying, told
from console.screens.approval_page import ApprovalPage, approval_page
from console.screens.withdrawal import late
from recovery.actions import approvals
from recovery.actions.common import Done
from recovery.engine.refusals import NotRenewable
from runs.errors import RunsError


@require_http_methods(["GET", "HEAD", "POST"])
def renewal(request: HttpRequest, id: UUID) -> HttpResponse:
    """Ask again after a request ran out: a new revision without signatures. Medium."""
    page = approval_page(request, id)
    if request.method != "POST":
        error = cannot_renew(page)
        form = ReasonForm.fresh()
        return http.preview(request, renewing(page, form)) if error is None else late(request, page, error)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return http.preview(request, renewing(page, form), status=422)
    act = saying.act_of(form, "approvals.renew", id)
    try:
        done = approvals.renew(id, actor=page.reader, act=act, reason=form.cleaned_data["reason"])
    except RunsError as error:
        return late(request, page, error, kept=form.cleaned_data["reason"])
    return http.result(request, renewed(page, done))


def cannot_renew(page: ApprovalPage) -> RunsError | None:
    """Why it cannot be asked for again, or not by this reader."""
    if "start" not in page.held:
        return told.not_allowed(page.approval.workspace_id, "start")
    return None if page.renewable else NotRenewable(state=str(page.approval.state))


def renewing(page: ApprovalPage, form: ReasonForm) -> Preview:
    """What asking again leads to."""
    one, group = page.approval, page.approval.group
    facts = {"n": one.revision + 1, "needed": one.needed, "group": group.slug}
    return Preview(
        title=_("Ask again"),
        post_url=f"{page.url}renewal/",
        button=_("Ask {group} again").format(**facts),
        leave_url=page.url,
        form=form,
        will=[
            _("revision {n}: the same bytes are put before {group}; {needed} signatures are needed.").format(**facts)
        ],
        will_not=[_("nothing is sent, and no earlier signature counts. You cannot sign what you ask for.")],
        based_on=[page.basis],
        subject=Link(page.url, page.sentence),
    )


def renewed(page: ApprovalPage, done: Done) -> Result:
    """ "Asked at 11:05:00. Not signed yet: 2 signatures are needed by 19:05. Event #12."."""
    facts, url = done.facts, f"/approvals/{done.facts['approval']}/"
    by = saying.clock(facts["approve_by"])
    title = _("Asked at {at}. Not signed yet: {needed} signatures are needed by {by}. Event #{n}.")
    if done.replayed:
        title = _("Already asked at {at} by you. Nothing was done twice.")
    said = title.format(at=saying.clock(done.at), needed=page.approval.needed, by=by, n=done.event)
    links = [
        Link(url, _("Read revision {n}").format(n=facts["revision"])),
        Link("/inbox/", _("Back to inbox")),
    ]
    return Result(said, links=links, subject=Link(url, page.sentence))
