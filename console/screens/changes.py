"""What the reserved slot above a decision says when the thing moved while somebody was reading."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.diff import Change, Diff
from console.pills import STRENGTHS
from console.screens import effect_facts, saying
from console.screens.effect_page import EffectPage
from recovery.actions.common import changed_since
from runs.queries import ApprovalDetail
from runs.states import ApprovalState, EventKind

_CAUSES: Final[dict[str, str | Promise]] = {
    EventKind.EFFECT_CHECKED: gettext_lazy("{dependency} answered a check"),
    EventKind.EVIDENCE_RECEIVED: gettext_lazy("callback from {dependency}"),
    EventKind.EFFECT_SETTLED: gettext_lazy("it was settled"),
    EventKind.EFFECT_DISPUTED: gettext_lazy("{dependency} contradicts it"),
    EventKind.EFFECT_SENT: gettext_lazy("sent again with the same key"),
    EventKind.VERDICT_PROPOSED: gettext_lazy("{who} decided it, a second person is asked"),
    EventKind.VERDICT_RECORDED: gettext_lazy("{who} decided it"),
    EventKind.VERDICT_REFUSED: gettext_lazy("{who} did not confirm the decision"),
}
"""What changed an effect, by the kind of its last event."""


def effect_slot(request: HttpRequest, page: EffectPage) -> HttpResponse:
    """Empty while the effect is at version ``seen``; else when and by what it changed.

    With ``stands`` also while what can be done about it is the same: the page around shows the evidence anew.
    """
    effect, seen = page.effect, request.GET.get("seen", "")
    same = request.GET.get("stands", "") == page.stands
    if not seen.isdecimal() or int(seen) == effect.version or same:
        return HttpResponse("")
    facts = changed_since(effect, int(seen))
    if effect.settled:
        decided = (effect.reason or {}).get("facts", {})
        if page.reader.name in (decided.get("who"), decided.get("second")):
            return HttpResponse("")  # it is the reader's own decision
        facts |= {"kind": EventKind.EFFECT_SETTLED, "at": effect.settled_at}
    cause = str(_CAUSES.get(facts.get("kind", ""), ""))
    what = cause.format(dependency=page.dependency, who=facts.get("who") or _("Recourse"))
    context = {"at": saying.clock(facts.get("at")), "what": what, "url": f"/effects/{effect.pk}/"}
    return render(request, "partials/changed.html", context)


def approval_slot(request: HttpRequest, detail: ApprovalDetail, *, seen: str) -> HttpResponse:
    """Empty while the request can be signed as it is shown; else that it was replaced, or how it ended.

    Whoever has answered has no form any more: only a newer revision concerns them.
    """
    approval, newest = detail.approval, detail.newest
    if newest.pk != approval.pk:
        context = {
            "at": saying.clock(newest.asked_at),
            "url": f"/approvals/{newest.pk}/?since={approval.revision}",
        }
        return render(request, "partials/changed.html", context)
    answered = any(one.person_id == request.user.pk for one in detail.signatures)
    if approval.state == seen or answered:
        return HttpResponse("")
    if approval.state == ApprovalState.EXPIRED:
        sentence = _("Expired at {at}. Signing is no longer possible.").format(at=saying.deadline(approval.approve_by))
        return render(request, "approval/ended.html#slot", {"sentence": sentence})
    at = approval.ended_at or approval.consumed_at or approval.granted_at
    context = {"at": saying.clock(at), "url": f"/approvals/{approval.pk}/"}
    return render(request, "partials/changed.html", context)


def new_evidence(page: EffectPage, known: int) -> Diff:
    """The evidence that came after the first ``known`` pieces, as what a refused decision did not see."""
    rows = page.detail.evidence
    came = [
        Change(
            path=effect_facts.label(one),
            kind="added",
            before="",
            after=str(STRENGTHS[one.strength].words),
            note=effect_facts.found(page.effect, one) if one.kind == "readback" and one.facts else "",
        )
        for one in rows[known:]
    ]
    return Diff(came, min(known, len(rows)))
