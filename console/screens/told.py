"""Facts of the record as a person reads them: times in their zone, who can, what an act is called."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console import http, money, when
from recovery.contract import registry
from recovery.contract.errors import ContractError
from runs import access, queries
from runs.errors import NotAllowed, RunsError
from runs.models import Effect, Group, Person, Run

ACTS: Final[dict[str, str | Promise]] = {
    "claim": gettext_lazy("claim it"),
    "check": gettext_lazy("have it looked at again"),
    "cancel": gettext_lazy("cancel the run"),
    "decide": gettext_lazy("decide it"),
    "confirm": gettext_lazy("confirm it"),
    "sign": gettext_lazy("sign it"),
    "start": gettext_lazy("ask for it again"),
}
"""Each permission as the verb of "You can see this but not {act}"."""

ROLES: Final[dict[str, str | Promise]] = {
    "on-call": gettext_lazy("On-call"),
    "approver": gettext_lazy("Approvers"),
    "auditor": gettext_lazy("Auditors"),
    "author": gettext_lazy("Authors"),
    "administrator": gettext_lazy("Administrators"),
}

THINGS: Final[dict[str, str | Promise]] = {
    "run": gettext_lazy("The run"),
    "effect": gettext_lazy("The effect"),
    "approval": gettext_lazy("The request"),
    "verdict": gettext_lazy("The decision"),
    "review": gettext_lazy("The item"),
    "drain": gettext_lazy("The drain"),
    "plan": gettext_lazy("The plan"),
}

DONE: Final[dict[str, str | Promise]] = {
    "recorded": gettext_lazy("recorded"),
    "refused": gettext_lazy("recorded as not confirmed"),
    "asked": gettext_lazy("asked"),
    "closed": gettext_lazy("closed"),
    "started": gettext_lazy("started"),
    "held": gettext_lazy("held"),
    "released": gettext_lazy("released"),
    "ended": gettext_lazy("ended"),
}
"""The participle of "Already {what} at {at} by {who}"."""

NAMED: Final = 3
"""Names that a sentence gives; how many more there are is a number."""


def names(people: Iterable[tuple[UUID, str]], me: UUID, group: str = "") -> str:
    """People as text: "you, Approver B, Approver C and 2 more in payments-oncall"; you come first."""
    found = sorted(people, key=lambda one: (one[0] != me, one[1]))
    if not found:
        return _("nobody at the moment")
    said = ", ".join(_("you") if id == me else name for id, name in found[:NAMED])
    left = len(found) - NAMED
    if left > 0:
        more = ngettext("{said} and {n} more", "{said} and {n} more", left).format(said=said, n=left)
        said = more
    return _("{who} in {group}").format(who=said, group=group) if group else said


def who_can(workspace: UUID, permission: str, me: Person, group: Group | None = None) -> str:
    """Who holds ``permission`` now, as text. One query."""
    rows = access.people_who_can(workspace, permission, group).values_list("pk", "name")[:50]
    return names(rows, me.pk, group.slug if group else "")


def moment(value: Any) -> Any:
    """An ISO 8601 text as the reader's clock; anything else as it is."""
    if not isinstance(value, str) or len(value) < 19:
        return value
    try:
        at = queries.moment(value)
    except ValueError:
        return value
    return when.stamp(at, timezone.now())


def readable(facts: Mapping[str, Any], *, me: Person | None = None) -> dict[str, Any]:
    """Facts of a refusal as its sentence needs them: times, who, names, act, group, thing."""
    said = {name: moment(value) for name, value in facts.items()}
    if "permission" in facts:
        said["act"] = str(ACTS.get(facts["permission"], facts["permission"]))
        said["group"] = ", ".join(str(ROLES.get(role, role)) for role in facts.get("roles", ()))
    if isinstance(facts.get("names"), list):
        more = facts.get("more")
        said["names"] = ", ".join(facts["names"]) + (f", +{more}" if more else "") or _("nobody")
    if "at" in facts:
        by = facts.get("who") or _("Recourse")
        said["who"] = _("you") if me is not None and by == me.name else by
    for name, table in (("thing", THINGS), ("what", DONE)):
        if facts.get(name) in table:
            said[name] = str(table[facts[name]])
    return said


def refusal(request: HttpRequest, error: RunsError, **kwargs: Any) -> HttpResponse:
    """A refusal in place, its times and names as the reader sees them (see :func:`console.http.refusal`)."""
    error.facts = readable(error.facts, me=request.user if request.user.is_authenticated else None)
    return http.refusal(request, error, **kwargs)


def say(answer: HttpResponse, sentence: str) -> HttpResponse:
    """Have a part announced to screen readers: at most one sentence in ten seconds (static/js/live.js)."""
    answer["HX-Trigger"] = json.dumps({"recourse:say": {"sentence": sentence}})
    return answer


def not_allowed(workspace: UUID, permission: str) -> NotAllowed:
    """The refusal of a person who sees but may not, with who can. One query."""
    return NotAllowed(
        permission=permission,
        roles=access.roles_with(permission),
        names=access.names_who_can(workspace, permission),
    )


def noun(effect: Effect) -> str:
    """What one effect is: "refund" for payments.refund, "e-mail" where its stake is counted."""
    stake = effect.stake or {}
    return str(stake["noun"]) if stake.get("kind") == "count" else effect.operation.rpartition(".")[2]


def one(effect: Effect) -> str:
    """One effect with what is at stake: "1 refund of USD 60.00", "1 e-mail"."""
    stake = effect.stake or {}
    if stake.get("kind") == "money":
        worth = money.amount(int(stake["amount"]), str(stake["currency"]))
        return _("1 {noun} of {worth}").format(noun=noun(effect), worth=worth)
    return _("1 {noun}").format(noun=noun(effect))


def together(effects: Iterable[Effect]) -> str:
    """Several effects: "1 refund of USD 60.00 and 1 e-mail", from four on "4 effects"."""
    said = [one(effect) for effect in effects]
    if len(said) > NAMED:
        return ngettext("{n} effect", "{n} effects", len(said)).format(n=len(said))
    return _(" and ").join(said)


def counted(effects: Iterable[Effect]) -> str:
    """The same without amounts: "1 refund", "1 refund and 1 e-mail"; several alike are "2 effects"."""
    found = list(effects)
    nouns = [noun(effect) for effect in found]
    if len(found) > NAMED or len(set(nouns)) < len(nouns):
        return ngettext("{n} effect", "{n} effects", len(found)).format(n=len(found))
    return _(" and ").join(_("1 {noun}").format(noun=word) for word in nouns)


def short(id: object) -> str:
    """The last eight digits of an id, or of its text, in two groups: "8f3c-21ab"."""
    digits = str(id).replace("-", "")[-8:]
    return f"{digits[:4]}-{digits[4:]}"


def step_title(run: Run, step: str = "") -> str:
    """The title of a step of the run's type (its next one), else its name."""
    step = step or run.step
    try:
        info = registry.run_type(run.type, run.type_version).steps.get(step)
    except ContractError:
        return step  # a version that this installation no longer has
    return str(info.title) if info is not None else step
