"""What the actions on requests for signatures share: is this the request that was shown, is it open, what was
seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from recovery.engine.endings import told_of
from recovery.engine.refusals import TooLate
from runs.errors import ApprovalEnded, ApprovalExpired, RunEnded, StaleVersion, Superseded
from runs.models import Approval, Attempt, Person, Run
from runs.models.base import new_id
from runs.record import Change, new
from runs.states import ApprovalState, SignatureState


def approval_told(approval: Approval) -> dict[str, Any]:
    """What an event and a result say of a request."""
    return {
        **told_of(approval.effect),
        "approval": str(approval.pk),
        "revision": approval.revision,
        "digest": approval.digest,
        "check_code": approval.check_code,
        "group": approval.group.slug,
    }


def refuse_unless_current(approval: Approval, digest: str) -> None:
    """Refuse what was signed for other bytes than these (R1, R3).

    Raises Superseded with the newer revision and what differs; StaleVersion for a digest that is nobody's.
    """
    newer = (
        Approval.objects.filter(effect_id=approval.effect_id, revision__gt=approval.revision)
        .select_related("requester")
        .order_by("-revision")
        .first()
    )
    if newer is not None:
        raise Superseded(**_superseded(approval, newer))
    if approval.state == ApprovalState.SUPERSEDED:
        # Amended to something that needs no signatures: there is no newer request, only a newer revision.
        ended = approval.ended_at.isoformat() if approval.ended_at else None
        raise Superseded(revision=approval.effect.revision, at=ended, differences=[], **_by(approval, None))
    if digest == approval.digest:
        return
    older = Approval.objects.filter(effect_id=approval.effect_id, digest=digest).first()
    if older is not None:
        raise Superseded(**_superseded(older, approval))
    raise StaleVersion(thing="approval", id=str(approval.pk), seen=digest, now=approval.digest)


def _superseded(old: Approval, newer: Approval) -> dict[str, Any]:
    return {
        "seen": old.revision,
        "revision": newer.revision,
        "approval": str(newer.pk),
        "at": newer.asked_at.isoformat(),
        "differences": list(differences(old.fields, newer.fields)),
        **_by(old, newer),
    }


def _by(old: Approval, newer: Approval | None) -> dict[str, Any]:
    """Who or what replaced it: the run, and the person or signal where one is known."""
    cause = (old.reason or {}).get("facts", {})
    facts = {"run": str(old.run_id), "run_type": old.run.type, "signal": cause.get("signal")}
    name = cause.get("who")
    if name is None and newer is not None:
        added = sorted(set(newer.editors) - set(old.editors) - {str(old.requester_id)})
        name = Person.objects.filter(pk__in=added).values_list("name", flat=True).first()
    return {**facts, "who": name}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What two requests bind differently, by path: ``{"path", "before", "after"}``, None where there is none.

    The bytes are compared as the JSON they hold; the revision always differs and is left out.
    """
    before, after = dict(_leaves(_readable(old))), dict(_leaves(_readable(new)))
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            yield {"path": path, "before": before.get(path), "after": after.get(path)}


def _readable(fields: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: value for name, value in fields.items() if name != "revision"}
    with suppress(json.JSONDecodeError):  # a body that is not JSON is compared as text
        shown["body"] = json.loads(shown["body"])
    return shown


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def refuse_unless_open(approval: Approval, run: Run, now: datetime, *, to: str) -> None:
    """Refuse to ``sign`` or ``reject`` what is not open for it at ``now`` (R6: ``now >= approve_by`` is
    over).

    Raises TooLate, ApprovalExpired, RunEnded, ApprovalEnded. A full set of signatures can still be rejected
    (R8), also after the time to sign.
    """
    if approval.state == ApprovalState.CONSUMED:
        raise TooLate(**sent_facts(approval))
    if approval.state == ApprovalState.EXPIRED:
        raise ApprovalExpired(**((approval.reason or {}).get("facts") or {}))
    if run.ended:
        raise RunEnded(at=run.ended_at.isoformat() if run.ended_at else None)
    pending = approval.state == ApprovalState.PENDING
    if not pending and not (to == "reject" and approval.state == ApprovalState.GRANTED):
        raise ApprovalEnded(**_ended(approval))
    if pending and now >= approval.approve_by:
        raise ApprovalExpired(at=approval.approve_by.isoformat(), clock="approve_by")


def _ended(approval: Approval) -> dict[str, Any]:
    at = approval.ended_at or approval.granted_at
    return {
        "state": str(approval.state),
        "at": None if at is None else at.isoformat(),
        "who": ((approval.reason or {}).get("facts") or {}).get("by"),
        "approval": str(approval.pk),
        "revision": approval.revision,
    }


def sent_facts(approval: Approval) -> dict[str, Any]:
    """When a used request was sent, and where its effect stands: what a late withdrawal is told."""
    tries = Attempt.objects.filter(effect_id=approval.effect_id).order_by("n")
    first = tries.first()
    sent = first.committed_at if first is not None else approval.consumed_at
    return {
        **told_of(approval.effect),
        "approval": str(approval.pk),
        "sent_at": None if sent is None else sent.isoformat(),
        "tries": tries.count(),
        "state": str(approval.effect.state),
    }


def signature(
    approval: Approval, person: Person, state: SignatureState, reason: str, saw: Mapping[str, Any]
) -> tuple[Change, dict[str, Any]]:
    """The change that keeps an answer, and what its person saw: as shown, with the request's own values."""
    shown = {
        "sentence": "",
        "language": person.language,
        "evidence": [],
        **saw,
        "revision": approval.revision,
        "digest": approval.digest,
        "body": approval.body,
        "precondition": approval.precondition,
    }
    row = {
        "id": new_id(),
        "workspace_id": approval.workspace_id,
        "approval_id": approval.pk,
        "person_id": person.pk,
        "state": state,
        "reason": reason,
        "saw": shown,
    }
    return new("signature", row, {"at": 0}), shown
