"""``/restores/{id}/``: what a restore of the record holds back, and the two people who let sending go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from console import http
from console.forms import ReasonForm
from console.preview import Choice, Link, Preview, Result
from console.screens import place, saying, stepup
from console.screens.pressed import Pressed
from recovery.actions import restore as actions
from recovery.actions.common import Done
from runs import queries
from runs.errors import RunsError
from runs.models import Person, Restore
from runs.record import Act
from runs.restored import RestoreState

ASK, LET, REFUSE = "ask", "let", "refuse"


class RestoreForm(ReasonForm):
    """What was pressed, and why."""

    decision = forms.ChoiceField(choices=[(one, one) for one in (ASK, LET, REFUSE)], widget=Pressed)


@require_http_methods(["GET", "HEAD", "POST"])
def restore(request: HttpRequest, id: UUID) -> HttpResponse:
    """Show what was found and what is left; take the request, or the second person's answer. Heavy: step-up."""
    reader = place.person_of(request)
    row = place.found(queries.visible_restore, reader, id)
    place.enter(request, row.workspace)
    if request.method != "POST":
        return shown(request, row, reader)
    form = RestoreForm(request.POST)
    if not form.is_valid():
        return http.preview(request, preview_of(row, reader, form), status=422)
    decision = form.cleaned_data["decision"]
    act = saying.act_of(form, f"restores.{decision}", id)
    if not saying.done_before(request, act) and (ask := stepup.needed(request, label(decision))) is not None:
        return ask
    try:
        done = carry_out(row, reader, act, decision, form.cleaned_data["reason"])
    except RunsError as error:
        return saying.refuse(request, error, kept=form.cleaned_data["reason"], **back(row))
    return http.result(request, result_of(row, done, decision))


def carry_out(row: Restore, reader: Person, act: Act, decision: str, reason: str) -> Done:
    """What was pressed, by its action."""
    if decision == ASK:
        return actions.ask_release(row.pk, actor=reader, act=act, reason=reason)
    return actions.answer_release(row.pk, actor=reader, act=act, confirm=decision == LET, reason=reason)


def shown(request: HttpRequest, row: Restore, reader: Person) -> HttpResponse:
    """The preview where something can be pressed, else how it stands."""
    if row.state in (RestoreState.SWEPT, RestoreState.ASKED):
        return http.preview(request, preview_of(row, reader, RestoreForm.fresh()))
    if row.state == RestoreState.FROZEN:
        title = _("The record was restored. What had happened is being read; nothing is sent.")
        return http.result(request, Result(title, lines=based_on(row), tone="warn", links=links(row)))
    at = saying.clock(row.released_at)
    by = row.released_by.name if row.released_by else ""
    title = _("Sending goes on since {at}; {who} let it.").format(at=at, who=by)
    return http.result(request, Result(title, lines=[*based_on(row), *left(row)], links=links(row)))


def label(decision: str) -> str:
    """The words of a button."""
    return {ASK: _("Ask to let things be sent again"), LET: _("Let things be sent again"), REFUSE: _("Not yet")}[
        decision
    ]


def preview_of(row: Restore, reader: Person, form: RestoreForm) -> Preview:
    """What was found and what is left, and what pressing leads to."""
    asked = row.state == RestoreState.ASKED
    own = asked and row.asked_by is not None and row.asked_by.owner_id == reader.owner_id
    press = ASK if not asked else REFUSE if own else LET
    will = {
        ASK: _("a second person is asked to let things be sent again."),
        LET: _("runs go on and effects are sent again, each one looked at first where a repeat could do harm."),
        REFUSE: _("nothing is sent until it is asked for again."),
    }[press]
    lines = based_on(row)
    if asked and row.asked_by is not None:
        lines.insert(0, _("{who} asked: {why}").format(who=row.asked_by.name, why=row.ask_reason))
    return Preview(
        title=_("The record was restored"),
        post_url=f"/restores/{row.pk}/",
        button=label(press),
        choice=press,
        other=Choice(REFUSE, label(REFUSE)) if press == LET else None,
        leave_url="/inbox/",
        leave=_("Nothing is sent."),
        form=form,
        will=[will],
        will_not=[_("signatures from before the restore do not count any more."), *left(row)],
        based_on=lines,
        outlined=press == REFUSE,
    )


def based_on(row: Restore) -> list[str]:
    """What is known: how old the backup is, and what was found."""
    found: Mapping[str, Any] = row.found
    effects = ", ".join(f"{n} {state}" for state, n in sorted(found.get("effects", {}).items()))
    lines = [
        _("noticed {at}; the record knows nothing after {since}").format(
            at=saying.clock(row.began_at), since=saying.clock(row.backup_at)
        )
    ]
    if row.swept_at is not None:
        lines += [
            _("{n} effects were found that the record did not know").format(n=found.get("recovered", 0)),
            _("effects that may have been sent: {them}").format(them=effects or _("none")),
            _("effects that were not sent: {n}").format(n=found.get("clear", 0)),
        ]
    return lines


def left(row: Restore) -> list[str]:
    """What the sweep could not find out."""
    said = {
        "not_listed": _("{operation} could not be listed to its end ({error})."),
        "not_looked_at": _("{n} effects could not be looked at; each is looked at before it is sent."),
        "unknown": _("{n} effects are still unknown; each waits for evidence or a person."),
    }
    return [said[one["code"]].format(**one) for one in row.left]


def back(row: Restore) -> dict[str, Any]:
    """The way back from a refusal."""
    return {"again_url": f"/restores/{row.pk}/", "again_label": _("Read it again")}


def links(row: Restore) -> list[Link]:
    """Where to go from here."""
    return [Link(f"/restores/{row.pk}/", _("Read it again")), Link("/inbox/", _("Back to inbox"))]


def result_of(row: Restore, done: Done, decision: str) -> Result:
    """What was recorded."""
    said = {
        ASK: _("Asked at {at}. A second person lets things be sent again. Event #{n}."),
        LET: _("Let at {at}: things are sent again. Event #{n}."),
        REFUSE: _("Not let, said at {at}. Nothing is sent. Event #{n}."),
    }[decision]
    if done.replayed:
        said = _("Already recorded at {at} by you. Nothing was done twice.")
    return Result(said.format(at=saying.clock(done.at), n=done.event), links=links(row))
