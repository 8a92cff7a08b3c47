"""One item of the inbox as a row reads: what it is about, what is at stake, why it needs a person now."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import money, when
from console.screens import gates
from runs.models import Effect, Person, Review
from runs.queries import InboxRow
from runs.states import EFFECT_SETTLED, ReviewKind, ReviewState, VerdictSays

SAYS = {
    VerdictSays.HAPPENED: gettext_lazy("it happened"),
    VerdictSays.DID_NOT_HAPPEN: gettext_lazy("it did not happen"),
    VerdictSays.IN_PART: gettext_lazy("it happened in part"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A row. ``gone``: the item is closed; the row stays where it is until the list is read anew."""

    row: InboxRow
    now: datetime
    me: UUID

    @property
    def review(self) -> Review:
        return self.row.review

    @property
    def gone(self) -> bool:
        return self.review.state != ReviewState.OPEN

    @property
    def url(self) -> str:
        return subject_url(self.review)

    @property
    def title(self) -> str:
        """The contract's own sentence, or the run's title."""
        review = self.review
        if review.effect is not None:
            return review.effect.describe
        if review.kind == ReviewKind.HISTORY_ALARM:
            return _("The record was restored")
        if review.run is not None:
            return review.run.title
        return str(review.why.get("facts", {}).get("dependency", review.subject))

    @property
    def stake(self) -> str:
        """What is at stake and whether it can be taken back."""
        effect = self.review.effect
        if effect is None:
            return ""
        worth = money.at_stake(effect.stake)
        if not effect.irreversible:
            return worth
        return _("{worth}, cannot be reversed").format(worth=worth) if worth else _("Cannot be reversed")

    @property
    def why(self) -> str:
        """Why it needs a person now, in a sentence or two."""
        return " ".join(_why(self.row, self.now))

    @property
    def mark(self) -> str:
        """What others may change of it, in 40 characters: tells "changed" from "the same" later."""
        review = self.review
        other = None if review.claimed_by_id == self.me else review.claimed_by_id
        seen = f"{other} {self.row.signed} {self.row.needed} {review.state}"
        return f"{review.pk.hex}{zlib.crc32(seen.encode()):08x}"


def lines(rows: list[InboxRow], me: Person) -> list[Line]:
    """Rows as ``me`` reads them, with one moment for all."""
    now = timezone.now()
    return [Line(row, now, me.pk) for row in rows]


def subject_url(review: Review) -> str:
    """Where the item is dealt with."""
    if review.kind == ReviewKind.SIGNATURES_NEEDED and review.approval_id is not None:
        return f"/approvals/{review.approval_id}/"
    if review.effect_id is not None:
        return f"/effects/{review.effect_id}/"
    if review.kind == ReviewKind.HISTORY_ALARM:
        return f"/restores/{review.subject}/"
    return f"/runs/{review.run_id}/" if review.run_id is not None else "/inbox/"


def _why(row: InboxRow, now: datetime) -> Iterator[str]:
    review, effect = row.review, row.review.effect
    if review.kind == ReviewKind.SIGNATURES_NEEDED:
        yield from _signing(row)
    elif review.kind == ReviewKind.CONFIRM_DECISION and review.verdict is not None:
        said = SAYS[VerdictSays(review.verdict.says)]
        yield _("{who} decided: {said}. Another person must confirm.").format(who=review.verdict.person.name, said=said)
    elif review.kind == ReviewKind.EVIDENCE_DISAGREES:
        yield _("The evidence disagrees. Nothing is sent until a person decides.")
    elif review.kind == ReviewKind.OUTCOME_UNKNOWN and effect is not None:
        yield from _unknown(effect, now)
    elif review.kind == ReviewKind.PARTIAL_OUTCOME:
        yield _("It happened in part; the run does not know how to go on.")
    else:
        why = gates.why_of(review.why)
        yield why[:1].upper() + why[1:] + "."


def _signing(row: InboxRow) -> Iterator[str]:
    code = row.review.why.get("code")
    if code == "no_quorum":
        yield _("Nobody can sign: {why}.").format(why=gates.why_of(row.review.why))
        return
    if code == "approval_expired":
        yield _("The signatures ran out; it has to be asked for again.")
        return
    yield _("{signed} of {needed} signed.").format(signed=row.signed, needed=row.needed)
    if row.you_signed:
        yield _("You signed.")
    elif row.can_sign:
        yield _("You can sign.")


def _unknown(effect: Effect, now: datetime) -> Iterator[str]:
    dependency = effect.dependency.name
    if effect.unknown_since is not None:
        at = when.stamp(effect.unknown_since, now)
        yield _("No answer from {dependency} since {at}.").format(dependency=dependency, at=at)
    code = (effect.decision or {}).get("reason")
    if effect.state in EFFECT_SETTLED:
        return
    if code == "agrees_not_proof":
        yield _("{dependency} shows facts that agree, which is no proof.").format(dependency=dependency)
    elif code == "no_way_to_check":
        yield _("{dependency} offers no way to check.").format(dependency=dependency)
    elif code == "window_closed":
        yield _("The same-key window has closed; it is not sent again.")
