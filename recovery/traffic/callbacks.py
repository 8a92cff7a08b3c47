"""Messages that the other side sends by itself (Standard Webhooks): evidence about an effect, or set aside.

A signature says who sent it, not that it is true of anything here: a message counts only where it names the reference
of an effect of this workspace at this dependency, and then like a readback that found it. Early, late, twice,
reordered or contradicting ones are what ``decide`` makes of one more piece of evidence; none revives a run.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import secrets
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from standardwebhooks import Webhook, WebhookVerificationError

from recovery import failpoints
from recovery.contract import EffectContract, canonical, registry
from recovery.contract.errors import CanonicalError, ContractError
from recovery.contract.readback import ReadbackAnswer
from recovery.engine import endings, intents, reading, snapshots
from recovery.engine.changes import open_review, reason
from recovery.engine.decide import decide
from recovery.engine.snapshot import Verb
from runs import clock, record, secret_text
from runs.errors import IllegalMove, LostRace, StaleVersion
from runs.models import Callback, Dependency, Effect
from runs.models.base import new_id
from runs.record import Change, Commit, Entry
from runs.states import CallbackState, Claim, EventKind, EvidenceKind, ReviewKind, Strength

log = logging.getLogger("recourse.callbacks")

MOST_BYTES: Final = 256 * 1024
LONGEST_ID: Final = 200
TRIES: Final = 3
"""How often a message is matched anew because its effect moved meanwhile; then it is kept as evidence alone."""

DUE_IN: Final = 1200.0


class Forged(Exception):
    """No signature of this dependency fits: forged, altered, too old, or meant for another. Nothing is kept."""


class Heard(StrEnum):
    """What became of a genuine message."""

    MATCHED = "matched"
    ASIDE = "aside"
    AGAIN = "again"  # the same message came before
    OTHER_BODY = "other_body"  # its id was used before for another body


def keep_secrets(dependency: Dependency, given: list[str]) -> str:
    """The sealed column of ``given`` (whsec_…), several while they are rotated. Raises ValueError for a bad one."""
    for secret in given:
        Webhook(secret)
    return secret_text.seal("\n".join(given), _place(dependency)) if given else ""


def new_secret() -> str:
    """A fresh secret as the scheme writes one: 32 random bytes."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def secrets_of(dependency: Dependency) -> list[str]:
    """The secrets that count, newest first. Raises Undecryptable."""
    if not dependency.callback_secrets:
        return []
    return secret_text.unseal(dependency.callback_secrets, _place(dependency)).split("\n")


def verify(dependency: Dependency, headers: dict[str, str], body: bytes) -> datetime:
    """The time at which they signed ``body``. Raises Forged, and Undecryptable where our own secret is lost.

    ``headers``: webhook-id, webhook-timestamp, webhook-signature. Compared in constant time; five minutes of
    tolerance, both by the library.
    """
    for secret in secrets_of(dependency):
        try:
            Webhook(secret).verify(body, headers, json_parse=False)
            return datetime.fromtimestamp(float(headers["webhook-timestamp"]), tz=UTC)
        except (WebhookVerificationError, ValueError):
            continue
    raise Forged


def receive(dependency: Dependency, message: str, body: bytes, sent_at: datetime) -> Heard:
    """Take a genuine message in, once. Nothing outside is called; everything is one commit."""
    digest = hashlib.sha256(body).hexdigest()
    before = Callback.objects.filter(dependency=dependency, message=message).values_list("digest", flat=True).first()
    if before is not None:
        return Heard.AGAIN if before == digest else Heard.OTHER_BODY
    row = {
        "id": new_id(),
        "workspace_id": dependency.workspace_id,
        "dependency_id": dependency.pk,
        "message": message,
        "digest": digest,
        "body": body.decode("utf-8", "replace").replace("\x00", "\ufffd"),
        "sent_at": sent_at,
    }
    try:
        effect = find(dependency, body)
        if effect is None:
            _set_aside(dependency, row)
            return Heard.ASIDE
        _match(effect, row, body)
    except LostRace as error:
        if error.facts.get("thing") != "callback_once":
            raise
        return Heard.AGAIN
    return Heard.MATCHED


def find(dependency: Dependency, body: bytes) -> Effect | None:
    """The effect of this workspace at this dependency whose reference the message names, or None."""
    try:
        parsed = canonical.parse(body, nfc=False)
    except CanonicalError:
        return None
    for operation, reference in _references(dependency, parsed):
        # The key that an effect was sent under, is the key itself or "{key}/{generation}".
        keys = {reference, reference.rpartition("/")[0]} - {""}
        found = Effect.objects.filter(
            workspace_id=dependency.workspace_id, operation=operation, key__in=keys, dependency=dependency
        )
        for effect in found.order_by("-generation"):
            if effect.sent_key == reference:
                return effect
    return None


def _references(dependency: Dependency, parsed: Any) -> list[tuple[str, str]]:
    """What the contracts of this dependency read as our reference in the message."""
    found = []
    # What goes somewhere else while its dependency is away is answered from there.
    serves = Dependency.objects.filter(workspace_id=dependency.workspace_id, failover=dependency)
    names = {dependency.name, *serves.values_list("name", flat=True)}
    for contract in registry.effects():
        readback = contract.reconcile
        if contract.dependency not in names or readback is None or readback.reference is None:
            continue
        try:
            item = readback.item_of(parsed)
            reference = None if item is None else readback.reference(item)
        except Exception as error:
            # An author's functions over what they were not written for: not a message of this operation.
            log.info("%s: reads no reference in a message: %r", contract.operation, error)
            continue
        if isinstance(reference, str) and 0 < len(reference) <= 255 and (contract.operation, reference) not in found:
            found.append((contract.operation, reference))
    return found


def _match(effect: Effect, row: dict[str, Any], body: bytes) -> None:
    for again in range(TRIES):
        try:
            with failpoints.committing("callback"):
                record.commit(_about(effect, row, body, alone=again == TRIES - 1))
            return
        except (StaleVersion, IllegalMove, LostRace) as error:
            if again == TRIES - 1 or error.facts.get("thing") == "callback_once":
                raise
            effect.refresh_from_db()


def _about(effect: Effect, row: dict[str, Any], body: bytes, *, alone: bool) -> Commit:
    """What a matched message leads to. ``alone``: keep it and look again, decide nothing here."""
    now = clock.now()
    try:
        contract = registry.effect_contract(effect.operation, effect.contract_version)
    except ContractError:
        # Sent by a version that this code does not have: kept, and decided by a worker that knows it.
        return _kept(effect, row, _unread(row["body"], now), now)
    run = snapshots.run_of(effect)
    snap = snapshots.take(effect, contract, run, now)
    said = _read(effect, contract, body, now, min((a.committed_at for a in snap.attempts), default=None))
    if alone:
        return _kept(effect, row, said, now)
    evidence = reading.evidence(effect, said, now, EvidenceKind.CALLBACK)
    seen = snapshots.build(
        effect,
        contract,
        run,
        attempts=snap.attempts,
        evidence=[*snap.evidence, endings.evidence_view(evidence, now)],
        now=now,
    )
    decision = decide(seen, contract, now)
    if decision.verb in (Verb.SEND, Verb.RESEND, Verb.READ_BACK):
        # A message is a reason to look, never to send from here.
        return _kept(effect, row, said, now, evidence)
    ended = endings.conclude(effect, decision, contract, now=now, bump=True, version=effect.version)
    first = _matched(effect, row, said, evidence)
    return Commit(effect.workspace_id, effect.run_id, [first, ended.entry])


def _read(
    effect: Effect, contract: EffectContract, body: bytes, now: datetime, first_sent_at: datetime | None
) -> ReadbackAnswer:
    assert contract.reconcile is not None
    try:
        return contract.reconcile.told(
            body,
            intents.load_request(effect).params,
            effect.sent_key,
            sent=effect.body.encode(),
            first_sent_at=first_sent_at,
            at=now,
        )
    except Exception:
        # Functions of the contract's author: whatever they raise, the message is kept and the effect stays visible.
        log.exception("effect %s: reading a callback raised", effect.pk)
        return _unread(body.decode("utf-8", "replace"), now)


def _matched(effect: Effect, row: dict[str, Any], said: ReadbackAnswer, evidence: dict[str, Any]) -> Entry:
    mine = {
        **row,
        "state": CallbackState.MATCHED,
        "effect_id": effect.pk,
        "run_id": effect.run_id,
        "evidence": evidence["id"],
    }
    told = {
        **endings.told_of(effect),
        "callback": str(row["id"]),
        "message": row["message"],
        "evidence": str(evidence["id"]),
        "claim": said.claim,
        "strength": said.strength,
    }
    changes: list[Change] = [
        record.new("evidence", evidence, {"received_at": 0}),
        record.new("callback", mine, {"received_at": 0}),
    ]
    return Entry(EventKind.CALLBACK_MATCHED, told, changes)


def _kept(
    effect: Effect, row: dict[str, Any], said: ReadbackAnswer, now: datetime, evidence: dict[str, Any] | None = None
) -> Commit:
    entry = _matched(effect, row, said, evidence or reading.evidence(effect, said, now, EvidenceKind.CALLBACK))
    entry.changes = [*entry.changes, record.move("effect", effect.pk, None, {}, times={"next_check_at": 0}, bump=True)]
    return Commit(effect.workspace_id, effect.run_id, [entry])


def _set_aside(dependency: Dependency, row: dict[str, Any]) -> None:
    why = reason("callback_aside", dependency=dependency.name, message=row["message"])
    aside = {**row, "state": CallbackState.ASIDE, "why": why}
    review = open_review(
        ReviewKind.CALLBACK_ASIDE, row["id"], workspace=dependency.workspace_id, run=None, why=why, due_in=DUE_IN
    )
    told = {"callback": str(row["id"]), "message": row["message"], "dependency": dependency.name}
    changes = [record.new("callback", aside, {"received_at": 0}), review]
    with failpoints.committing("callback"):
        record.commit(Commit(dependency.workspace_id, None, [Entry(EventKind.CALLBACK_SET_ASIDE, told, changes)]))


def _unread(raw: str, at: datetime) -> ReadbackAnswer:
    return ReadbackAnswer(Claim.UNAVAILABLE, Strength.NONE, [], raw, at, None, 0, "not_read", None)


def _place(dependency: Dependency) -> str:
    return f"runs_dependency|{dependency.pk}|callback_secrets"
