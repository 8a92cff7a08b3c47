"""Everything that the page of one effect shows, from one read of the record."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.screens import comparing, effect_facts, gates, place, saying, settling, told
from console.screens.gates import Gate
from recovery.actions.effects import CHECKABLE
from recovery.contract import EffectContract
from recovery.engine.verdicts import DECIDABLE
from runs import queries
from runs.models import Effect, Evidence, Person, Review
from runs.queries import EffectDetail
from runs.states import Claim, EffectState, EvidenceKind, ReviewKind, Strength, VerdictState

TITLES: Final[dict[str, str | Promise]] = {
    EffectState.PLANNED: gettext_lazy("{what}: planned, not asked for yet"),
    EffectState.AWAITING_APPROVAL: gettext_lazy("{what}: waits for signatures"),
    EffectState.READY: gettext_lazy("{what}: not sent yet"),
    EffectState.IN_FLIGHT: gettext_lazy("{what}: sent, no answer yet"),
    EffectState.ACCEPTED: gettext_lazy("{what}: taken, nobody knows yet how it ends"),
    EffectState.UNKNOWN: gettext_lazy("{what}: nobody knows whether it happened"),
    EffectState.PARTIAL: gettext_lazy("{what}: it happened in part"),
    EffectState.DISPUTED: gettext_lazy("{what}: the evidence disagrees"),
    EffectState.SUCCEEDED: gettext_lazy("{what}: it happened"),
    EffectState.REJECTED: gettext_lazy("{what}: refused by {dependency}"),
    EffectState.DECLINED: gettext_lazy("{what}: not signed, not sent"),
    EffectState.NOT_APPLIED: gettext_lazy("{what}: it did not happen"),
    EffectState.CANCELLED: gettext_lazy("{what}: cancelled before sending"),
    EffectState.EXPIRED: gettext_lazy("{what}: expired unsent"),
    EffectState.COMPENSATED: gettext_lazy("{what}: it happened and was mended"),
}

_OPEN_KINDS: Final = (ReviewKind.OUTCOME_UNKNOWN, ReviewKind.EVIDENCE_DISAGREES, ReviewKind.PARTIAL_OUTCOME)


@dataclass
class EffectPage:
    """One effect as ``reader`` sees it. ``held``: what the reader may do in its workspace."""

    detail: EffectDetail
    reader: Person
    held: frozenset[str]

    def again(self) -> EffectPage:
        """The same effect, read anew."""
        return EffectPage(queries.effect_detail(self.reader, self.effect.pk), self.reader, self.held)

    @property
    def effect(self) -> Effect:
        return self.detail.effect

    @cached_property
    def contract(self) -> EffectContract | None:
        return saying.contract_of(self.effect)

    @cached_property
    def sentence(self) -> str:
        return saying.sentence_of(self.effect)

    @property
    def dependency(self) -> str:
        return self.effect.dependency.name

    @property
    def title(self) -> str:
        return str(TITLES[self.effect.state]).format(what=self.sentence, dependency=self.dependency)

    @property
    def url(self) -> str:
        return f"/effects/{self.effect.pk}/"

    @property
    def may_claim(self) -> bool:
        return "claim" in self.held

    # Whose turn

    @cached_property
    def review(self) -> Review | None:
        """The open item of the inbox about this outcome, if a person is asked."""
        row = next((one for one in self.detail.reviews if one.kind in _OPEN_KINDS), None)
        if row is not None:
            row.effect = self.effect
        return row

    @property
    def turn(self) -> str:
        return self.gate.turn if self.gate else ""

    @property
    def since(self) -> Any:
        """Since when it has been unsettled, for "for 31 min"."""
        return self.effect.unknown_since or self.effect.requested_at

    @cached_property
    def gate(self) -> Gate | None:
        """The four lines; none for what has ended."""
        if self.effect.settled or self.effect.state == EffectState.PARTIAL:
            return None
        return gates.of_effect(self.effect, self.effect.run, self.reader)

    # Side by side

    @property
    def tries(self) -> list[effect_facts.Try]:
        return effect_facts.tries(self.effect, self.detail.attempts, self.contract)

    @property
    def checks_line(self) -> str:
        return effect_facts.checks_line(self.effect, self.detail.evidence)

    @property
    def promise_line(self) -> str:
        return effect_facts.promise_line(self.contract)

    @property
    def window_line(self) -> str:
        return effect_facts.window_line(self.effect, self.detail.attempts, self.contract)

    @property
    def can_check(self) -> bool:
        """Whether asking can tell something now."""
        return (
            self.contract is not None
            and self.contract.reconcile is not None
            and bool(self.detail.attempts)
            and self.effect.state in CHECKABLE
        )

    @property
    def no_way(self) -> str:
        """That nothing can be asked, where there is neither key nor readback; empty otherwise."""
        if self.contract is None or self.contract.can_check:
            return ""
        line = _("{dependency} offers no way to check. Sent once; only a callback or a person can settle it.")
        return line.format(dependency=self.dependency)

    @cached_property
    def answered(self) -> Evidence | None:
        """The last check that was answered."""
        checks = [
            one for one in self.detail.evidence if one.kind == EvidenceKind.READBACK and one.claim != Claim.UNAVAILABLE
        ]
        return checks[-1] if checks else None

    @property
    def compared(self) -> list[comparing.Row]:
        return comparing.compared(self.answered) if self.answered else []

    @property
    def agreement(self) -> str:
        return comparing.agreement(self.effect, self.answered) if self.answered else ""

    @property
    def cards(self) -> list[effect_facts.Card]:
        return effect_facts.cards(self.effect, self.detail.evidence, self.detail.attempts)

    @property
    def card_groups(self) -> list[effect_facts.Group]:
        return effect_facts.groups(self.cards)

    @property
    def says_something(self) -> list[Evidence]:
        """Evidence that a decision can rest on."""
        return [one for one in self.detail.evidence if one.strength != Strength.NONE]

    # Deciding

    @property
    def decidable(self) -> bool:
        return self.effect.state in DECIDABLE

    @property
    def stands(self) -> str:
        """What can be done about it: a decision, an answer to one, or nothing."""
        waits = self.detail.proposed
        return f"confirm-{waits.pk}" if waits else "decide" if self.decidable else self.effect.state

    @property
    def may_decide(self) -> bool:
        return "decide" in self.held

    @property
    def settled_line(self) -> str:
        return settling.settled_line(self.effect) if self.effect.settled else ""

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """Every decision that was made about it, oldest first."""
        return [
            {
                "verdict": one,
                "said": saying.said(self.effect, one.says),
                "open": one.state == VerdictState.PROPOSED,
            }
            for one in self.detail.verdicts
        ]

    @property
    def proposed_said(self) -> str:
        """What the decision that waits for a second person says."""
        proposed = self.detail.proposed
        return saying.said(self.effect, proposed.says) if proposed else ""

    @property
    def who_decides(self) -> str:
        """For whoever may not: who can."""
        return told.who_can(self.effect.workspace_id, "decide", self.reader)


def effect_page(request: HttpRequest, id: UUID) -> EffectPage:
    """The page of the effect ``id``; Http404 where the reader sees none."""
    reader = place.person_of(request)
    detail = place.found(queries.effect_detail, reader, id)
    return EffectPage(detail, reader, place.enter(request, detail.effect.workspace))
