"""How an effect was settled and how its run goes on, in one line each."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console import pills
from console.screens.gates import show_time
from console.screens.saying import clock, run_name, said
from console.screens.told import noun, step_title
from recovery.engine import reasons
from runs.models import Effect, Evidence, Run
from runs.states import EFFECT_OPEN, EvidenceKind, RunState

_ON = {
    EvidenceKind.ANSWER: gettext_lazy("the answer of {at}"),
    EvidenceKind.READBACK: gettext_lazy("the readback of {at}"),
    EvidenceKind.CALLBACK: gettext_lazy("the callback of {at}"),
    EvidenceKind.STATEMENT: gettext_lazy("a person's word of {at}"),
}


def settled_line(effect: Effect) -> str:
    """What settled the effect: a person's decision, or one of Recourse's own reasons."""
    reason = effect.reason or {}
    facts = reason.get("facts", {})
    settled = clock(effect.settled_at)
    if reason.get("code") == "decided":
        line = _("Recorded at {at} by {who}: {said}.")
        if facts.get("second"):
            line = _("Recorded at {at} by {who}, confirmed by {second}: {said}.")
        return line.format(at=settled, **{**facts, "said": said(effect, facts["says"])})
    if reason.get("code") == "proved":
        return _("Settled by {dependency}'s own record at {at}. No decision needed.").format(
            dependency=facts["dependency"], at=clock(facts["seen"])
        )
    if reason.get("code") == "rejected":
        return _("Rejected by {who} at {at}. It was not sent.").format(who=facts["by"], at=settled)
    if reason.get("code") not in reasons.REASONS:
        return _("Settled at {at}.").format(at=settled)
    told = reasons.gate({"reason": reason["code"], "facts": facts}, people="", show_time=show_time)
    return _("{line} Settled at {at}.").format(line=told.ends_when, at=settled)


def settled_by(effect: Effect, evidence: dict[Any, Evidence]) -> str:
    """The end of "refund by Oncall A on the readback of 03:13:20", "e-mail by its receipt"."""
    reason = effect.reason or {}
    facts = reason.get("facts", {})
    if reason.get("code") == "decided":
        rests_on = [evidence[id] for id in facts["evidence"] if id in evidence]
        if not rests_on:
            return _("by {who}").format(who=facts["who"])
        machine = [one for one in rests_on if one.kind != EvidenceKind.STATEMENT]
        last = (machine or rests_on)[-1]
        on = str(_ON[EvidenceKind(last.kind)]).format(at=clock(last.received_at))
        return _("by {who} on {evidence}").format(who=facts["who"], evidence=on)
    if reason.get("code") == "answered":
        return _("by its receipt")
    if reason.get("code") == "proved":
        return _("by {dependency}'s own record of {at}").format(dependency=facts["dependency"], at=clock(facts["seen"]))
    return pills.PILLS["effect"][effect.state].text(dependency=facts.get("dependency", "")).lower()


def run_line(run: Run) -> str:
    """How the run stands after a decision: it goes on, it waits, or how it ended. Two queries."""
    effects = list(Effect.objects.filter(run=run).order_by("ordinal"))
    name = run_name(run.type, run.pk)
    if not run.ended:
        waits = run.state == RunState.WAITING and any(one.state in EFFECT_OPEN for one in effects)
        if waits or run.state not in (RunState.RUNNING, RunState.WAITING, RunState.ACCEPTED):
            look = pills.pill_for("run", run.state, run.waiting_on).text()
            return _("Run {run}: {state}.").format(run=name, state=look)
        return _("Run {run} goes on: {step}.").format(run=name, step=step_title(run))
    rows = {str(one.pk): one for one in Evidence.objects.filter(run=run).defer("raw").order_by("id")}
    settled = [one for one in effects if one.settled]
    line = ngettext(
        "{state} at {at}. {n} of {all} effect settled: {list}.",
        "{state} at {at}. {n} of {all} effects settled: {list}.",
        len(effects),
    )
    return line.format(
        state=pills.pill_for("run", run.state).text(),
        at=clock(run.ended_at),
        n=len(settled),
        all=len(effects),
        list=_(", ").join(f"{noun(one)} {settled_by(one, rows)}" for one in settled),
    )
