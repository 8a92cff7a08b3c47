"""``/effects/{id}/verdict/``: a person says what happened, on evidence, before what they saw changes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from console import http
from console.preview import Link, Result
from console.screens import changes, saying, stepup, told
from console.screens.effect import after_of, url_of
from console.screens.effect_page import EffectPage, effect_page
from console.screens.verdict_form import OFFERED, VerdictForm
from console.screens.verdict_preview import button_of, preview_of
from recovery.actions import deciding, verdicts
from recovery.actions.common import Done, Subject
from recovery.engine.refusals import AlreadyDone
from runs import access
from runs.errors import NotAllowed, RunsError, StaleVersion
from runs.models import Verdict
from runs.record import Act


@require_http_methods(["GET", "HEAD", "POST"])
def verdict(request: HttpRequest, id: UUID) -> HttpResponse:
    """The preview of a decision, and the decision: reason, evidence, still true?, step-up, record."""
    page = effect_page(request, id)
    says = (request.POST or request.GET).get("says", "")
    if says not in OFFERED:
        return HttpResponseRedirect(url_of(id))
    if request.method != "POST":
        return shown(request, page, says)
    form = VerdictForm(request.POST, page=page)
    if not form.is_valid():
        return http.preview(request, preview_of(page, says, form), status=422)
    act = saying.act_of(form, "verdicts.record", id)
    if not saying.done_before(request, act):
        if (error := untrue(page, form)) is not None:
            saying.keep_refusal(request, subject_of(page), act, error, form.cleaned_data["reason"])
            return refused(request, page, form, error)
        if (ask := stepup.needed(request, button_of(page, says))) is not None:
            return ask
    return recorded(request, page, form, act)


def subject_of(page: EffectPage) -> Subject:
    """The effect as refusals are kept about it."""
    return Subject("effect", page.effect.pk, page.effect.workspace_id, page.effect.run_id)


def shown(request: HttpRequest, page: EffectPage, says: str) -> HttpResponse:
    """The preview, or what stands in its place: not allowed, or decided already."""
    try:
        if not page.may_decide:
            raise told.not_allowed(page.effect.workspace_id, "decide")
        deciding.refuse_unless_decidable(page.effect, page.effect.version)
    except RunsError as error:
        return saying.refuse(
            request,
            already(page, error),
            again_url=page.url,
            again_label=_("Back to the effect"),
            subject=Link(page.url, page.sentence),
        )
    return http.preview(request, preview_of(page, says, VerdictForm.about(page, says)))


def untrue(page: EffectPage, form: VerdictForm) -> RunsError | None:
    """Why this decision would be refused now; asked before the step-up, and again by the record."""
    try:
        access.require(page.reader, page.effect.workspace_id, "decide")
        deciding.refuse_unless_decidable(page.effect, form.cleaned_data["version"])
    except RunsError as error:
        return error
    return None


def already(page: EffectPage, error: RunsError) -> RunsError:
    """A settled outcome that a person recorded is said as done before: "Already recorded at ... by you"."""
    if error.code == "already_settled" and error.facts.get("who"):
        return AlreadyDone(what="recorded", at=error.facts["at"], who=error.facts["who"])
    return error


def refused(request: HttpRequest, page: EffectPage, form: VerdictForm, error: RunsError) -> HttpResponse:
    """The refusal with what came since, and the form again on what is now, the typed reason kept."""
    more: dict[str, Any] = {"again_url": page.url, "subject": Link(page.url, page.sentence)}
    if isinstance(error, StaleVersion):
        fresh = page.again()
        more["diff"] = changes.new_evidence(fresh, form.cleaned_data["known"])
        if fresh.decidable and not fresh.detail.proposed:
            more["preview"] = preview_of(fresh, form.cleaned_data["says"], form.anew(fresh))
            return saying.refuse(request, error, **more)
    if not isinstance(error, NotAllowed):
        more["kept"] = form.cleaned_data["reason"]
    return saying.refuse(request, already(page, error), **more)


def recorded(request: HttpRequest, page: EffectPage, form: VerdictForm, act: Act) -> HttpResponse:
    """Record it and say so; a refusal of the record's own is shown like one before the step-up."""
    data = form.cleaned_data
    try:
        done = verdicts.record(
            page.effect.pk,
            actor=page.reader,
            act=act,
            says=data["says"],
            reason=data["reason"],
            evidence=data["evidence"],
            version=data["version"],
            statement=form.word,
        )
    except RunsError as error:
        return refused(request, page, form, error)
    return http.result(request, result_of(page, data["says"], done))


def result_of(page: EffectPage, says: str, done: Done) -> Result:
    """ "Recorded at 03:14:10: the refund happened. Event #23." and how the run goes on."""
    facts = {"at": saying.clock(done.at), "said": saying.said(page.effect, says), "n": done.event}
    second = bool(done.facts["needs_second"])
    if done.replayed:
        title = _("Already recorded at {at} by you. Nothing was done twice.")
    elif second:
        title = _("Recorded at {at}: {said}. Waiting for a second person to confirm. Event #{n}.")
    else:
        title = _("Recorded at {at}: {said}. Event #{n}.")
    lines = [_("Until then nobody knows: nothing is sent, and the run waits.")] if second else []
    if second and (waiting := Verdict.objects.filter(pk=done.facts["verdict"]).first()) is not None:
        who = saying.listed(deciding.who_may_confirm(waiting))
        lines.append(_("Who can confirm it: {who}.").format(who=who))
    return Result(
        title.format(**facts),
        lines=lines,
        links=[Link("/inbox/", _("Back to inbox")), Link(page.url, _("Back to the effect"))],
        tone="person" if second else "ok",
        subject=Link(page.url, page.sentence),
        after="" if second else "effect/after.html",
        extra={} if second else after_of(page.effect.run, page.effect.pk),
    )
