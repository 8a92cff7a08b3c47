"""What the page of a run says, from its row and what belongs to it. No query but those that are named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console import when
from console.pills import PILLS
from console.screens import gates, told
from console.screens.gates import Gate
from recovery.contract import registry
from recovery.contract.errors import ContractError
from runs.models import Effect, Evidence, Person, Run, Verdict
from runs.queries import RunDetail
from runs.states import (
    EFFECT_OPEN,
    EFFECT_SETTLED,
    EffectState,
    EvidenceKind,
    ReviewKind,
    RunState,
    VerdictState,
    WaitingOn,
)

MOST_BEHIND: Final = 5
"""Waits behind the most urgent one that are named; the others are counted."""

_KINDS: Final = {
    EvidenceKind.READBACK: gettext_lazy("readback"),
    EvidenceKind.ANSWER: gettext_lazy("answer"),
    EvidenceKind.CALLBACK: gettext_lazy("callback"),
}


@dataclass
class RunView:
    """A run as ``me`` sees it, who ``may`` do these things; ``now`` is the page's one moment."""

    detail: RunDetail
    me: Person
    may: frozenset[str]
    now: datetime = field(default_factory=timezone.now)

    @property
    def run(self) -> Run:
        return self.detail.run

    @cached_property
    def effects(self) -> dict[str, Effect]:
        """Its own effects and those of other runs that it waits on, by id."""
        met = [link.effect for link in self.detail.links]
        return {str(effect.pk): effect for effect in [*self.detail.effects, *met]}

    @cached_property
    def gates(self) -> list[Gate]:
        """What it waits for, most urgent first. At most three queries, whatever it holds."""
        events = self.detail.events.items
        return gates.of_run(self.run, self.effects.values(), self.me, events[-1].at if events else None)

    @property
    def gate(self) -> Gate | None:
        return self.gates[0] if self.gates else None

    @property
    def behind(self) -> list[Gate]:
        """The other waits, as far as they are named."""
        return self.gates[1 : 1 + MOST_BEHIND]

    @property
    def more_behind(self) -> int:
        return max(len(self.gates) - 1 - MOST_BEHIND, 0)

    @property
    def pill(self) -> dict[str, Any]:
        """Facts of the run's pill: how many signatures, which dependency."""
        effect = self.gate.effect if self.gate else None
        if effect is None:
            return {"dependency": "", "signatures": ""}
        approval = max(effect.approvals.all(), key=lambda a: a.revision, default=None)
        if effect.state != EffectState.AWAITING_APPROVAL or approval is None:
            return {"dependency": effect.dependency.name, "signatures": ""}
        signed = sum(s.state == "signed" for s in approval.signatures.all())
        return {"dependency": effect.dependency.name, "signatures": max(approval.needed - signed, 1)}

    @property
    def next_step(self) -> str:
        """ "Next legal step: ...", what comes once the wait is over; empty where nothing does."""
        run, gate = self.run, self.gate
        if gate is None or not run.step or run.state in (RunState.QUARANTINED, RunState.CANCELLING):
            return ""
        step = told.step_title(run)
        if gate.effect is None:
            return _("Next legal step: {step}.").format(step=step)
        n = len(self.gates)
        if n > 1:
            what = ngettext("{n} effect is settled", "{n} effects are settled", n).format(n=n)
            return _("Next legal step: {step}, once {what}.").format(step=step, what=what)
        noun = told.noun(gate.effect)
        return _("Next legal step: {step}, once the {noun} is settled.").format(step=step, noun=noun)

    @property
    def to_do(self) -> list[tuple[str, str]]:
        """Links to what a person does about the most urgent waits: address and words."""
        found = []
        for gate in self.gates[: 1 + MOST_BEHIND]:
            if gate.effect is not None and gate.turn == "person":
                found.append(self._link(gate.effect))
        return found

    def _link(self, effect: Effect) -> tuple[str, str]:
        noun = told.noun(effect)
        approval = max(effect.approvals.all(), key=lambda a: a.revision, default=None)
        if effect.state == EffectState.AWAITING_APPROVAL and approval is not None:
            return f"/approvals/{approval.pk}/", _("See the {noun} to sign").format(noun=noun)
        if effect.state == EffectState.DISPUTED:
            return f"/effects/{effect.pk}/", _("Settle the disputed {noun}").format(noun=noun)
        return f"/effects/{effect.pk}/", _("Settle the unknown {noun}").format(noun=noun)

    @property
    def may_not(self) -> str:
        """In place of the controls that are absent: who can. One query, for a reader who may not cancel."""
        if "cancel" in self.may or self.run.ended:
            return ""
        who = told.who_can(self.run.workspace_id, "cancel", self.me)
        return _("You can see this but not cancel it. On-call can: {who}.").format(who=who)

    @property
    def reviews(self) -> list[Any]:
        """Open items of the inbox about the run itself; those of an effect stand on its own page."""
        return [r for r in self.detail.reviews if r.kind in (ReviewKind.QUARANTINED, ReviewKind.RESUMPTION)]

    @property
    def worker(self) -> str:
        if self.run.lease_owner is not None:
            return told.short(self.run.lease_owner)
        return _("none (waiting)") if not self.run.ended else _("none (ended)")

    @property
    def after_the_end(self) -> list[Effect]:
        """Effects about which evidence came after the end that contradicts what was known (invariant 5)."""
        if not self.run.ended:
            return []
        return [effect for effect in self.detail.effects if effect.state == EffectState.DISPUTED]

    @property
    def end(self) -> str:
        """How it ended and on what that rests (invariant 7); empty while it is not over."""
        run, how = self.run, self.run.ended_how or {}
        if run.ended_at is None:
            return ""
        at = when.stamp(run.ended_at, self.now)
        head = _("{state} at {at}.").format(state=PILLS["run"][run.state].text(), at=at)
        return " ".join(part for part in (head, self._reason(how), *self._ends(how)) if part)

    def _reason(self, how: Mapping[str, Any]) -> str:
        """The author's sentence for the end, where there is one."""
        try:
            sentence = registry.run_type(self.run.type, self.run.type_version).reasons.get(str(how.get("code")))
            return str(sentence).format(**how.get("facts", {})) if sentence else ""
        except (ContractError, KeyError):
            return str(how.get("code", ""))  # a version that this installation no longer has

    def _ends(self, how: Mapping[str, Any]) -> list[str]:
        if self.run.state == RunState.CANCELLED:
            left = [self.effects[one["effect"]] for one in how.get("left", []) if one["effect"] in self.effects]
            if not left:
                return [_("Nothing is left over.")]
            return [_("Stays: {what}.").format(what=told.together(left))]
        effects = self.detail.effects
        if not effects or self.detail.more_effects:
            return []
        settled = [e for e in effects if e.state in EFFECT_SETTLED]
        said = ", ".join(f"{told.noun(e)} {settled_by(e)}" for e in settled)
        head = ngettext("{n} of {all} effect settled", "{n} of {all} effects settled", len(effects))
        head = head.format(n=len(settled), all=len(effects))
        return [f"{head}: {said}." if said else f"{head}."]


def settled_by(effect: Effect) -> str:
    """On what a settled effect rests: "by its receipt", "by Oncall A on the readback of 03:13:20"."""
    verdict = next((v for v in reversed(effect.verdicts.all()) if v.state == VerdictState.RECORDED), None)
    if verdict is not None and (effect.reason or {}).get("code") == "decided":
        return _by_person(effect, verdict)
    code = (effect.reason or {}).get("code")
    if effect.state == EffectState.SUCCEEDED and code == "answered":
        return _("by its receipt")
    if effect.state == EffectState.SUCCEEDED:
        return _("by the own record of {dependency}").format(dependency=effect.dependency.name)
    said = {
        EffectState.REJECTED: _("refused by {dependency}"),
        EffectState.DECLINED: _("not signed"),
        EffectState.NOT_APPLIED: _("did not happen"),
        EffectState.CANCELLED: _("cancelled before sending"),
        EffectState.EXPIRED: _("expired unsent"),
        EffectState.COMPENSATED: _("mended since"),
    }
    return said[EffectState(effect.state)].format(dependency=effect.dependency.name)


def _by_person(effect: Effect, verdict: Verdict) -> str:
    who = verdict.person.name
    if verdict.confirmed_by is not None:
        who = _("{first} and {second}").format(first=who, second=verdict.confirmed_by.name)
    shown: list[Evidence] = [e for e in effect.evidence.all() if e.pk in verdict.evidence]
    machine = [e for e in shown if e.kind != EvidenceKind.STATEMENT]
    if not machine:
        return _("by {who}, on a statement").format(who=who)
    last = machine[-1]
    at = when.stamp(last.received_at, timezone.now())
    return _("by {who} on the {kind} of {at}").format(who=who, kind=_KINDS[EvidenceKind(last.kind)], at=at)


def waits_on_timer(run: Run) -> bool:
    """Whether a timer of the run's own stops with it."""
    return run.state == RunState.WAITING and run.waiting_on == WaitingOn.TIMER


def unsettled(effects: list[Effect]) -> list[Effect]:
    """Effects that were sent and are not settled: what cancelling has to find out about first."""
    return [e for e in effects if e.state in EFFECT_OPEN and e.attempts]


def unsent(effects: list[Effect]) -> list[Effect]:
    """Effects of which nothing has left: cancelling drops them."""
    return [e for e in effects if e.state in (EffectState.AWAITING_APPROVAL, EffectState.READY)]
