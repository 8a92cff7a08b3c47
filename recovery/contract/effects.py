"""``effect(...)``: the recovery contract of one operation, and a request made from it.

The thirteen points of a contract (what an effect is, whom it is for, what it may answer, how often it is
tried, how it is proved, what cannot be reversed, who is told) are fields without defaults. A missing one is
kept as a problem that a system check names; importing an unfinished ``contracts.py`` never fails.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, Final

from django.utils.translation import override
from pydantic import BaseModel, ValidationError

from recovery.contract import canonical
from recovery.contract.approval import Signatures
from recovery.contract.declared import bare_schema, declared
from recovery.contract.errors import ContractIncomplete, KeyInvalid, ParamsInvalid
from recovery.contract.fields import (
    Around,
    Authority,
    Compensation,
    OnCancel,
    OnLate,
    Requirement,
    Target,
)
from recovery.contract.money import Money, Stake
from recovery.contract.outcomes import Http
from recovery.contract.promises import Promise
from recovery.contract.readback import Readback
from recovery.contract.retry import Retry
from recovery.ports.base import Port
from runs.checkpoints import tokens


class Missing:
    """Stands in a field that the author left out."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final[Any] = Missing()


@dataclass(frozen=True)
class EffectContract:
    """The declared contract of ``operation`` in one ``version``; calling it with params makes a request.

    Fields are grouped by the thirteen points. Lengths are timedelta. ``describe`` is a lazily translated
    template over the params and ``stake``; where the stake is money, ``{amount}`` is it. ``key(run, params)``
    gives the idempotency key of the intent. ``stake(params)`` gives Money, Count or None.
    """

    operation: str
    version: int
    params: type[BaseModel]
    dependency: str
    port: Port
    describe: Any
    # 1 and 7: intent, key, equivalence, storage, retention
    key: Callable[[Any, Any], str]
    promise: Promise
    # 2: scope, principal, target, preconditions
    scope: str
    requires: list[Requirement]
    # 3: version of the authority's state
    authority: Authority | None
    # 4: what an answer proves
    outcomes: Http
    # 5: limits of an attempt and of the whole
    timeout: timedelta
    deadline: timedelta
    reserve: timedelta
    # 6
    retry: Retry
    # 8
    reconcile: Readback | None
    # 9
    checkpoint: Around
    # 10
    on_cancel: OnCancel
    on_late: OnLate
    # 11
    compensation: Compensation | None
    # 12
    irreversible: Any
    approval: Signatures | None
    stake: Callable[[Any], Stake | None] | None
    # 13
    escalate_to: str
    review_after: timedelta
    due_in: timedelta
    evidence: list[str]
    # not of the author
    declared_in: str
    missing: tuple[str, ...]
    unknown: tuple[str, ...]

    def __call__(self, **params: Any) -> EffectRequest:
        """A request for one intent. Raises ParamsInvalid naming each field, ContractIncomplete."""
        self.require_whole()
        try:
            return EffectRequest(self, self.params(**params))
        except ValidationError as error:
            raise ParamsInvalid(self.operation, fields_of(error)) from error

    def load(self, params: dict[str, Any]) -> EffectRequest:
        """The request of params that the record kept (JSON values)."""
        return self(**params)

    def require_whole(self) -> None:
        """Raise ContractIncomplete when a field is missing."""
        if self.missing:
            raise ContractIncomplete(
                f"{self.operation}: missing {', '.join(self.missing)}",
                operation=self.operation,
                missing=list(self.missing),
            )

    @cached_property
    def declared(self) -> dict[str, Any]:
        """The declarative part: JSON values, no sentence, no code. Stored by digest and pinned by each
        effect."""
        skipped = {"declared_in", "missing", "unknown"}
        told = {f.name: declared(getattr(self, f.name)) for f in dataclasses.fields(self) if f.name not in skipped}
        told["params"] = bare_schema(self.schema)
        return told

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the declarative part, hex."""
        return canonical.digest(self.declared)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the params."""
        return self.params.model_json_schema()

    @property
    def can_check(self) -> bool:
        """Whether anything can be asked after a lost answer: a key that protects, or a readback."""
        return self.promise.keys or self.reconcile is not None

    @property
    def claims_before_send(self) -> bool:
        """Neither key nor readback: the sender commits ``claimed`` right before the send."""
        return not self.can_check


@dataclass(frozen=True)
class EffectRequest:
    """One intent: a contract and validated params."""

    contract: EffectContract
    params: BaseModel

    @cached_property
    def data(self) -> dict[str, Any]:
        """The params as JSON values. Raises CanonicalError with the path."""
        data = self.params.model_dump(mode="json")
        canonical.check(data)
        return data

    @cached_property
    def target(self) -> str:
        """What is changed, as text."""
        for requirement in self.contract.requires:
            if isinstance(requirement, Target):
                return requirement.value(self.params)
        raise ContractIncomplete(f"{self.contract.operation}: requires names no Target")

    @cached_property
    def intent_digest(self) -> str:
        """Digest of operation, target and params (invariant 3)."""
        return canonical.intent_digest(operation=self.contract.operation, target=self.target, params=self.data)

    @cached_property
    def stake(self) -> Stake | None:
        """What is at stake, or None."""
        return None if self.contract.stake is None else self.contract.stake(self.params)

    def key(self, run: Any) -> str:
        """The idempotency key of this intent in ``run``. Raises KeyInvalid: it goes into a header as it
        is."""
        key = self.contract.key(run, self.params)
        limit = self.contract.promise.key_max_length
        problem = key_problem(key, limit)
        if problem is not None:
            raise KeyInvalid(f"{self.contract.operation}: {problem}", operation=self.contract.operation)
        return key

    def signatures(self) -> Signatures | None:
        """The signatures that this request needs, or None."""
        rule = self.contract.approval
        return rule if rule is not None and rule.applies(self.params) else None

    def sentence(self, language: str | None = None) -> str:
        """The describing sentence, in ``language`` or the active one; English is what the record keeps."""
        if language is not None:
            with override(language):
                return self.sentence()
        facts: dict[str, Any] = {**tokens.masked(self.data), "stake": self.stake}
        if isinstance(self.stake, Money):
            facts["amount"] = self.stake
        return str(self.contract.describe).format(**facts)


GENERATION_ROOM: Final = len("/999")
"""Later generations of a key are sent as ``{key}/n``; the promise must leave room for that."""


def key_problem(key: object, limit: int | None) -> str | None:
    """Why this key cannot be sent, or None. ``limit``: the promise's key_max_length."""
    if not isinstance(key, str) or not key:
        return "the key is empty or not text"
    if not all("!" <= c <= "~" for c in key):
        return f"the key {key!a} is not printable ASCII"
    longest = 200 if limit is None else limit - GENERATION_ROOM
    if len(key) > longest:
        return f"the key is {len(key)} characters, the promise allows {longest} before /n"
    return None


AUTHORS_FIELDS: Final = tuple(
    f.name
    for f in dataclasses.fields(EffectContract)
    if f.name not in ("operation", "declared_in", "missing", "unknown")
)
"""What an author declares besides the operation."""


def effect(operation: str, **fields: Any) -> EffectContract:
    """Declare the contract of ``operation``; the fields are those of ``EffectContract``, none has a default.

    Never raises: a missing field is kept as MISSING, an undeclared one by its name; the system check names
    both.
    """
    caller = sys._getframe(1).f_globals.get("__name__", "")
    known = {name: fields.get(name, MISSING) for name in AUTHORS_FIELDS}
    return EffectContract(
        operation=operation,
        declared_in=caller,
        missing=tuple(name for name in AUTHORS_FIELDS if name not in fields),
        unknown=tuple(sorted(set(fields) - set(AUTHORS_FIELDS))),
        **known,
    )


def fields_of(error: ValidationError) -> dict[str, str]:
    """Each invalid field's path and what is wrong with it; never the value that was given."""
    return {
        ".".join(str(part) for part in line["loc"]) or "(whole)": line["msg"]
        for line in error.errors(include_url=False, include_context=False, include_input=False)
    }
