"""Everything that the page of one request for signatures shows, from one read of the record."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from console import money, pills, when
from console.diff import Diff
from console.screens import gates, place, saying, told
from console.screens.gates import Gate
from console.screens.revisions import looked_at, what_changed
from recovery.engine import reasons
from recovery.engine.approvals import Rule, rule_of
from runs import queries
from runs.errors import RunsError
from runs.models import Approval, Effect, Person, Run, Signature
from runs.queries import ApprovalDetail
from runs.states import ApprovalState, EffectState


@dataclass
class ApprovalPage:
    """One request as ``reader`` sees it. ``held``: what the reader may do. ``looked``: the revision of the
    same effect that this browser looked at before, None for the first time."""

    detail: ApprovalDetail
    reader: Person
    held: frozenset[str]
    looked: int | None = None

    @property
    def approval(self) -> Approval:
        return self.detail.approval

    @property
    def effect(self) -> Effect:
        return self.approval.effect

    @property
    def run(self) -> Run:
        return self.approval.run

    @property
    def url(self) -> str:
        return f"/approvals/{self.approval.pk}/"

    @property
    def open(self) -> bool:
        """Whether it can still be signed."""
        return self.approval.state == ApprovalState.PENDING

    # What it says

    @cached_property
    def stored(self) -> Effect:
        """The effect as this revision asked for it: an amended one says something else by now."""
        fields = self.approval.fields
        copied = Effect(**{f.attname: getattr(self.effect, f.attname) for f in Effect._meta.concrete_fields})
        copied.params, copied.stake, copied.target = fields["params"], fields["stake"], fields["target"]
        copied.dependency = self.effect.dependency
        return copied

    @cached_property
    def sentence(self) -> str:
        """The describing sentence of this revision."""
        return saying.sentence_of(self.stored)

    @property
    def title(self) -> str:
        if not self.open:
            return self.sentence
        return _("Sign: {what}").format(what=self.sentence[:1].lower() + self.sentence[1:])

    @property
    def amount(self) -> str:
        """ "USD 1,205.00", where money is at stake; empty otherwise."""
        stake = self.approval.fields["stake"] or {}
        if stake.get("kind") != "money":
            return ""
        return money.amount(int(stake["amount"]), str(stake["currency"]))

    @cached_property
    def consequence(self) -> str:
        """What signing leads to: "Sends USD 1,205.00 from account payments to ch_8LM2. Cannot be ..."."""
        fields = self.approval.fields
        facts = {"amount": self.amount, "account": fields["account"], "target": fields["target"]}
        stake = fields["stake"] or {}
        if not self.amount:
            line = _("Is carried out by {account} on {target}.")
        elif stake["direction"] == "out":
            line = _("Sends {amount} from account {account} to {target}.")
        else:
            line = _("Takes {amount} into account {account} from {target}.")
        said = line.format(**facts)
        why = saying.irreversible_of(self.effect)
        return f"{said} {_('Cannot be reversed: {why}.').format(why=why)}" if why else said

    @property
    def send(self) -> str:
        """What the button does: "send USD 1,205.00"."""
        return _("send {amount}").format(amount=self.amount) if self.amount else _("send it")

    @cached_property
    def signed(self) -> int:
        return len(self.rule.good(self.detail.standing))

    @property
    def count(self) -> str:
        """ "1 of 2 signatures"."""
        needed = self.approval.needed
        line = ngettext("{n} of {needed} signature", "{n} of {needed} signatures", needed)
        return line.format(n=self.signed, needed=needed)

    @property
    def within(self) -> str:
        """ "1 h": how soon after the last signature it must be sent."""
        return when.span(self.approval.execute_within)

    @property
    def run_name(self) -> str:
        return saying.run_name(self.run.type, self.run.pk)

    @cached_property
    def gate(self) -> Gate | None:
        """The four lines, while something is open: the effect's decision, with the people of this request."""
        decision = self.effect.decision
        waits = self.effect.state == EffectState.AWAITING_APPROVAL
        if self.approval.state not in _OPEN or not waits or not decision:
            return None
        facts = {**decision["facts"], "group": self.approval.group.slug, "what": self.sentence}
        if self.open:
            signed = {one.person_id for one in self.detail.standing}
            left = [(one.pk, one.name) for one in self.rule.candidates() if one.pk not in signed]
            people = told.names(left, self.reader.pk, self.approval.group.slug)
        else:
            people = told.who_can(self.approval.workspace_id, "start", self.reader)
        decided = {"reason": decision["reason"], "facts": facts}
        lines = reasons.gate(decided, people=people, show_time=gates.show_time)
        return Gate(gates.TURNS[lines.turn], lines.waiting_for, lines.ends_when, lines.who_can, lines.if_nobody_acts)

    @property
    def gate_of_ended(self) -> Gate:
        """The same four lines of a request that ended while it was read: their place stays."""
        ends = pills.PILLS["approval"][self.approval.state].text(revision=self.detail.newest.revision)
        return Gate("", _("Nothing."), f"{ends}.", _("Nobody."), _("Nothing happens."))

    @property
    def free_places(self) -> list[int]:
        """Numbers of the signatures that are still needed."""
        return list(range(len(self.detail.standing) + 1, self.approval.needed + 1))

    @property
    def withdrawable(self) -> bool:
        """Whether the reader has a signature that can still be taken back."""
        usable = self.approval.state in (ApprovalState.PENDING, ApprovalState.GRANTED)
        return self.mine is not None and usable

    @property
    def turn(self) -> str:
        if self.open or self.approval.state == ApprovalState.UNSATISFIABLE:
            return "person"
        return "recourse" if self.approval.state == ApprovalState.GRANTED else ""

    @property
    def renewable(self) -> bool:
        """Whether it ran out, or nobody can sign it, while its effect still waits."""
        ran_out = self.approval.state in (ApprovalState.EXPIRED, ApprovalState.UNSATISFIABLE)
        newest = self.detail.newest.pk == self.approval.pk
        return ran_out and newest and self.effect.state == EffectState.AWAITING_APPROVAL and not self.run.ended

    @property
    def who_renews(self) -> str:
        """For whoever may not ask again: who can."""
        who = told.who_can(self.approval.workspace_id, "start", self.reader)
        return _("You can see this but not ask again. They can: {who}.").format(who=who)

    @property
    def basis(self) -> str:
        """What an act on this request is based on."""
        one = self.approval
        return _("revision {n}, check code {code}").format(n=one.revision, code=one.check_code)

    # Who may

    @cached_property
    def rule(self) -> Rule:
        return rule_of(self.approval)

    @cached_property
    def why_not(self) -> RunsError | None:
        """Why the reader cannot sign this; None for whoever can."""
        try:
            self.rule.require(self.reader, self.detail.standing)
            self.rule.require_first(self.reader, self.detail.standing)
        except RunsError as error:
            return error
        return None

    @property
    def mine(self) -> Signature | None:
        """The reader's own standing signature."""
        return next((one for one in self.detail.standing if one.person_id == self.reader.pk), None)

    @property
    def decided(self) -> bool:
        """Whether the reader has answered, or nobody answers any more: reasons are unfolded then (D10)."""
        own = any(one.person_id == self.reader.pk for one in self.detail.signatures)
        return own or not self.open

    # What changed

    @cached_property
    def changed(self) -> Diff | None:
        """What differs from the revision before; None for the first one."""
        before = self.detail.previous
        return None if before is None else what_changed(before, self.approval)

    @property
    def changed_caption(self) -> str:
        before = self.detail.previous
        if before is None:
            return ""
        if self.looked is not None and self.looked < self.approval.revision:
            return _("Changed since you last looked")
        return _("Changed since revision {n}").format(n=before.revision)

    @property
    def saw(self) -> dict[str, Any]:
        """What is kept of what the signer saw; the door adds revision, digest, bytes and precondition."""
        changed = self.changed
        return {
            "sentence": f"{self.sentence}. {self.consequence}",
            "language": get_language(),
            "check_code": self.approval.check_code,
            "changed": [[c.mark, c.path, c.before, c.after] for c in changed.changes] if changed else [],
            "evidence": [],
        }


_OPEN: Final = (ApprovalState.PENDING, ApprovalState.UNSATISFIABLE, ApprovalState.EXPIRED)


def approval_page(request: HttpRequest, id: UUID) -> ApprovalPage:
    """The page of the request ``id``; Http404 where the reader sees none."""
    reader = place.person_of(request)
    detail = place.found(queries.approval_detail, reader, id)
    held = place.enter(request, detail.approval.workspace)
    return ApprovalPage(detail, reader, held, looked_at(request, detail.approval))
