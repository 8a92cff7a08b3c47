"""What an effect's page lays side by side: meant, sent and heard, what the other side says now, evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console import payload, when
from console.screens.comparing import FACTS
from console.screens.saying import clock
from console.screens.told import noun
from recovery.contract import EffectContract
from runs.models import Attempt, Effect, Evidence
from runs.states import ATTEMPT_LIVE, AttemptState, Claim, EvidenceKind, Strength

KINDS: Final = {
    EvidenceKind.ANSWER: gettext_lazy("Answer"),
    EvidenceKind.READBACK: gettext_lazy("Readback"),
    EvidenceKind.CALLBACK: gettext_lazy("Callback"),
    EvidenceKind.STATEMENT: gettext_lazy("Statement"),
}

_SILENCE: Final = {
    "timeout": gettext_lazy("heard nothing in {limit} (timeout)"),
    "connection_closed": gettext_lazy("heard nothing: the connection closed before an answer"),
    "reset": gettext_lazy("heard nothing: the connection was reset"),
}


@dataclass(frozen=True)
class Try:
    """One attempt in two half-sentences."""

    sent: str
    heard: str


@dataclass(frozen=True)
class Card:
    """A piece of evidence with the words that are not in its row."""

    evidence: Evidence
    label: str
    proven_by: str


def tries(effect: Effect, attempts: Sequence[Attempt], contract: EffectContract | None) -> list[Try]:
    """Each attempt: when it was sent, how it was answered."""
    size = _size(len(effect.body.encode()))
    return [
        Try(
            _("sent {at}, try {n} of {all}, {size}").format(
                at=clock(one.claimed_at or one.committed_at), n=one.n, all=len(attempts), size=size
            )
            if one.state != AttemptState.NOT_SENT
            else _("try {n} of {all} never left").format(n=one.n, all=len(attempts)),
            _heard(one, contract),
        )
        for one in attempts
    ]


def _heard(attempt: Attempt, contract: EffectContract | None) -> str:
    outcome = attempt.outcome or {}
    code, status = outcome.get("code", ""), outcome.get("status")
    if attempt.state in ATTEMPT_LIVE:
        return _("no answer yet")
    if attempt.state == AttemptState.NOT_SENT:
        return _("not sent: {why}").format(why=code or _("its sender ended first"))
    if status is not None and outcome.get("kind") == "unknown":
        return _("heard {status} at {at}, which does not tell how it ended").format(
            status=status, at=clock(attempt.ended_at)
        )
    if status is not None:
        return _("heard {status} at {at}").format(status=status, at=clock(attempt.ended_at))
    if not code:
        return _("heard nothing: its sender ended first")
    limit = when.span(contract.timeout.total_seconds()) if contract else ""
    return str(_SILENCE.get(code, gettext_lazy("heard nothing ({code})"))).format(limit=limit, code=code)


def _size(count: int) -> str:
    if count < 1024:
        return ngettext("{n} byte", "{n} bytes", count).format(n=count)
    return payload.size(count)


def checks_line(effect: Effect, evidence: Sequence[Evidence]) -> str:
    """ "6 checks, no answer, last 03:10:02"; what the last answered one said."""
    checks = [one for one in evidence if one.kind == EvidenceKind.READBACK]
    if not checks:
        return _("not asked yet")
    said = ngettext("{n} check", "{n} checks", len(checks)).format(n=len(checks))
    answered = [one for one in checks if one.claim != Claim.UNAVAILABLE]
    if not answered:
        return _("{checks}, no answer, last {at}").format(checks=said, at=clock(checks[-1].received_at))
    last = answered[-1]
    line = _("{checks}, answered {at}: {found}").format(
        checks=said, at=clock(last.received_at), found=found(effect, last)
    )
    if last is checks[-1]:
        return line
    return _("{line}; then no answer, last {at}").format(line=line, at=clock(checks[-1].received_at))


def found(effect: Effect, check: Evidence) -> str:
    """What an answered check shows: "1 refund on charge ch_3QK9", "no refund on charge ch_3QK9"."""
    others = int(check.detail.get("others") or 0)
    here = check.claim != Claim.NOT_FOUND
    what = {"noun": noun(effect), "where": where(effect), "n": others + here}
    if not here and others:
        line = ngettext(
            "{n} {noun} on {where}, which is not this one",
            "{n} {noun}s on {where}, none of them this one",
            others,
        )
    elif not here:
        line = _("no {noun} on {where}")
    else:
        line = ngettext("{n} {noun} on {where}", "{n} {noun}s on {where}", what["n"])
    said = line.format(**what)
    if check.claim == Claim.PENDING:
        return _("{found}, not finished yet").format(found=said)
    if check.claim == Claim.REJECTED:
        return _("{found}, refused").format(found=said)
    return said


def where(effect: Effect) -> str:
    """The target with the name of its field: "charge ch_3QK9"."""
    named = next((name for name, value in effect.params.items() if value == effect.target), "")
    return f"{FACTS.get(named, named)} {effect.target}".strip()


def promise_line(contract: EffectContract | None) -> str:
    """ "Promise v3: no keys, lag 30 s, ends 31 Dec 2035"."""
    if contract is None:
        return ""
    promise = contract.promise
    said = [
        _("keys kept {window}").format(window=when.span(promise.window.total_seconds()))
        if promise.keys and promise.window
        else _("no keys")
    ]
    if promise.lag is not None:
        said.append(_("lag {lag}").format(lag=when.span(promise.lag.total_seconds())))
    if promise.until is not None:
        said.append(_("ends {day}").format(day=f"{promise.until.day} {promise.until:%b %Y}"))
    return _("Promise v{version}: {said}").format(version=promise.version, said=_(", ").join(said))


def window_line(effect: Effect, attempts: Sequence[Attempt], contract: EffectContract | None) -> str:
    """That the same-key window is over, for an effect nobody knows about; empty otherwise."""
    window = contract.promise.window if contract else None
    if effect.settled or window is None or not attempts:
        return ""
    closes = attempts[0].committed_at + window
    if timezone.now() < closes:
        return ""
    return _("The same-key window closed at {at}. Recourse will never send this again by itself.").format(
        at=clock(closes)
    )


def cards(effect: Effect, evidence: Sequence[Evidence], attempts: Sequence[Attempt]) -> list[Card]:
    """Every piece of evidence, newest last."""
    numbers = {one.pk: one.n for one in attempts}
    return [Card(one, label(one), _proven_by(effect, one, numbers)) for one in evidence]


@dataclass(frozen=True)
class Group:
    """Cards that stand together; ``folded``: the words of a fold for checks that brought nothing."""

    cards: list[Card]
    folded: str = ""


def groups(rows: Sequence[Card]) -> list[Group]:
    """Cards in their order, checks without an answer in a row folded into one line."""
    made = []
    for silent, run in groupby(rows, key=lambda card: card.evidence.strength == Strength.NONE):
        some = list(run)
        line = ngettext("{n} check without an answer", "{n} checks without an answer", len(some))
        made.append(Group(some, line.format(n=len(some)) if silent and len(some) > 1 else ""))
    return made


def label(evidence: Evidence) -> str:
    """ "Readback 03:13:20"."""
    return f"{KINDS[EvidenceKind(evidence.kind)]} {clock(evidence.received_at)}"


def _proven_by(effect: Effect, one: Evidence, numbers: dict[Any, int]) -> str:
    if one.kind == EvidenceKind.ANSWER and one.attempt_id in numbers:
        return _("the answer to try {n}").format(n=numbers[one.attempt_id])
    if one.strength == Strength.PROVES:
        return _("our reference {key}").format(key=effect.sent_key)
    return ""
