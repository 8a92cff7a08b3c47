"""``/runs/{id}/cancellation/``: stop a run; what was sent is settled first, what happened stays (medium)."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from console import http, when
from console.forms import ReasonForm
from console.preview import Link, Preview, Result
from console.screens import told
from console.screens.place import enter_run, person_of
from console.screens.run_view import unsent, unsettled, waits_on_timer
from console.screens.saying import act_of
from recovery.actions import runs as actions
from recovery.actions.common import Done
from runs.errors import RunEnded, RunsError
from runs.models import Effect, Run
from runs.states import EffectState, RunState


@require_http_methods(["GET", "HEAD", "POST"])
def cancellation(request: HttpRequest, id: UUID) -> HttpResponse:
    """The preview; POST asks for it. Asking twice is asking once."""
    run, may = enter_run(request, id)
    effects = list(Effect.objects.filter(run=run, workspace=run.workspace_id).order_by("ordinal"))
    if request.method != "POST":
        return _shown(request, run, effects, may)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return http.preview(request, _preview(run, effects, form), status=422)
    act = act_of(form, "runs.cancel", id)
    try:
        done = actions.cancel(id, actor=person_of(request), act=act, reason=form.cleaned_data["reason"])
    except RunsError as error:
        return told.refusal(request, error, again_url=f"/runs/{id}/", again_label=_("Open the run"))
    return http.result(request, _asked(request, run, effects, done))


def _shown(request: HttpRequest, run: Run, effects: list[Effect], may: frozenset[str]) -> HttpResponse:
    """What a GET shows: the preview, or why there is nothing to do."""
    back = {"again_url": f"/runs/{run.pk}/", "again_label": _("Open the run")}
    if "cancel" not in may:
        return told.refusal(request, told.not_allowed(run.workspace_id, "cancel"), **back)
    if run.ended:
        at = run.ended_at.isoformat() if run.ended_at else None
        return told.refusal(request, RunEnded(at=at), **back)
    if run.state == RunState.CANCELLING and run.cancel_asked_at is not None and run.cancel_by is not None:
        said = _already(request, run.cancel_asked_at.isoformat(), run.cancel_by.name)
        return http.result(request, Result(said, _open(effects), tone="quiet", subject=_subject(run)))
    return http.preview(request, _preview(run, effects, ReasonForm.fresh()))


def _subject(run: Run) -> Link:
    return Link(f"/runs/{run.pk}/", run.title)


def _preview(run: Run, effects: list[Effect], form: ReasonForm) -> Preview:
    sent = unsettled(effects)
    button = _("Cancel the run")
    if sent:
        button = _("Cancel the run; settle {what} first").format(what=told.counted(sent))
    name = f"{run.type} {told.short(run.pk)}"
    as_of = when.stamp(timezone.now(), timezone.now())
    return Preview(
        title=_("Cancel run {name}").format(name=name),
        post_url=f"/runs/{run.pk}/cancellation/",
        button=button,
        leave_url=f"/runs/{run.pk}/",
        leave=_("Leave it running"),
        form=form,
        will=list(_will(run, effects)),
        will_not=list(_will_not(effects)),
        irreversible=[_("A cancelled run stays cancelled.")],
        based_on=[_("Run version {n}, as of {at}").format(n=run.version, at=as_of)],
        slot=f"/runs/{run.pk}/changed/?version={run.version}",
        live=(run.workspace_id, "run", run.pk),
        subject=_subject(run),
    )


def _will(run: Run, effects: list[Effect]) -> Iterator[str]:
    if run.state == RunState.QUARANTINED:
        yield _("The run stays stopped: no step starts any more.")
    elif waits_on_timer(run):
        yield _("No step starts any more; 1 timer stops now.")
    elif run.wait_event:
        yield _("No step starts any more; the event {event} is not waited for.").format(event=run.wait_event)
    else:
        yield _("No step starts any more.")
    dropped, sent = unsent(effects), unsettled(effects)
    if dropped:
        yield _("Not sent and dropped: {what}.").format(what=told.together(dropped))
        if any(e.state == EffectState.AWAITING_APPROVAL for e in dropped):
            yield _("The request for signatures ends; signatures given count no more.")
    if sent:
        yield _("Then Recourse finds out how {what} ended. It only checks; it sends nothing again.").format(
            what=told.together(sent)
        )


def _will_not(effects: list[Effect]) -> Iterator[str]:
    sent = unsettled(effects)
    for effect in sent:
        yield _("The {noun} already sent cannot be stopped.").format(noun=told.noun(effect))
    happened = [e for e in effects if e.state in (EffectState.SUCCEEDED, EffectState.PARTIAL)]
    if happened:
        yield _("What happened stays: {what}.").format(what=told.together(happened))
    if not sent and not happened:
        yield _("Nothing is sent.")


def _asked(request: HttpRequest, run: Run, effects: list[Effect], done: Done) -> Result:
    """Asked for, not done: what is still open is said; a request made before is said to be that."""
    if done.replayed or done.facts.get("asked_at"):
        # The same press again, or another one after somebody else's.
        first = str(done.facts.get("asked_at") or done.at.isoformat())
        said = _already(request, first, str(done.facts.get("by") or person_of(request).name))
        return Result(said, _open(effects), tone="quiet", subject=_subject(run))
    sent = unsettled(effects)
    left = _("{what} to settle").format(what=told.counted(sent)) if sent else _("a worker ends it")
    said = _("Asked at {at}. Not cancelled yet: {left}. Event #{n}.")
    at = told.moment(done.at.isoformat())
    return Result(said.format(at=at, left=left, n=done.event), subject=_subject(run))


def _already(request: HttpRequest, at: str, who: str) -> str:
    by = _("you") if who == person_of(request).name else who
    return _("Already asked at {at} by {who}. Nothing was done twice.").format(at=told.moment(at), who=by)


def _open(effects: list[Effect]) -> list[str]:
    sent = unsettled(effects)
    return [_("Not cancelled yet: {what} to settle.").format(what=told.counted(sent))] if sent else []
