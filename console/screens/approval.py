"""``/approvals/{id}/``: sign exactly this and nothing else. GET never signs; a mail only links to here."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from console import words
from console.forms import DigestForm
from console.preview import Choice, Preview
from console.screens import changes, saying, settling, told
from console.screens.approval_page import ApprovalPage, approval_page
from console.screens.pressed import Pressed
from console.screens.revisions import remember
from runs.models import Evidence, Run
from runs.states import ApprovalState, EffectState, EvidenceKind

SIGN, REJECT = "sign", "reject"
PARTS: Final = frozenset({"head", "gate", "signatures", "after"})
KEPT: Final = "reasons_kept"
"""Key of the session: reasons typed on a request that was replaced meanwhile, by effect."""


class DecisionForm(DigestForm):
    """Sign or reject the request whose digest was shown (R3); both say why."""

    decision = forms.ChoiceField(choices=[(SIGN, SIGN), (REJECT, REJECT)], widget=Pressed)


@require_safe
def approval(request: HttpRequest, id: UUID) -> HttpResponse:
    """The page, or one of the parts that fetch themselves again."""
    page = approval_page(request, id)
    part = request.GET.get("part", "")
    if part == "slot":
        return changes.approval_slot(request, page.detail, seen=request.GET.get("seen", ""))
    if part in PARTS:
        return render(request, f"approval/{part}.html", {**context_of(page), "part": part})
    kept = request.session.get(KEPT, {}).get(str(page.approval.effect_id), "")
    form = DecisionForm.fresh(digest=page.approval.digest, reason=kept)
    answer = render(request, "approval/detail.html", whole(page, form))
    remember(request, page.approval)
    return answer


def context_of(page: ApprovalPage) -> dict[str, Any]:
    """What every part of the page reads."""
    return {
        "page": page,
        "approval": page.approval,
        "effect": page.effect,
        "run": page.run,
        "ended": ended_of(page),
        "lines": lines_of(page),
    }


def whole(page: ApprovalPage, form: DecisionForm) -> dict[str, Any]:
    """What the page reads: the decision, or why there is none for this reader."""
    error = page.why_not if page.open else None
    return {
        **context_of(page),
        "title": page.title,
        "preview": preview_of(page, form) if page.open and error is None else None,
        "why_not": why_not(page) if error is not None else "",
        "slot": slot_of(page),
    }


def why_not(page: ApprovalPage) -> str:
    """Why this reader cannot sign, with the names of who can; empty once they signed."""
    error = page.why_not
    if error is None or page.mine is not None:
        return ""
    return words.refusal(error.code, told.readable(saying.filled(error).facts, me=page.reader))


def slot_of(page: ApprovalPage) -> str:
    """The address of the part that says when this is no longer current."""
    return f"{page.url}?part=slot&seen={page.approval.state}"


def preview_of(page: ApprovalPage, form: DecisionForm) -> Preview:
    """The decision region: never fetched again, its button and digest stay what was read."""
    approval = page.approval
    left = approval.needed - page.signed - 1
    line = ngettext("{n} more signature is needed after yours.", "{n} more signatures are needed after yours.", left)
    will = line.format(n=left)
    if left <= 0:
        line = _("yours is the last signature: it is sent at once, within {within}.")
        will = line.format(within=page.within)
    return Preview(
        title=_("Decide"),
        post_url=f"{page.url}decision/",
        button=label_of(page, SIGN),
        choice=SIGN,
        other=Choice(REJECT, label_of(page, REJECT)),
        leave_url="/inbox/",
        form=form,
        will=[will],
        will_not=[_("nothing but these bytes is sent on these signatures.")],
        irreversible=[line] if (line := saying.irreversible_of(page.effect)) else [],
        based_on=[page.basis],
    )


def label_of(page: ApprovalPage, decision: str) -> str:
    """ "Sign: send USD 1,205.00", "Reject: do not send it"."""
    return _("Sign: {send}").format(send=page.send) if decision == SIGN else _("Reject: do not send it")


def ended_of(page: ApprovalPage) -> str:
    """How the request ended, for its heading; empty while it is open."""
    one = page.approval
    clock = saying.clock
    facts = (one.reason or {}).get("facts", {})
    match one.state:
        case ApprovalState.GRANTED:
            return _("Signed, not used yet. It must be sent by {at}.").format(at=clock(one.execute_by))
        case ApprovalState.CONSUMED:
            return _("Used {at}").format(at=clock(one.consumed_at))
        case ApprovalState.EXPIRED:
            return _("Expired {at}, not sent.").format(at=clock(facts.get("at") or one.ended_at))
        case ApprovalState.SUPERSEDED:
            return _("Replaced by revision {n}").format(n=page.detail.newest.revision)
        case ApprovalState.REVOKED:
            return _("Withdrawn {at}").format(at=clock(one.ended_at))
        case ApprovalState.REJECTED:
            return _("Rejected by {who} {at}. It will not be sent.").format(
                who=facts.get("by", ""), at=clock(one.ended_at)
            )
        case ApprovalState.UNSATISFIABLE:
            line = _("Nobody can sign: it needs {needed} of {group}, and {n} may sign.")
            return line.format(needed=one.needed, group=one.group.slug, n=page.rule.how_many())
    return ""


def lines_of(page: ApprovalPage) -> list[str]:
    """What came of a used request: when it was sent, how it ended."""
    if page.approval.state != ApprovalState.CONSUMED:
        return []
    effect = page.effect
    lines = [
        _("Sent {at}, try {n}").format(at=saying.clock(one.committed_at), n=one.n)
        for one in effect.attempt_set.order_by("n")
    ]
    if effect.state == EffectState.SUCCEEDED:
        lines.append(_happened(page))
    elif effect.settled:
        lines.append(settling.settled_line(effect))
    return [*lines, _("Used. This request cannot be used again.")]


def _happened(page: ApprovalPage) -> str:
    effect, result = page.effect, page.effect.result or {}
    seen = Evidence.objects.filter(effect=effect, kind=EvidenceKind.READBACK, claim="happened").last()
    facts = {"at": saying.clock(effect.settled_at), "id": result.get("id", "")}
    line = _("Happened at {at}: {id}") if facts["id"] else _("Happened at {at}")
    if seen is not None:
        line = _("{line}, read back {seen}").format(line=line, seen=saying.clock(seen.received_at))
    return line.format(**facts)


def run_goes_on(run: Run) -> str:
    """ "The run goes on to step Tell the customer."."""
    return _("The run goes on to step {step}.").format(step=told.step_title(run))
