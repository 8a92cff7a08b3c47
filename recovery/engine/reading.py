"""Reading the authority once, and the evidence row that keeps what it said."""

from __future__ import annotations

import hashlib
import logging
import traceback
from datetime import datetime
from typing import Any

from recovery.contract import EffectContract
from recovery.contract.readback import Readback, ReadbackAnswer, rows_json
from recovery.engine import endings, intents, outbound
from runs import clock
from runs.models import Dependency, Effect
from runs.models.base import new_id
from runs.states import Claim, EvidenceKind, Strength

log = logging.getLogger("recourse.reconcile")


def read(
    effect: Effect, contract: EffectContract, readback: Readback, where: Dependency, first_sent_at: datetime | None
) -> ReadbackAnswer:
    """Ask once, at ``where``: the effect's own dependency, which a failover may have made another than its contract's
    (``recovery/traffic/degraded.py``). What cannot be asked is a check without an answer, kept and seen like any other.
    """
    try:
        return readback.ask(
            contract.port,
            where.base_url,
            intents.load_request(effect).params,
            effect.sent_key,
            body=effect.body.encode(),
            first_sent_at=first_sent_at,
            authorization=outbound.authorization(where.credential),
        )
    except outbound.CredentialMissing:
        error, raw = "credential_missing", ""
    except Exception:
        # Functions of the contract's author: whatever they raise, the effect stays unknown and visible.
        log.exception("effect %s: its readback raised", effect.pk)
        error, raw = "check_raised", traceback.format_exc()
    return no_answer(error, raw)


def no_answer(error: str, raw: str) -> ReadbackAnswer:
    """A check that brought nothing; ``error`` says why."""
    return ReadbackAnswer(Claim.UNAVAILABLE, Strength.NONE, [], raw, clock.now(), None, 0, error, None)


def evidence(
    effect: Effect, answer: ReadbackAnswer, now: datetime, kind: EvidenceKind = EvidenceKind.READBACK
) -> dict[str, Any]:
    """The row that keeps ``answer``, asked for or (``kind``) sent by themselves; ``now`` is the database's time."""
    return {
        "id": new_id(),
        "workspace_id": effect.workspace_id,
        "run_id": effect.run_id,
        "effect_id": effect.pk,
        "kind": kind,
        "claim": answer.claim,
        "strength": answer.strength,
        "facts": rows_json(answer.facts),
        "detail": {
            "item": answer.item,
            "others": answer.others,
            "error": answer.error,
            "as_of": answer.as_of.isoformat() if answer.as_of else None,
        },
        "raw": answer.raw[: endings.RAW_KEPT].replace("\x00", "\ufffd"),
        "digest": hashlib.sha256(answer.raw.encode()).hexdigest(),
        # What it speaks of by their word, never later than we heard it.
        "observed_at": min(answer.as_of or now, now),
    }
