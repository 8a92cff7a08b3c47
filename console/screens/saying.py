"""Words around one effect or request that several of its screens need, and its refusals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console import when
from console.screens import told
from console.screens.place import person_of
from recovery.actions.common import Subject, note_refusal
from recovery.contract import EffectContract, registry
from recovery.contract.errors import ContractError
from runs.errors import NotFound, RunsError
from runs.models import Action, Effect
from runs.record import Act

OWN: Final[dict[str, str | Promise]] = {
    "started": gettext_lazy("you started this run"),
    "asked": gettext_lazy("you asked for this"),
    "edited": gettext_lazy("you edited this"),
    "same_owner": gettext_lazy("{of} had a hand in it, and that account is yours too"),
}
"""Why somebody does not sign (R4)."""

SAID: Final[dict[str, str | Promise]] = {
    "happened": gettext_lazy("the {noun} happened"),
    "did_not_happen": gettext_lazy("the {noun} did not happen"),
    "in_part": gettext_lazy("the {noun} happened in part"),
}
"""A verdict as buttons, results and lists say it."""


def said(effect: Effect, says: str) -> str:
    """ "the refund happened"."""
    return str(SAID[says]).format(noun=told.noun(effect))


def clock(at: datetime | str | None) -> str:
    """An instant in a sentence: the clock with seconds, the date if it is another day; empty for none."""
    if not at:
        return ""
    moment = at if isinstance(at, datetime) else datetime.fromisoformat(at)
    return when.stamp(moment, timezone.now())


def deadline(at: datetime) -> str:
    """A time to sign or send by: without seconds."""
    return when.stamp(at, timezone.now(), seconds=False)


def run_name(type: str, id: object) -> str:
    """ "orders.cancel 8f3c-21ab"."""
    return f"{type} {told.short(id)}"


def listed(names: Sequence[str], more: int = 0) -> str:
    """ "Approver C", "Approver C and Approver F", "Approver C, Approver F and 2 more", "Nobody else"."""
    shown = list(names)
    if more > 0:
        shown.append(ngettext("{n} more", "{n} more", more).format(n=more))
    if not shown:
        return _("Nobody else")
    if len(shown) == 1:
        return shown[0]
    return _("{first} and {last}").format(first=", ".join(shown[:-1]), last=shown[-1])


def contract_of(effect: Effect) -> EffectContract | None:
    """The contract that the effect was made under; None when this code does not have it."""
    try:
        return registry.effect_contract(effect.operation, effect.contract_version)
    except ContractError:
        return None


def sentence_of(effect: Effect) -> str:
    """The describing sentence in the reader's language, else the English one that the record keeps."""
    contract = contract_of(effect)
    try:
        return contract.load(effect.params).sentence() if contract else effect.describe
    except (ContractError, LookupError):
        return effect.describe


def irreversible_of(effect: Effect) -> str:
    """Why it cannot be reversed, in the reader's language; empty where it can be."""
    contract = contract_of(effect)
    return str(contract.irreversible) if contract and effect.irreversible else effect.irreversible


# What every form of an action does


def act_of(form: Any, route: str, subject: UUID) -> Act:
    """The act of a valid form: its digest covers the subject, so that an id is never used for another one."""
    body = {"subject": str(subject), "body": form.body_digest()}
    return Act.over(form.cleaned_data["action"], route, body)


def done_before(request: HttpRequest, act: Act) -> bool:
    """Whether this person did exactly this before: the door gives the first result, without a step-up."""
    rows = Action.objects.filter(id=act.id, actor=person_of(request).pk, route=act.route, digest=act.digest)
    return rows.filter(workspace=request.workspace).exists()  # type: ignore[attr-defined]


def keep_refusal(request: HttpRequest, subject: Subject, act: Act, error: RunsError, reason: str) -> None:
    """Write down what was refused before a door of the engine was reached (a door keeps its own)."""
    note_refusal(subject, error, actor=person_of(request), act=act, reason=reason)


def refuse(request: HttpRequest, error: RunsError, **more: Any) -> HttpResponse:
    """The answer to a refused action, filled with names and clocks; 404 for what is not theirs to see."""
    if isinstance(error, NotFound):
        raise Http404 from error
    return told.refusal(request, filled(error), **more)


def filled(error: RunsError) -> RunsError:
    """The refusal with the facts that its sentence names and the engine keeps under other names."""
    facts = error.facts
    if error.code == "own_request":
        facts["what"] = str(OWN[facts["why"]]).format(of=facts.get("of", ""))
    if error.code == "superseded" and facts.get("signal"):
        run = run_name(facts["run_type"], facts["run"])
        facts["who"] = _("run {run} on {signal}").format(run=run, signal=facts["signal"])
    if error.code == "not_in_group":
        facts |= {"act": _("sign"), "group": facts["group_name"]}
    if error.code == "too_late":
        facts.setdefault("act", _("withdraw"))
    if error.code in ("own_request", "not_in_group", "same_person", "not_allowed"):
        facts["names"] = listed(facts.get("names", ()), facts.pop("more", 0))
    return error
