"""``/verdicts/{id}/confirmation/``: the second person's answer to a decision, or its being taken back."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from console import http
from console.forms import DigestForm
from console.preview import Choice, Link, Preview, Result
from console.screens import place, saying, stepup, told
from console.screens.effect import after_of
from console.screens.effect_page import EffectPage, effect_page
from console.screens.pressed import Pressed
from recovery.actions import deciding, verdicts
from recovery.actions.common import Done, Subject
from recovery.engine.refusals import AlreadyDone
from runs import queries
from runs.errors import RunsError, StaleVersion
from runs.models import Person, Verdict
from runs.record import Act
from runs.states import VerdictState

CONFIRM, REFUSE = "confirm", "refuse"


class ConfirmForm(DigestForm):
    """The second person's answer, bound to the digest of the decision that the page showed."""

    decision = forms.ChoiceField(choices=[(CONFIRM, CONFIRM), (REFUSE, REFUSE)], widget=Pressed)


@require_http_methods(["GET", "HEAD", "POST"])
def confirmation(request: HttpRequest, id: UUID) -> HttpResponse:
    """Show the decision; take the answer: reason, still the same decision?, step-up, record."""
    reader = place.person_of(request)
    verdict = place.found(queries.visible_verdict, reader, id)
    page = effect_page(request, verdict.effect_id)
    if request.method != "POST":
        return shown(request, page, verdict)
    form, confirm = ConfirmForm(request.POST), request.POST.get("decision") == CONFIRM
    if not form.is_valid():
        return http.preview(request, preview_of(page, verdict, form), status=422)
    act = saying.act_of(form, "verdicts.confirm", id)
    if not saying.done_before(request, act):
        if (error := untrue(verdict, reader, form, confirm=confirm)) is not None:
            about = Subject("verdict", id, verdict.workspace_id, verdict.run_id)
            saying.keep_refusal(request, about, act, error, form.cleaned_data["reason"])
            return refused(request, page, form, error)
        if (ask := stepup.needed(request, label(page, verdict, confirm=confirm))) is not None:
            return ask
    return answered(request, page, verdict, form, act, confirm=confirm)


def untrue(verdict: Verdict, reader: Person, form: ConfirmForm, *, confirm: bool) -> RunsError | None:
    """Why this answer would be refused now; asked before the step-up, and again by the record."""
    own = reader.pk == verdict.person_id
    try:
        deciding.refuse_unless_second(verdict, reader, taking_back=own and not confirm)
        if verdict.state != VerdictState.PROPOSED:
            raise AlreadyDone(**deciding.already(verdict))
        if form.cleaned_data["digest"] != verdict.digest:
            raise StaleVersion(thing="verdict", seen=form.cleaned_data["digest"], now=verdict.digest)
        if confirm:
            version = verdict.effect_version
            deciding.refuse_unless_decidable(verdict.effect, version, proposed=verdict.pk)
    except RunsError as error:
        return error
    return None


def refused(request: HttpRequest, page: EffectPage, form: ConfirmForm, error: RunsError) -> HttpResponse:
    """The refusal, with the typed reason."""
    return saying.refuse(request, error, kept=form.cleaned_data["reason"], **back(page))


def back(page: EffectPage) -> dict[str, Any]:
    """What a refusal is about, and the way back to it."""
    return {
        "again_url": page.url,
        "again_label": _("Back to the effect"),
        "subject": Link(page.url, page.sentence),
    }


def shown(request: HttpRequest, page: EffectPage, verdict: Verdict) -> HttpResponse:
    """The preview; what stands in its place for whoever cannot answer, or once it was answered."""
    own = page.reader.pk == verdict.person_id
    try:
        if verdict.state != VerdictState.PROPOSED:
            raise AlreadyDone(**deciding.already(verdict))
        deciding.refuse_unless_second(verdict, page.reader, taking_back=own)
    except RunsError as error:
        return saying.refuse(request, error, **back(page))
    return http.preview(request, preview_of(page, verdict, ConfirmForm.fresh(digest=verdict.digest)))


def label(page: EffectPage, verdict: Verdict, *, confirm: bool) -> str:
    """The words of the button that was pressed."""
    if confirm:
        return _("Record: {said}").format(said=saying.said(page.effect, verdict.says))
    if page.reader.pk == verdict.person_id:
        return _("Take it back: the outcome stays unknown")
    return _("Do not record it: the outcome stays unknown")


def preview_of(page: EffectPage, verdict: Verdict, form: ConfirmForm) -> Preview:
    """The first person's decision as the second one answers it; whoever made it can only take it back."""
    own, effect = page.reader.pk == verdict.person_id, page.effect
    noun, step = told.noun(effect), told.step_title(effect.run)
    words = {"noun": noun, "step": step, "dependency": page.dependency}
    will = _("the outcome of the {noun} is settled by two people. The run goes on with: {step}.")
    if own:
        will = _("your decision is withdrawn. The outcome of the {noun} stays unknown.")
    refuse = Choice(REFUSE, label(page, verdict, confirm=False))
    return Preview(
        title=_("Take back a decision") if own else _("Confirm a decision"),
        post_url=f"/verdicts/{verdict.pk}/confirmation/",
        button=refuse.label if own else label(page, verdict, confirm=True),
        choice=REFUSE if own else CONFIRM,
        other=None if own else refuse,
        outlined=own,
        leave_url=page.url,
        form=form,
        will=[will.format(**words)],
        will_not=[_("nothing is sent to {dependency}.").format(**words)],
        irreversible=[] if own else [_("Later evidence against it opens a dispute.")],
        based_on=[
            _("version {n} of this effect, check code {code}").format(
                n=verdict.effect_version, code=f"{verdict.digest[:4]}-{verdict.digest[4:8]}".upper()
            )
        ],
        body="verdict/proposed.html",
        slot=f"/effects/{effect.pk}/?part=slot&seen={effect.version}",
        live=(effect.workspace_id, "effect", effect.pk),
        subject=Link(page.url, page.sentence),
        extra=_extra(page, verdict, own=own),
    )


def _extra(page: EffectPage, verdict: Verdict, *, own: bool) -> dict[str, Any]:
    rests_on = [card for card in page.cards if card.evidence.pk in verdict.evidence]
    names = saying.listed(deciding.who_may_confirm(verdict))
    said = saying.said(page.effect, verdict.says)
    return {"verdict": verdict, "said": said, "cards": rests_on, "own": own, "names": names}


def answered(
    request: HttpRequest, page: EffectPage, verdict: Verdict, form: ConfirmForm, act: Act, *, confirm: bool
) -> HttpResponse:
    """Record the answer and say so."""
    data = form.cleaned_data
    try:
        done = verdicts.confirm(
            verdict.pk,
            actor=page.reader,
            act=act,
            confirm=confirm,
            reason=data["reason"],
            digest=data["digest"],
        )
    except RunsError as error:
        return refused(request, page, form, error)
    return http.result(request, result_of(page, verdict, done, confirm=confirm))


def result_of(page: EffectPage, verdict: Verdict, done: Done, *, confirm: bool) -> Result:
    """ "Recorded at 03:20:11: the notice happened, decided by Oncall A and Approver B. Event #9."."""
    facts = {
        "at": saying.clock(done.at),
        "said": saying.said(page.effect, verdict.says),
        "first": verdict.person.name,
        "n": done.event,
    }
    if done.replayed:
        title = _("Already recorded at {at} by you. Nothing was done twice.")
    elif confirm:
        title = _("Recorded at {at}: {said}, decided by {first} and you. Event #{n}.")
    elif done.facts["taken_back"]:
        title = _("Taken back at {at}. The outcome stays unknown. Event #{n}.")
    else:
        title = _("Not recorded, said at {at}. The outcome stays unknown. Event #{n}.")
    return Result(
        title.format(**facts),
        links=[Link("/inbox/", _("Back to inbox")), Link(page.url, _("Back to the effect"))],
        subject=Link(page.url, page.sentence),
        after="effect/after.html" if confirm else "",
        extra=after_of(page.effect.run, page.effect.pk) if confirm else {},
    )
