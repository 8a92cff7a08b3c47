"""Asking the authority: did this intent happen? Facts side by side, and how much they prove.

Only our own reference in their record proves that what is seen came from this intent. Equal facts agree; that
is not proof (somebody else may have refunded the same charge), so a person decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel

from recovery.contract import canonical
from recovery.contract.errors import CanonicalError
from recovery.contract.retry import Backoff
from recovery.ports.base import Answer, AnswerKind, Port
from runs.states import Claim, Strength

BY_REFERENCE = "reference"
BY_FACTS = "facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One row of the comparison. ``meant`` and ``theirs`` give comparable values; ``show`` words ours for
    people.

    ``sent``: the value in the body that was sent, from its parsed JSON.
    """

    name: str
    meant: Callable[[Any], Any]
    sent: Callable[[Any], Any]
    theirs: Callable[[Any], Any]
    show: Callable[[Any], str] | None


@dataclass(frozen=True, slots=True)
class FactRow:
    """``same``: True, False, or None when it cannot be compared. Values are text or None."""

    name: str
    meant: str | None
    sent: str | None
    theirs: str | None
    same: bool | None

    def as_json(self) -> dict[str, Any]:
        """As an evidence's ``facts`` column keeps it."""
        return {
            "name": self.name,
            "meant": self.meant,
            "sent": self.sent,
            "theirs": self.theirs,
            "same": self.same,
        }


@dataclass(frozen=True, slots=True)
class ReadbackAnswer:
    """What one check brought. ``others``: further items that are not this intent's. ``as_of``: their own time
    of it."""

    claim: Claim
    strength: Strength
    facts: list[FactRow]
    raw: str
    observed_at: datetime
    item: dict[str, Any] | None
    others: int
    error: str | None
    as_of: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """How the authority lists what it made since a moment: for the sweep after a restore.

    ``path`` and ``query(prefix, since, cursor)``: the GET; ``prefix`` is what our keys begin with, ``cursor`` None on
    the first page. ``cursor(body)``: where the next page begins, None on the last. Records, reference, times and
    state are read as the Readback reads them; it must prove by reference.
    """

    path: str
    prefix: str
    query: Callable[[str, datetime, str | None], dict[str, str]]
    cursor: Callable[[Any], str | None]


@dataclass(frozen=True, slots=True)
class Listed:
    """One page. ``items`` by our reference, ``made_at`` beside each; ``error``: why there is none."""

    items: list[tuple[str, dict[str, Any], datetime | None]]
    next: str | None
    as_of: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Readback:
    """How the authority is asked. Every field is explicit; what does not apply is None.

    ``path`` and ``query(params, key)``: the GET. ``items(body)``: the list of records. ``proof``: "reference"
    or "facts". ``reference(item)``: our key in their record, None where ``proof`` is "facts".
    ``status(item)`` with ``pending`` and ``rejected``: their words for not done yet and for refused.
    ``made_at(item)``: when they made it. ``as_of(body)``: the time their answer speaks of.
    ``complete(body)``: whether the list is whole (no further page). ``result(item)``: what the step receives.
    ``callback(body)``: the record in a message that the other side sends by itself, None where it sends none; only
    with ``proof`` "reference". ``facts``: the rows. ``lag``: how far the answer may be behind. ``apart``: the least
    time between two "not found" that count. ``backoff``: the pause between checks. ``timeout``: of one check.
    ``listing``: how everything since a moment is listed; None where the authority offers no such thing.
    """

    path: str
    query: Callable[[Any, str], dict[str, str]]
    items: Callable[[Any], list[Any]]
    proof: str
    reference: Callable[[Any], str | None] | None
    status: Callable[[Any], str] | None
    pending: frozenset[str]
    rejected: frozenset[str]
    made_at: Callable[[Any], str | None] | None
    as_of: Callable[[Any], str | None] | None
    complete: Callable[[Any], bool] | None
    callback: Callable[[Any], Any] | None
    result: Callable[[Any], dict[str, Any]]
    facts: tuple[Fact, ...]
    lag: timedelta
    apart: timedelta
    backoff: Backoff
    timeout: timedelta
    listing: Listing | None = None

    def url(self, base_url: str, params: BaseModel, key: str) -> str:
        """The address that is asked."""
        return f"{base_url.rstrip('/')}{self.path}?{urlencode(self.query(params, key))}"

    def ask(
        self,
        port: Port,
        base_url: str,
        params: BaseModel,
        key: str,
        *,
        body: bytes,
        first_sent_at: datetime | None,
        authorization: str | None = None,
    ) -> ReadbackAnswer:
        """Ask once and compare. Reads only, never raises for what the network or the other side did.

        ``key``: as sent. ``body``: the exact bytes that were sent. ``first_sent_at``: when the first attempt
        began; a record that is older than that by more than a minute (their clock may differ) is not this
        intent's.
        """
        answer = port.read(
            self.url(base_url, params, key),
            timeout_s=self.timeout.total_seconds(),
            authorization=authorization,
        )
        return self.read(answer, params, key, body=body, first_sent_at=first_sent_at)

    def read(
        self, answer: Answer, params: BaseModel, key: str, *, body: bytes, first_sent_at: datetime | None
    ) -> ReadbackAnswer:
        """Compare an answer with what was meant and sent; pure."""
        raw = answer.body.decode("utf-8", "replace")
        if answer.kind is not AnswerKind.ANSWERED or answer.status != 200:
            word = answer.error or f"http_{answer.status}"
            return self._none(answer, raw, word)
        try:
            parsed = canonical.parse(answer.body, nfc=False)
            items = list(self.items(parsed))
            as_of = _time(self.as_of(parsed)) if self.as_of is not None else None
            sent = canonical.parse(body, nfc=False)
            ours, others = self._match(items, params, sent, key, first_sent_at)
            claim, strength, rows = self._judge(ours, params, sent, key, first_sent_at)
            if ours is None and self.complete is not None and not self.complete(parsed):
                # Not on this page is not "not found".
                return self._none(answer, raw, "list_not_complete")
            chosen = None if ours is None else self.result(ours)
        except (CanonicalError, LookupError, TypeError, ValueError, AttributeError):
            return self._none(answer, raw, "unreadable_answer")
        rows.append(FactRow("others like it", None, None, str(others), None))
        # Their answer speaks of as_of; a replica that is behind must not count as a look at now.
        seen = answer.ended_at if as_of is None else min(as_of, answer.ended_at)
        return ReadbackAnswer(claim, strength, rows, raw, seen, chosen, others, None, as_of)

    def compare(self, item: Any, params: BaseModel, key: str, *, body: bytes, at: datetime) -> ReadbackAnswer:
        """The same for one record that a listing brought ``at`` a moment before; pure."""
        raw = canonical.dumps(item).decode()
        rows: list[FactRow]
        try:
            claim, strength, rows = self._judge(item, params, canonical.parse(body, nfc=False), key, None)
            chosen = self.result(item)
        except (CanonicalError, LookupError, TypeError, ValueError, AttributeError):
            return ReadbackAnswer(Claim.UNAVAILABLE, Strength.NONE, [], raw, at, None, 0, "unreadable_answer", None)
        return ReadbackAnswer(claim, strength, rows, raw, at, chosen, 0, None, None)

    def list_since(
        self, port: Port, base_url: str, since: datetime, cursor: str | None, *, authorization: str | None = None
    ) -> Listed:
        """One page of what they made since ``since`` under keys of ours. Reads only, never raises for their answer."""
        listing = self.listing
        assert listing is not None and self.reference is not None
        query = urlencode(listing.query(listing.prefix, since, cursor))
        answer = port.read(
            f"{base_url.rstrip('/')}{listing.path}?{query}",
            timeout_s=self.timeout.total_seconds(),
            authorization=authorization,
        )
        if answer.kind is not AnswerKind.ANSWERED or answer.status != 200:
            return Listed([], None, None, answer.error or f"http_{answer.status}")
        try:
            parsed = canonical.parse(answer.body, nfc=False)
            found = []
            for item in self.items(parsed):
                reference = self.reference(item)
                if reference is not None and reference.startswith(listing.prefix):
                    made = _time(self.made_at(item)) if self.made_at is not None else None
                    found.append((reference, item, made))
            as_of = _time(self.as_of(parsed)) if self.as_of is not None else None
            return Listed(found, listing.cursor(parsed), as_of, None)
        except (CanonicalError, LookupError, TypeError, ValueError, AttributeError):
            return Listed([], None, None, "unreadable_answer")

    def told(
        self, body: bytes, params: BaseModel, key: str, *, sent: bytes, first_sent_at: datetime | None, at: datetime
    ) -> ReadbackAnswer:
        """Compare a message that they sent by themselves with what was meant and sent; pure.

        ``body``: theirs. ``sent``: the exact bytes of ours. ``at``: when it was received. A message that cannot be
        read, or speaks of another reference, says nothing.
        """
        raw = body.decode("utf-8", "replace")
        try:
            item = self.item_of(canonical.parse(body, nfc=False))
            if item is None or self.reference is None or self.reference(item) != key:
                return ReadbackAnswer(Claim.UNAVAILABLE, Strength.NONE, [], raw, at, None, 0, "another_reference", None)
            ours = canonical.parse(sent, nfc=False)
            claim, strength, rows = self._judge(item, params, ours, key, first_sent_at)
            return ReadbackAnswer(claim, strength, rows, raw, at, self.result(item), 0, None, None)
        except (CanonicalError, LookupError, TypeError, ValueError, AttributeError):
            return ReadbackAnswer(Claim.UNAVAILABLE, Strength.NONE, [], raw, at, None, 0, "unreadable_message", None)

    def item_of(self, parsed: Any) -> Any | None:
        """The record in a parsed message, None where this contract hears none. Raises what an odd body makes of it."""
        if self.callback is None or self.proof != BY_REFERENCE:
            return None
        return self.callback(parsed)

    def _none(self, answer: Answer, raw: str, error: str) -> ReadbackAnswer:
        return ReadbackAnswer(Claim.UNAVAILABLE, Strength.NONE, [], raw, answer.ended_at, None, 0, error, None)

    def _match(
        self, items: list[Any], params: BaseModel, sent: Any, key: str, since: datetime | None
    ) -> tuple[Any | None, int]:
        if self.proof == BY_REFERENCE and self.reference is not None:
            found = [item for item in items if self.reference(item) == key]
        else:
            found = [
                item
                for item in items
                if not self._older(item, since) and all(row.same is not False for row in self._rows(item, params, sent))
            ]
        return (found[0] if found else None), len(items) - (1 if found else 0)

    def _older(self, item: Any, since: datetime | None) -> bool:
        made = _time(self.made_at(item)) if self.made_at is not None else None
        return made is not None and since is not None and made < since - timedelta(minutes=1)

    def _judge(
        self, item: Any | None, params: BaseModel, sent: Any, key: str, since: datetime | None
    ) -> tuple[Claim, Strength, list[FactRow]]:
        rows = self._rows(item, params, sent)
        rows.append(self._made_row(item, since))
        rows.append(self._reference_row(item, key))
        if item is None:
            return Claim.NOT_FOUND, Strength.AGREES, rows
        said = self.status(item) if self.status is not None else None
        ended = Claim.REJECTED if said in self.rejected else Claim.HAPPENED
        claim = Claim.PENDING if said in self.pending else ended
        if any(row.same is False for row in rows):
            # Our reference on other content: somebody's record is wrong, and no rule may pick whose.
            return claim, Strength.CONTRADICTS, rows
        return claim, Strength.PROVES if self.proof == BY_REFERENCE else Strength.AGREES, rows

    def _rows(self, item: Any | None, params: BaseModel, sent: Any) -> list[FactRow]:
        rows = []
        for fact in self.facts:
            meant = fact.meant(params)
            theirs = None if item is None else fact.theirs(item)
            rows.append(
                FactRow(
                    fact.name,
                    str(meant) if fact.show is None else fact.show(params),
                    _shown(fact.sent(sent)),
                    _shown(theirs),
                    None if theirs is None else meant == theirs,
                )
            )
        return rows

    def _made_row(self, item: Any | None, since: datetime | None) -> FactRow:
        made = None if item is None or self.made_at is None else self.made_at(item)
        same = None
        if made is not None and since is not None and self.proof == BY_FACTS:
            same = not self._older(item, since)
        return FactRow("made at", None, None if since is None else since.isoformat(), _shown(made), same)

    def _reference_row(self, item: Any | None, key: str) -> FactRow:
        given = None if item is None or self.reference is None else self.reference(item)
        return FactRow("our reference", key, key, _shown(given), None if given is None else given == key)

    def problems(self) -> Iterator[str]:
        """What is wrong with this readback, one sentence each."""
        if self.proof not in (BY_REFERENCE, BY_FACTS):
            yield 'proof must be "reference" or "facts"'
        if self.proof == BY_REFERENCE and self.reference is None:
            yield "proof by reference needs reference"
        if self.callback is not None and self.proof != BY_REFERENCE:
            yield "a callback is heard only with proof by reference"
        if not self.path.startswith("/"):
            yield 'path must start with "/"'
        if not self.facts:
            yield "at least one fact must be compared"
        if self.listing is not None:
            if self.proof != BY_REFERENCE:
                yield "a listing needs proof by reference: other records would be taken for ours"
            if not self.listing.path.startswith("/") or not self.listing.prefix:
                yield 'a listing needs a path that starts with "/", and the prefix of our keys'
        if self.lag < timedelta(0) or self.apart <= timedelta(0) or self.timeout <= timedelta(0):
            yield "lag, apart and timeout are lengths of time"


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("a time without zone")
    if not 1900 <= at.year < 9000:
        # Neither the record nor a reader's zone can hold the ends of the calendar, and no record was made there.
        raise ValueError("a time beyond the calendar")
    return at.astimezone(UTC)


def _shown(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return canonical.dumps(value).decode()


def rows_json(rows: list[FactRow]) -> list[Mapping[str, Any]]:
    """The rows as an evidence's ``facts`` column keeps them."""
    return [row.as_json() for row in rows]
